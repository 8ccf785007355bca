cimport cython

from node_agent.core.meters cimport NodeMeter, UnitMeter
from node_agent.core.model cimport Job, Unit
from node_agent.core.policies.hopeless cimport hopeless

cdef long long FOR, PART

@cython.locals(meter=UnitMeter, unit=Unit, node=NodeMeter)
cpdef bint gives_up(Job job, long long at_ns)

@cython.locals(unit=Unit, meter=UnitMeter, head_meter=UnitMeter, node=NodeMeter)
cpdef look(Job head, long long at_ns)
