from node_agent.core.shedding.refusals cimport Refusals
from node_agent.host.clock cimport raw_ns
from node_agent.host.trace_ring cimport RingFacts

cdef bint COMPILED

cdef class Shared:
    cdef public object name, clock, network, machine, callers, now_ns, boot, incarnation, log, counters, large
    cdef public long long lineage_epoch, unwritten_bytes
    cdef bint _real
    cdef public RingFacts facts
    cdef public Refusals refusals
    cpdef long long instant(self) except? -1
