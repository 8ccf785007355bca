cimport cython

from node_agent.core.model cimport Job
from node_agent.core.meters cimport NodeMeter, UnitMeter
from node_agent.core.model cimport Unit

cdef long long FOR, PART

@cython.locals(meter=UnitMeter, unit=Unit, node=NodeMeter)
cpdef bint gives_up(Job job, long long at_ns)
