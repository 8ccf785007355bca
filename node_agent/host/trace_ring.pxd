cimport cython

from node_agent.core.facts cimport Facts

cdef bint COMPILED
cdef long long _WRITTEN_AT, _RUNS_AT

cdef extern from *:
    """
    #define release_stores() __atomic_thread_fence(__ATOMIC_RELEASE)
    """
    void release_stores() noexcept nogil  # records are seen before the count that publishes them

cdef long long ROWS

@cython.locals(
    peer=cython.ulonglong, boot=cython.ulonglong, link_seq=cython.ulonglong, seq=cython.ulonglong,
)
cdef _enter(unsigned long long[::1] cells, Py_ssize_t at, object taken)

cdef class RingFacts(Facts):
    cdef public object ring, cells
    cdef public long long dropping, end, origin
    cpdef publish(self)
    @cython.locals(source=cython.ulonglong, epoch=cython.ulonglong, seq=cython.ulonglong, ordinal=cython.ulonglong)
    cpdef starts(self, long long at_ns, long long hang_ns, unsigned long long unit, unsigned long long flags, tuple lineage)
