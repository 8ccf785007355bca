cdef class Arrived:
    cdef public tuple lineage
    cdef public long long stream, at_ns, mark
    cdef public unsigned long long plan, first
    cdef public bytes payload
    cdef public bint absent
    cdef public object withheld
