cimport cython

from node_agent.core.model cimport Job
from node_agent.core.policies.policy_parts cimport BatchFormer

@cython.locals(job=Job, count=cython.longlong, lineage=tuple)
cpdef long long whole_burst(Job head, queue)

cdef class Burst(BatchFormer):
    cdef long long _largest
    cpdef long long behind(self, Job head, queue)

@cython.locals(job=Job, end_ns=cython.longlong, count=cython.longlong)
cpdef long long basic_batches(Job head, queue, long long k, long long phi_ns)
