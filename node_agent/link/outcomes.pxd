cdef class OutcomeLog:
    cdef public object _sent
    cdef public list _new
    cdef public Py_ssize_t _promised
    cdef public set _recalled
    cdef public object _forgotten
    cpdef admitted(self, long long link_seq, long long epoch, long long seq)
    cpdef refused(self, long long link_seq, str why)
    cpdef bint knows(self, long long link_seq)
    cpdef list take(self, Py_ssize_t most=*)
