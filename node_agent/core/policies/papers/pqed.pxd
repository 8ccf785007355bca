from node_agent.core.model cimport Job, before
from node_agent.core.policies.policy_parts cimport Stay

cdef class MostUrgent(Stay):
    cpdef bint goes_on(self, Job head, Job other, long long at_ns)
