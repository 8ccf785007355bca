cimport cython

from node_agent.core.meters cimport NodeMeter
from node_agent.core.model cimport Unit
from node_agent.core.policies.fixed_batches cimport Fixed

cdef long long PROPORTIONAL, INTEGRAL

cdef class Control(Fixed):
    cdef public long long grown
    cdef long long _missed, _ended
    @cython.locals(node=NodeMeter, missed=cython.longlong, ended=cython.longlong, weighted=cython.longlong,
        less=cython.longlong, rest=cython.longlong)
    cpdef ended(self, Unit unit, long long jobs, long long ran_ns, long long decision_ns)

cdef bint _below(part, whole, other, others)
