cimport cython

from node_agent.core.model cimport Unit
from node_agent.core.policies.policy_parts cimport Key

cdef class EndToEndDeadline(Key):
    @cython.locals(origin_ns=cython.longlong)
    cpdef long long key_ns(self, Unit unit, tuple lineage)
