from node_agent.core.shedding.refusals cimport Refusals
from node_agent.host.trace_ring cimport RingFacts

cdef class Shared:
    cdef public object name, clock, network, machine, callers, now_ns, boot, incarnation, log, counters, large
    cdef public object unwritten_bytes
    cdef public long long lineage_epoch
    cdef public RingFacts facts
    cdef public Refusals refusals
