cdef class Refusals:
    cdef public object _due_ns, _facts, epoch
    cdef public dict _numbers, _shared
    cdef public bint pressing
