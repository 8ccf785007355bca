cimport cython

cdef bint COMPILED
cdef Py_ssize_t SPARE
cdef Job LEFT

@cython.freelist(256)
cdef class Job:
    cdef public long long key_ns, rank, tie, release_ns, number
    cdef public object unit, payload
    cdef public tuple lineage

cpdef Job new_job(long long key_ns, long long release_ns, long long number, object unit, tuple lineage, object payload)

cpdef bint before(Job job, Job other)

cdef class JobHeap:
    cdef readonly list entries
    cdef list _jobs
    cpdef list jobs(self)
    cpdef Job first(self)
    cpdef void push(self, Job job)
    @cython.locals(jobs=list, first=Job, last=Job)
    cpdef Job pop(self)
    cpdef void replace(self, Job job)
    cpdef void clear(self)
    @cython.locals(jobs=list, parent=Job, at=Py_ssize_t, above=Py_ssize_t)
    cdef void _up(self, Job job)
    @cython.locals(jobs=list, child=Job, at=Py_ssize_t, below=Py_ssize_t, size=Py_ssize_t)
    cdef void _down(self, Job job)

cdef class KeyQueue:
    cdef readonly JobHeap heap

cdef class ArrivalQueue:
    cdef list _jobs
    cdef Py_ssize_t _first
    cpdef Job head(self)
    cpdef void append(self, Job job)
    @cython.locals(jobs=list, job=Job)
    cpdef Job popleft(self)
