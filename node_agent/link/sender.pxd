cimport cython

cdef long long NEVER_NS, MOST_CREDIT, SWEEP_NS_PER_TUPLE, MOST_TUPLE_BYTES, MOST_LARGE_BYTES, MAX_FRAME_BYTES
cdef long long BATCH_OVERHEAD_BYTES, TUPLE_OVERHEAD_BYTES, MAX_BATCH_TUPLES

cdef class Sender:
    cdef public object _facts, _flow_of, _backoff, _heard_ns, _most_bytes, peer_boot
    cdef public object _waiting, _large, _again, _flight
    cdef public dict _large_flows
    cdef public long long _max_bytes, _max_tuples, _stall_ns, _offset, large_bytes, held_bytes, resent
    cdef public long long _flight_bytes, _next_seq, _soonest_ns, _swept_ns, _progress_ns, _credit
    cdef public bint _takes_chunks, connected
    @cython.locals(size=cython.longlong, plain=bint)
    cpdef bint offer(self, long long at_ns, object data, long long give_up_ns, object tag) except -1
    @cython.locals(count=Py_ssize_t, bytes_=cython.longlong, room=cython.longlong, tuples=cython.longlong,
                   size=cython.longlong, plain=bint)
    cpdef Py_ssize_t offer_many(self, long long at_ns, object offered, long long give_up_ns) except -1
    cdef _queued(self, long long bytes_, long long give_up_ns)
    cdef bint _full(self, long long size, bint plain) except -1
    @cython.locals(freed=cython.longlong)
    cpdef on_ack(self, long long at_ns, object upto, object credit)
    cpdef due_ns(self)
    cpdef poll(self, long long at_ns)
    @cython.locals(
        room=cython.longlong, out=list, frame_room=cython.longlong, first=cython.longlong, used=cython.longlong,
        fresh=bint, seq=cython.longlong, give_up_ns=cython.longlong, size=cython.longlong,
    )
    cdef _next_batch(self, long long at_ns)
    cdef _next_large(self, long long at_ns)
    cpdef sweep(self, long long at_ns)
