cimport cython

from node_agent.core.model cimport Job

cdef bint COMPILED
cdef Py_ssize_t SPARE, ENTRY_BYTES, LEAST_ROOM
cdef Job LEFT

cdef class JobHeap:
    cdef readonly list entries
    cdef list _jobs
    cdef Py_ssize_t _size
    cdef bint _vacant
    cdef long long[::1] _array
    cpdef list jobs(self)
    @cython.locals(at=Py_ssize_t)
    cpdef Job first(self)
    cpdef int push(self, Job job) except -1
    cpdef Job pop(self)
    @cython.locals(place=Py_ssize_t, first=Job)
    cpdef Job take(self)
    cpdef int replace(self, Job job) except -1
    cpdef int clear(self) except -1
    @cython.locals(last=Py_ssize_t, free=cython.longlong, place=cython.longlong, word=Py_ssize_t)
    cdef int _fill(self) except -1
    cdef _move(self, Py_ssize_t room)
    @cython.locals(word=Py_ssize_t, one=Py_ssize_t, two=Py_ssize_t)
    cdef _swap(self, Py_ssize_t at, Py_ssize_t other)
    @cython.locals(one=Py_ssize_t, two=Py_ssize_t)
    cdef bint _precedes(self, Py_ssize_t at, Py_ssize_t other) noexcept
    @cython.locals(at=Py_ssize_t, above=Py_ssize_t, word=Py_ssize_t, to=Py_ssize_t, rank=cython.longlong, tie=cython.longlong,
        number=cython.longlong, place=cython.longlong)
    cdef int _up(self, Job job) except -1
    @cython.locals(size=Py_ssize_t, below=Py_ssize_t, word=Py_ssize_t, to=Py_ssize_t, less=cython.bint)
    cdef void _down(self, Py_ssize_t at, long long rank, long long tie, long long number, long long place) noexcept
    @cython.locals(word=Py_ssize_t)
    cdef void _set(self, Py_ssize_t at, long long rank, long long tie, long long number, long long place) noexcept

cdef class KeyQueue:
    cdef readonly JobHeap heap
    cpdef Job head(self)
    cpdef int append(self, Job job) except -1
    cpdef Job popleft(self)

cdef class QueuedJobs:
    cdef list _jobs
    cdef Py_ssize_t _at

@cython.locals(made=QueuedJobs)
cdef QueuedJobs _through(list jobs, Py_ssize_t first)

cdef class ArrivalQueue:
    cdef list _jobs
    cdef Py_ssize_t _first
    cpdef Job head(self)
    cpdef int append(self, Job job) except -1
    @cython.locals(jobs=list, job=Job, first=Py_ssize_t)
    cpdef Job popleft(self)
    @cython.locals(jobs=list, first=Py_ssize_t)
    cpdef bint leaves(self, Job job)
