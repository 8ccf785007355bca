from node_agent.core.model cimport Job, Unit
from node_agent.core.policies.batch_formers cimport basic_batches

cdef class Fixed:
    cdef public object meter, parameters
    cdef public long long k, least_ns, phi_ns
    cpdef long long behind(self, Job head, queue)
    cpdef long long eligible_ns(self, Job head)
    cpdef ended(self, Unit unit, long long jobs, long long ran_ns, long long decision_ns)
