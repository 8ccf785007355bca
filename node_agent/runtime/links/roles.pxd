cimport cython

from node_agent.core.model cimport CompiledPlan, Route
from node_agent.core.shedding.refusals cimport Refusals
from node_agent.runtime.context cimport Shared
from node_agent.link.arrived cimport Arrived
from node_agent.link.clock_offset cimport PeerClock
from node_agent.link.receiver cimport Receiver
from node_agent.wire.frames cimport Batch
from node_agent.runtime.links.credit cimport Backpressure
from node_agent.runtime.links.drained cimport Arrivals
from node_agent.runtime.links.socket_connection cimport Connection

cdef class Context:
    cdef public Shared shared
    cdef public Refusals refusals
    cdef public object plans, clocks
    cdef public long long lineage_epoch, senders
    cdef public Backpressure backpressure
    cdef public Arrivals arrivals
    cdef public dict seqs, promised
    cpdef long long admit(
        self, Route route, long long source, long long lo_ns, long long hi_ns, object payload, long long size,
        long long sent_ns=*,
    ) except -1

cdef class Entry:
    cdef public object deployed, decode
    cdef public CompiledPlan loaded
    cdef public unsigned long long stamp, index
    cdef public long long stream
    cdef public bint counted, begun

cdef class NodeRole:
    cdef public Context context
    cdef public Connection connection
    cdef public Receiver receiver
    cdef public PeerClock clock
    cdef public object name, boot, key, node
    cdef public list _unknown
    cdef public Entry _entry
    cdef public object _promised
    @cython.locals(at=Py_ssize_t, first=cython.longlong, sent_ns=cython.longlong, tuples=object, arrived=Arrived)
    cpdef on_batch(self, long long at_ns, Batch batch)
    @cython.locals(
        entry=Entry, context=Context, stream=cython.longlong, lineage=tuple, lo_ns=cython.longlong,
        hi_ns=cython.longlong, loaded=CompiledPlan,
    )
    cdef _take(self, long long at_ns, Arrived arrived, long long link_seq, long long sent_ns)
    cdef Entry _entry_of(self, Arrived arrived, object link_seq)
    @cython.locals(load=Backpressure)
    cpdef bint acknowledge(self, bint drained) except -1
