cimport cython

cdef bint COMPILED
cdef Py_ssize_t _HEAD_BYTES, _FIXED_BYTES, _AT_BYTES, _SEQ_BYTES

cpdef put(bytearray out, unsigned long long value)
cpdef bytes encode_plain(tuple lineage, long long stream, unsigned long long plan, bytes payload, long long at_ns=*)
cpdef bytes encode_batch(unsigned long long first, object sent_ns, object tuples)
cpdef bytes encode_ack(unsigned long long upto, unsigned long long credit_bytes, object admitted=*)
cpdef bytes with_head(bytes body)

@cython.locals(size=Py_ssize_t, length=Py_ssize_t, at=Py_ssize_t, data=bytes)
cdef bytes _filled_tuple(
    unsigned long long source, unsigned long long epoch, unsigned long long seq, unsigned long long ordinal,
    long long lo_ns, long long hi_ns, unsigned long long stream, unsigned long long plan, bytes payload,
    long long at_ns,
)

@cython.locals(
    inside=Py_ssize_t, size=Py_ssize_t, length=Py_ssize_t, at=Py_ssize_t, sent_at=Py_ssize_t, data=bytes, each=bytes,
)
cdef bytes _filled_batch(unsigned long long first, object sent_ns, object tuples)

@cython.locals(inside=Py_ssize_t, length=Py_ssize_t, at=Py_ssize_t, data=bytes)
cdef bytes _filled_ack(unsigned long long upto, unsigned long long credit_bytes, object admitted)

@cython.locals(size=Py_ssize_t)
cdef inline Py_ssize_t _size(unsigned long long value) noexcept

cdef inline Py_ssize_t _set_number(
    unsigned char* data, Py_ssize_t at, unsigned char tag, unsigned long long value
) noexcept

@cython.locals(place=int)
cdef inline Py_ssize_t _set_fixed(
    unsigned char* data, Py_ssize_t at, unsigned char tag, unsigned long long value
) noexcept

cdef inline Py_ssize_t _set_signed(unsigned char* data, Py_ssize_t at, unsigned char tag, long long value) noexcept

@cython.locals(place=Py_ssize_t)
cdef inline Py_ssize_t _set_bytes(
    unsigned char* data, Py_ssize_t at, const unsigned char* part, Py_ssize_t size
) noexcept

@cython.locals(place=int)
cdef inline void _set_head(unsigned char* data, unsigned long long length, unsigned long long check) noexcept
