cdef int SLOTS_BITS
cdef long long FAR_NS

cpdef long long bucket(long long ns)

cdef class Ages:
    cdef public object name, source_id
    cdef public dict counts
    cdef public long long worst_ns
    cpdef add(self, long long at_ns, long long origin_ns)
