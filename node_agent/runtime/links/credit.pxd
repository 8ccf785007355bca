cdef class Backpressure:
    cdef public object shared, plans
    cdef public object busy_ns, overhead_ns, next_ns
    cdef public long long held_bytes, sink_bytes, pending
    cdef public long long _encoded_16, _weight_16, _left
    cdef public object _queued_weight, _more_16
    cdef public bint _weighed
    cdef public object _weighed_ns, _measured_ns, _forgotten_ns, _plans, _base_bytes, _peak_bytes, _turn
    cpdef arrived(self, long long size, object payload=*)
