cimport cython

from node_agent.core.meters cimport UnitMeter
from node_agent.core.model cimport Job, Unit

@cython.locals(head=Job, unit=Unit, meter=UnitMeter, due_ns=cython.longlong, ends=cython.longlong, youngest_ns=cython.longlong, cost_ns=cython.longlong)
cpdef long long statistics(list batch, long long at_ns)
