cimport cython

from node_agent.core.meters cimport UnitMeter
from node_agent.core.model cimport Job
from node_agent.core.policies.policy_parts cimport Order

cdef long long MOST_UNITS

cdef class Turns(Order):
    cdef long long _round, _turn
    @cython.locals(meter=UnitMeter, number=cython.longlong)
    cpdef place(self, Job head)
    cpdef chosen(self, long long rank)
