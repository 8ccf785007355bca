cimport cython

from node_agent.core.model cimport Job, before

cdef bint COMPILED
cdef Py_ssize_t SPARE
cdef Job LEFT

cdef class JobHeap:
    cdef readonly list entries
    cdef list _jobs
    cdef Py_ssize_t _size
    cpdef list jobs(self)
    cpdef Job first(self)
    cpdef void push(self, Job job)
    @cython.locals(jobs=list, first=Job, job=Job, last=Py_ssize_t)
    cpdef Job pop(self)
    cpdef void replace(self, Job job)
    cpdef void clear(self)
    @cython.locals(jobs=list, parent=Job, at=Py_ssize_t, above=Py_ssize_t)
    cdef _up(self, Job job)
    @cython.locals(jobs=list, child=Job, below=Py_ssize_t, size=Py_ssize_t)
    cdef _down(self, Job job, Py_ssize_t at)

cdef class KeyQueue:
    cdef readonly JobHeap heap
    cpdef Job head(self)
    cpdef void append(self, Job job)
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
    cpdef void append(self, Job job)
    @cython.locals(jobs=list, job=Job, first=Py_ssize_t)
    cpdef Job popleft(self)
    @cython.locals(jobs=list, first=Py_ssize_t)
    cpdef bint leaves(self, Job job)
