cimport cython

from node_agent.wire.plain_batch cimport plain_ack, plain_batch
from node_agent.wire.plain_frames cimport encode_plain

cdef extern from *:
    """
    static inline unsigned long long big32(PyObject *data, Py_ssize_t at) {
        const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(data) + at;
        return (unsigned long long)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
    }
    """
    unsigned long long big32(bytes data, Py_ssize_t at) noexcept  # four bytes, which have to be there

cdef bint COMPILED
cdef Py_ssize_t MAX_FRAME_BYTES, _HEAD_BYTES, _MERGED_BYTES

cpdef bytes encode_outcomes(object outcomes, object upto, object credit_bytes)

cdef class Batch:
    cdef public long long first, sent_ns
    cdef public object tuples

cdef class FrameReader:
    cdef public bytearray _buffer
    cdef public bint _greeted, _broken
    cdef public long long _next_first
    cdef public unsigned long long _upto
    cdef public object assembly
    cpdef feed(self, object data)
    @cython.locals(found=list, at=Py_ssize_t, end=Py_ssize_t, begin=Py_ssize_t, left=Py_ssize_t, length=Py_ssize_t,
                   check=cython.ulonglong, before=cython.longlong, body=bytes)
    cdef tuple _plain_frames(self, bytes data)
    @cython.locals(plain=tuple, ack=tuple, tuples=list, first=cython.longlong)
    cdef object _plain(self, bytes data)
