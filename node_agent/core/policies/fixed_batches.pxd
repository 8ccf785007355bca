from node_agent.core.model cimport Job
from node_agent.core.policies.batch_formers cimport basic_batches
from node_agent.core.policies.policy_parts cimport Tuner

cdef class Fixed(Tuner):
    cdef public object meter, parameters
    cdef public long long k, least_ns, phi_ns
    cpdef long long behind(self, Job head, queue)
    cpdef long long eligible_ns(self, Job head)
