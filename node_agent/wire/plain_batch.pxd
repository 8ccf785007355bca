cimport cython

from node_agent.link.arrived cimport Arrived

cdef extern from *:
    """
    #include <string.h>
    static inline long long fixed64(PyObject *data, Py_ssize_t at) {
        long long value;
        memcpy(&value, PyBytes_AS_STRING(data) + at, 8);
        return value;
    }
    """
    long long fixed64(bytes data, Py_ssize_t at) noexcept  # eight bytes, which have to be there

cdef bint COMPILED
cdef long long FAR_NS, _FIRST_LIMIT
cdef Py_ssize_t _FIXED_BYTES
cdef int _ORDINAL, _DELIVERED
cdef bytes _CLIENT

cpdef plain_batch(bytes data, Py_ssize_t at, long long next_first)
cpdef tuple plain_ack(bytes data)

@cython.locals(end=Py_ssize_t, upto=cython.longlong, credit_bytes=cython.longlong)
cdef tuple _ack(bytes data)

@cython.locals(
    end=Py_ssize_t, size=Py_ssize_t, begin=Py_ssize_t, sent_tag=int, sent_ns=cython.longlong, first_tag=int,
    first=cython.longlong, tuples=list,
)
cdef tuple _batch(bytes data, Py_ssize_t at, long long next_first)

@cython.locals(
    seq_tag=int, plan_tag=int, lo_tag=int, hi_tag=int, seq=cython.ulonglong, plan=cython.ulonglong,
    lo_ns=cython.longlong, hi_ns=cython.longlong, source=cython.longlong, epoch=cython.longlong,
    stream=cython.longlong, ordinal=cython.longlong, at_ns=cython.longlong, size=Py_ssize_t, begin=Py_ssize_t,
)
cdef Arrived _tuple(bytes data, Py_ssize_t at, Py_ssize_t end)

@cython.locals(source=cython.longlong, epoch=cython.longlong, stream=cython.longlong)
cdef tuple _numbers(bytes data, Py_ssize_t at)

@cython.locals(ordinal=cython.longlong)
cdef tuple _behind(bytes data, Py_ssize_t at, Py_ssize_t end)

@cython.locals(byte=cython.longlong, value=cython.longlong, shift=int)
cdef tuple _number(bytes data, Py_ssize_t at)
