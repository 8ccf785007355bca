cimport cython

from node_agent.core.meters cimport NodeMeter, UnitMeter
from node_agent.core.model cimport Job
from node_agent.core.policies.policy_parts cimport Order

cdef long long OTHERS

cdef class Urgency(Order):
    cdef NodeMeter _meter
    cdef long long _left
    cdef object _critical
    @cython.locals(meter=UnitMeter, laxity_ns=cython.longlong)
    cpdef place(self, Job head)
