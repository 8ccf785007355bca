cdef class PeerClock:
    cdef public bint same, known
    cdef public object era
    cdef public object _peer, _rate, _per, _lo_ns, _hi_ns, _anchor_ns, _since_ns, _rtt_ns, _asked, _next_id, _due_ns
    cdef public object _left, _suspensions
    cpdef on_batch(self, at_ns, sent_ns)
