cimport cython

from node_agent.core.engine.engine cimport Engine
from node_agent.core.model cimport Job, Unit
from node_agent.core.shedding.refusals cimport Refusals
from node_agent.host.trace_ring cimport RingFacts
from node_agent.runtime.context cimport Shared
from node_agent.runtime.executor cimport Executor
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
    cpdef step(self, bint wait=*)
    @cython.locals(engine=Engine)
    cdef _next(self)
    @cython.locals(
        engine=Engine, executor=Executor, facts=RingFacts, unit=Unit, release_ns=cython.longlong, emulating=bint,
        measured=bint, late=bint, began_ns=cython.longlong, at_ns=cython.longlong,
    )
    cdef _busy(self, object engine_slot, Job job)
    @cython.locals(unit=Unit)
    cdef _name(self, Engine engine, Job job)
    cpdef _drain(self, at_ns)
    @cython.locals(refusals=Refusals)
    cdef _flush(self)
    @cython.locals(seconds=double)
    cdef _wait(self, bint wait)
    @cython.locals(engine=Engine)
    cdef bint _is_ready(self) except -1
    cdef _take_in(self, at_ns)
    cdef _idle_ns(self)
    cdef bint _publish_arrivals(self) except -1
    @cython.locals(engine=Engine, unit=Unit)
    cdef bint _starts_long(self) except -1
    cdef _due_ns(self)
    cdef _look_for_suspension(self)
