cimport cython

from node_agent.core.meters cimport NodeMeter
from node_agent.core.model cimport Unit
from node_agent.core.policies.fixed_batches cimport Fixed

cdef class Control(Fixed):
    cdef public long long grown
    cdef object _missed, _ended
    @cython.locals(node=NodeMeter, missed=object, ended=object)
    cpdef ended(self, Unit unit, long long jobs, long long ran_ns, long long decision_ns)
