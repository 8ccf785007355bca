cimport cython

from node_agent.core.job_queues cimport ArrivalQueue
from node_agent.core.model cimport Job
from node_agent.core.policies.policy_parts cimport BatchFormer

cdef bint COMPILED

cdef class Burst(BatchFormer):
    cdef long long _most
    @cython.locals(job=Job, arrivals=ArrivalQueue, origin_ns=cython.longlong, count=cython.longlong)
    cpdef long long behind(self, Job head, queue)

@cython.locals(job=Job, end_ns=cython.longlong, count=cython.longlong)
cpdef long long basic_batches(Job head, queue, long long k, long long phi_ns)
