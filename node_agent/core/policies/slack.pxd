cimport cython

from node_agent.core.jobs cimport Job
from node_agent.core.meters cimport NodeMeter, UnitMeter
from node_agent.core.model cimport Unit

cdef long long TIMES, SOON, EVERY, STEP_BITS, NUMBER_BITS, SOME_DAY_NS, NUMBERS

cdef class EndToEnd:
    cdef long long _changes, _every
    cdef NodeMeter _meter
    cdef dict _plans, _splits
    @cython.locals(unit=Unit, lineage=tuple, meter=UnitMeter, node=NodeMeter, number=cython.longlong, seq=cython.longlong)
    cpdef place(self, Job head)

@cython.locals(unit=Unit, meter=UnitMeter, lower_ns=cython.longlong)
cpdef long long hopeless_or_excess(Job job, long long at_ns, long long ahead)

@cython.locals(slack_ns=cython.longlong, unit=Unit)
cdef bint _tries(Job job, UnitMeter meter, long long at_ns)
