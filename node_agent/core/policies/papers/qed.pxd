cimport cython

from node_agent.core.model cimport DeadlineRule

cdef class Curve:
    cdef long long _latency_ns
    cdef object _last, _period_ns, _tuples
    cdef public bint first
    @cython.locals(due_ns=cython.longlong)
    cpdef long long next_ns(self, long long at_ns)

cdef class QosDeadlines(DeadlineRule):
    cdef tuple _curves
    @cython.locals(curve=Curve, least_ns=cython.longlong, due_ns=cython.longlong, found=cython.bint)
    cpdef long long next_ns(self, long long at_ns, bint idle)
