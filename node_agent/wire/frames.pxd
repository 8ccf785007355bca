cimport cython

cdef tuple _SMALL

cdef _put(bytearray out, unsigned long long value)

cpdef bytes encode_plain(tuple lineage, long long stream, unsigned long long plan, bytes payload, long long at_ns=*)

cdef class FrameReader:
    cdef public bytearray _buffer
    cdef public bint _greeted, _broken
    cdef public object _next_first, _upto, assembly
    cdef object _plain(self, bytes data, Py_ssize_t at)
