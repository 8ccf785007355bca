from node_agent.host.trace_ring cimport RingFacts
from node_agent.runtime.context cimport Shared
from node_agent.runtime.links.acceptor cimport Acceptor
from node_agent.runtime.links.credit cimport Backpressure
from node_agent.runtime.links.outbox cimport Outbox
from node_agent.runtime.links.roles cimport Context

cdef class Runtime:
    cdef public Shared shared
    cdef public RingFacts facts
    cdef public object security, meter, plans, sliced, heartbeats, pulled, requests, stopping
    cdef public object _now, _drain_every_ns, _least_tick_ns, _most_tick_ns, _oversleep_ns
    cdef public Outbox outbox
    cdef public Backpressure backpressure
    cdef public Context context
    cdef public Acceptor acceptor
    cdef public bint _flush_due, _fuses
    cdef public object _tick_ns, _ticked_ns, _measure_ns, _skip, _turn, _units, _share
