cimport cython

from node_agent.core.engine.engine cimport Engine
from node_agent.core.model cimport Job, Step, Unit
from node_agent.core.shedding.refusals cimport Refusals
from node_agent.host.trace_ring cimport RingFacts
from node_agent.runtime.context cimport Shared
from node_agent.runtime.deployments.deployed_plan cimport EngineSlot
from node_agent.runtime.executor cimport Executor
from node_agent.runtime.links.acceptor cimport Acceptor
from node_agent.runtime.links.credit cimport Backpressure
from node_agent.runtime.links.outbox cimport Outbox
from node_agent.runtime.links.roles cimport Context
from node_agent.runtime.real_time_share cimport RealTimeShare

cdef class Runtime:
    cdef public Shared shared
    cdef public RingFacts facts
    cdef public object security, meter, plans, sliced, heartbeats, pulled
    cdef public list requests
    cdef list _engine_slots
    cdef public bint stopping
    cdef long long _drain_every_ns, _least_tick_ns, _most_tick_ns, _oversleep_ns
    cdef public Outbox outbox
    cdef public Backpressure backpressure
    cdef public Context context
    cdef public Acceptor acceptor
    cdef public bint _flush_due, _fuses
    cdef public long long _tick_ns, _ticked_ns, _measure_ns, _skip, _turn, _units
    cdef RealTimeShare _share
    cpdef step(self, bint wait=*)
    @cython.locals(engine_slot=EngineSlot, job=Job)
    cdef _next(self)
    @cython.locals(
        engine=Engine, executor=Executor, facts=RingFacts, unit=Unit, release_ns=cython.longlong, emulating=bint,
        measured=bint, late=bint, began_ns=cython.longlong, at_ns=cython.longlong,
    )
    cdef _busy(self, EngineSlot engine_slot, Job job)
    cpdef _drain(self, long long at_ns)
    @cython.locals(refusals=Refusals, at_ns=cython.longlong)
    cdef _flush(self)
    @cython.locals(seconds=double, share=RealTimeShare, at_ns=cython.longlong, promised=bint)
    cdef _wait(self, bint wait)
    @cython.locals(engine_slot=EngineSlot)
    cdef bint _is_ready(self) except -1
    cdef _take_in(self, long long at_ns)
    @cython.locals(now_ns=cython.longlong, left_ns=cython.longlong, tick_ns=cython.longlong)
    cdef long long _idle_ns(self) except -1
    cdef bint _publish_arrivals(self) except -1
    @cython.locals(engine_slot=EngineSlot, unit=Unit, step=Step, emulate_ns=cython.longlong, planned_ns=cython.longlong)
    cdef bint _starts_long(self) except -1
    @cython.locals(engine_slot=EngineSlot, due_ns=cython.longlong)
    cdef long long _due_ns(self) except -1
    cdef _look_for_suspension(self)
