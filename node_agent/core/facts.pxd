cdef bint COMPILED
cdef long long RECORD_BYTES

cimport cython

cdef class Facts:
    cdef public object buffer, refill, latencies_ns
    cdef public long long admitted, refused, position, limit
    cdef long long[::1] _words
    @cython.locals(at=Py_ssize_t)
    cdef put(
        self, Py_ssize_t position, unsigned long long head, unsigned long long source, unsigned long long epoch,
        unsigned long long seq, long long w0, long long w1, long long w2, long long w3, long long w4,
        unsigned long long last,
    )
    cdef store(self, Py_ssize_t position, unsigned long long word)
    cpdef write(
        self, unsigned long long kind, unsigned long long flags, unsigned long long ref, unsigned long long source,
        unsigned long long epoch, unsigned long long seq, long long w0=*, long long w1=*, long long w2=*,
        long long w3=*, long long w4=*, unsigned long long last=*,
    )
