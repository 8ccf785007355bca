cimport cython

from node_agent.core.meters cimport UnitMeter
from node_agent.core.model cimport Job

@cython.locals(meter=UnitMeter, youngest_ns=cython.longlong)
cpdef bint hopeless(Job job, long long at_ns, long long ahead)
