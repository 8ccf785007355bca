cimport cython

from node_agent.core.model cimport Job
from node_agent.core.meters cimport ExitMeter, NodeMeter, UnitMeter
from node_agent.core.model cimport Unit
from node_agent.core.policies.excess cimport gives_up
from node_agent.core.policies.hopeless cimport hopeless

cdef long long TIMES, SOON, EVERY, STEP_BITS, NUMBER_BITS, SOME_DAY_NS, NUMBERS, MOST_WORK_NS

cdef class EndToEnd:
    cdef long long _changes, _every
    cdef NodeMeter _meter
    cdef dict _plans
    @cython.locals(unit=Unit, lineage=tuple, meter=UnitMeter, node=NodeMeter, number=cython.longlong, seq=cython.longlong)
    cpdef place(self, Job head)

@cython.locals(unit=Unit, meter=UnitMeter, lower_ns=cython.longlong)
cpdef long long hopeless_or_excess(Job job, long long at_ns, long long ahead)

cdef bint _tries(Job job, UnitMeter meter, long long at_ns)

cdef class Behind:
    cdef public ExitMeter exit_meter
    cdef public long long declared_ns, steps
    cdef public object end
    cdef public tuple units, joins, branches
    cdef public UnitMeter joined
    @cython.locals(joined=UnitMeter, meter=UnitMeter)
    cpdef left(self)

cdef class Ahead:
    cdef public UnitMeter meter
    cdef public long long deadline_ns
    cdef public bint branch
    cdef public tuple behind
    @cython.locals(meter=UnitMeter, each=Behind, leaving=ExitMeter, unit=UnitMeter)
    cpdef add_up(self)

@cython.locals(room_ns=object)
cdef _left(UnitMeter meter, long long inputs)
