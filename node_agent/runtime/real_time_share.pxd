cdef class RealTimeShare:
    cdef object _machine
    cdef long long _allowed, _beyond, _since_ns
    cdef bint _rests
    cdef public bint out
    cpdef busy(self, long long at_ns)
    cpdef waits(self, long long at_ns)
    cpdef idle(self, long long at_ns)
    cdef _settle(self)
    cdef _be(self, bint out)
    cdef _count(self, long long at_ns, long long used)
