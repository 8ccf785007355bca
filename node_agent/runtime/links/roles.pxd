from node_agent.core.model cimport Route
from node_agent.core.shedding.refusals cimport Refusals
from node_agent.runtime.context cimport Shared
from node_agent.link.arrived cimport Arrived
from node_agent.link.clock_offset cimport PeerClock
from node_agent.link.receiver cimport Receiver
from node_agent.runtime.links.credit cimport Backpressure
from node_agent.runtime.links.drained cimport Arrivals

cdef class Context:
    cdef public Shared shared
    cdef public Refusals refusals
    cdef public object plans, clocks, senders
    cdef public long long lineage_epoch
    cdef public Backpressure backpressure
    cdef public Arrivals arrivals
    cdef public dict seqs, promised
    cpdef long long admit(
        self, Route route, long long source, long long lo_ns, long long hi_ns, object payload, long long size,
        long long sent_ns=*,
    ) except -1

cdef class NodeRole:
    cdef public Context context
    cdef public object connection, name, boot, key, node
    cdef public Receiver receiver
    cdef public PeerClock clock
    cdef public list _unknown
    cdef public object _promised
    cdef _take(self, long long at_ns, Arrived arrived, object link_seq, long long sent_ns)
