cimport cython

from node_agent.runtime.links.delivery_counts cimport DeliveryCounts

cdef Py_ssize_t CHUNK_BYTES

cdef class Delivery:
    cdef public object codec
    cdef public DeliveryCounts counts
    cdef public long long deadline_ns, stream
    cdef public unsigned long long stamp
    cdef public str name

cdef class Outbox:
    cdef public object shared, _security, acceptor, _last, _data
    cdef public dict links, dirty, _routes, _deadlines, _codecs, by_loaded, delivery_counts, _deliveries
    @cython.locals(delivery=Delivery, lo_ns=cython.longlong, hi_ns=cython.longlong)
    cpdef deliver(self, long long at_ns, object loaded, object output, tuple lineage, object payload)
    cpdef send(self, long long at_ns, object loaded, object peer, object stream, tuple lineage, object payload)
    cdef _tuple(self, tuple lineage, long long stream, unsigned long long stamp, bytes body, long long at_ns=*)
