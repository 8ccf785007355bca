cimport cython

from node_agent.core.meters cimport UnitMeter
from node_agent.core.model cimport Job
from node_agent.core.policies.policy_parts cimport Order

cdef class LeastCost(Order):
    @cython.locals(meter=UnitMeter)
    cpdef place(self, Job head)
