cimport cython

from node_agent.wire.plain_batch cimport plain_ack, plain_batch
from node_agent.wire.plain_frames cimport encode_plain

cpdef bytes encode_outcomes(object outcomes, object upto, object credit_bytes)

cdef class FrameReader:
    cdef public bytearray _buffer
    cdef public bint _greeted, _broken
    cdef public object _next_first, _upto, assembly
    cpdef feed(self, object data)
    @cython.locals(found=list, at=Py_ssize_t, end=Py_ssize_t, begin=Py_ssize_t, left=Py_ssize_t, length=Py_ssize_t,
                   body=bytes)
    cdef tuple _plain_frames(self, bytes data)
    @cython.locals(ack=tuple, tuples=list)
    cdef object _plain(self, bytes data)
