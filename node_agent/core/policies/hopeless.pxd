cimport cython

from node_agent.core.model cimport Job
from node_agent.core.meters cimport UnitMeter
from node_agent.core.model cimport Unit

@cython.locals(meter=UnitMeter, unit=Unit, lower_ns=cython.longlong, slack=cython.longlong)
cpdef bint hopeless(Job job, long long at_ns, long long ahead)
