cimport cython

cdef int GRAIN
cdef long long FAR_NS

cdef class DeliveryCounts:
    cdef public list buckets
    cdef public long long late, met, undecidable, worst_ns
    @cython.locals(grains=cython.longlong, octave=cython.longlong)
    cpdef add(self, long long most_ns, long long least_ns, long long deadline_ns)
