cimport cython

from node_agent.core.meters cimport ExitMeter, NodeMeter, UnitMeter
from node_agent.core.model cimport Job, Unit
from node_agent.core.policies.excess cimport gives_up
from node_agent.core.policies.hopeless cimport hopeless
from node_agent.core.policies.policy_parts cimport Dropper, Order

cdef long long TIMES, SOON, EVERY, STEP_BITS, NUMBER_BITS, NUMBERS, _YOUNG, SOME_DAY_NS, LEAST_NS, ALWAYS_NS
cdef long long MOST_WORK_NS, MOST_COST_NS, POLICY_EXCESS, POLICY_LATE
cdef Left NOTHING

cdef class EndToEnd(Order):
    cdef long long _changes, _every
    cdef NodeMeter _meter
    cdef dict _plans
    cdef object _newest
    @cython.locals(unit=Unit, meter=UnitMeter, node=NodeMeter, number=cython.longlong, seq=cython.ulonglong,
        known=cython.bint)
    cpdef place(self, Job head)
    @cython.locals(each=Ahead)
    cdef _add_up(self)

cdef class Left:
    cdef public long long room_ns, due_ns, work_ns, steps, declared_room_ns
    cdef bint exceeds(self, Left other)

@cython.locals(made=Left)
cpdef Left left(long long room_ns, long long due_ns, long long work_ns, long long steps, long long declared_room_ns)

cdef class HopelessOrExcess(Dropper):
    @cython.locals(unit=Unit, meter=UnitMeter, youngest_ns=cython.longlong, age_ns=cython.longlong, deadline_ns=cython.longlong)
    cpdef long long judge(self, Job job, long long at_ns, long long ahead)

cdef bint _tries(Job job, UnitMeter meter, long long at_ns)

cdef class Behind:
    cdef public ExitMeter exit_meter
    cdef public long long declared_ns, steps
    cdef public Left end
    cdef public tuple units, joins, branches
    cdef public UnitMeter joined
    @cython.locals(joined=UnitMeter, meter=UnitMeter, best=Left, found=Left, inputs=cython.longlong)
    cpdef Left left(self)
    @cython.locals(meter=UnitMeter, cost_ns=cython.longlong, declared_ns=cython.longlong, work_ns=cython.longlong,
        room_ns=cython.longlong, declared_room_ns=cython.longlong)
    cdef Left _past_branches(self, UnitMeter joined)

cdef class Ahead:
    cdef public UnitMeter meter
    cdef public long long deadline_ns
    cdef public bint branch
    cdef public tuple behind
    @cython.locals(meter=UnitMeter, each=Behind, leaving=ExitMeter, unit=UnitMeter, best=Left, found=Left, before=Left,
        cost_ns=cython.longlong, unit_ns=cython.longlong, own_ns=cython.longlong, queued_ns=cython.longlong)
    cpdef add_up(self)

cdef _part(cost_ns, declared_ns, unit_ns)

@cython.locals(work_ns=cython.longlong)
cdef Left _from(UnitMeter meter, long long inputs)
