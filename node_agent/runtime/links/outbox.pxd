cimport cython

from node_agent.core.model cimport CompiledPlan
from node_agent.runtime.context cimport Shared
from node_agent.runtime.links.acceptor cimport Acceptor
from node_agent.runtime.links.delivery_counts cimport DeliveryCounts
from node_agent.runtime.links.peer_link cimport PeerLink
from node_agent.runtime.links.sink_role cimport SinkRole
from node_agent.wire.plain_frames cimport encode_plain

cdef Py_ssize_t CHUNK_BYTES

cdef class Delivery:
    cdef public object encode, parts
    cdef public DeliveryCounts counts
    cdef public long long deadline_ns, stream
    cdef public unsigned long long stamp
    cdef public str name, codec_name

cdef class Way:
    cdef public object deployed, encode, parts
    cdef public PeerLink link
    cdef public long long last_ns
    cdef public unsigned long long stamp

cdef class Outbox:
    cdef public Shared shared
    cdef public Acceptor acceptor
    cdef public object _security, _data
    cdef public tuple _last
    cdef public dict links, dirty, _ways, by_loaded, delivery_counts, _deliveries
    @cython.locals(delivery=Delivery, lo_ns=cython.longlong, hi_ns=cython.longlong, sinks=list, sink=SinkRole)
    cpdef deliver(self, long long at_ns, object loaded, object output, tuple lineage, object payload)
    @cython.locals(way=Way, link=PeerLink, tag=tuple, due_ns=cython.longlong, last_ns=cython.longlong)
    cpdef send(self, long long at_ns, object loaded, object peer, object stream, tuple lineage, object payload)
    cdef _tuple(self, tuple lineage, long long stream, unsigned long long stamp, bytes body, long long at_ns=*)
    @cython.locals(last=tuple)
    cdef _encoded(
        self, Way way, object loaded, object stream, tuple lineage, object payload, object punctuation
    )
    @cython.locals(dirty=list, link=PeerLink)
    cpdef flush(self, long long at_ns)
    @cython.locals(link=PeerLink, due_ns=cython.longlong)
    cpdef tick(self, long long at_ns)
