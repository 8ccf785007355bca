from node_agent.core.model cimport Job
from node_agent.core.model cimport Unit as TaskUnit

cdef class Key:
    cpdef long long key_ns(self, TaskUnit unit, tuple lineage)

cdef class Order:
    cpdef place(self, Job head)
    cpdef chosen(self, long long rank)

cdef class BatchFormer:
    cpdef long long behind(self, Job head, queue)

cdef class Dropper:
    cpdef long long judge(self, Job job, long long at_ns, long long ahead)

cdef class Stay:
    cpdef begins(self, Job job, Job other, long long at_ns)
    cpdef bint goes_on(self, Job head, Job other, long long at_ns)
