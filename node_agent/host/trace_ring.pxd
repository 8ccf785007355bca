cimport cython

from node_agent.core.facts cimport Facts

cdef bint COMPILED
cdef long long _WRITTEN_AT, _RUNS_AT

cdef extern from *:
    """
    #define release_stores() __atomic_thread_fence(__ATOMIC_RELEASE)
    """
    void release_stores() noexcept nogil  # what was stored is seen before what follows

cdef long long ROWS, PROMISES, DEPEND

@cython.locals(
    peer=cython.ulonglong, boot=cython.ulonglong, link_seq=cython.ulonglong, seq=cython.ulonglong,
)
cdef _enter(unsigned long long[::1] cells, Py_ssize_t at, object taken)

cdef class Ring:
    cdef public object path, memory, header, view, cells, facts
    cdef bint _lent
    cdef unsigned long long[::1] _numbers, _taken_over
    cdef object _acknowledged
    cdef dict _rows
    cdef long long _promises
    cdef public long long capacity
    @cython.locals(before=cython.longlong)
    cpdef bint promise_acknowledgements(self, list taken, long long published=*) except -1
    cpdef acknowledge(self, peer, boot, link_seq)

cdef class RingFacts(Facts):
    cdef public Ring ring
    cdef public object cells
    cdef public long long dropping, end, origin
    cpdef publish(self)
    @cython.locals(word=int)
    cpdef idles(self)
    @cython.locals(source=cython.ulonglong, epoch=cython.ulonglong, seq=cython.ulonglong, ordinal=cython.ulonglong)
    cpdef starts(self, long long at_ns, long long hang_ns, unsigned long long unit, unsigned long long flags, tuple lineage)
