cimport cython

from node_agent.core.job_queues cimport ArrivalQueue, JobHeap
from node_agent.core.model cimport Job, new_job
from node_agent.core.meters cimport NodeMeter, UnitMeter
from node_agent.core.model cimport Unit

cdef bint COMPILED

cdef class ReadyQueue:
    cdef public object policy, tuner
    cdef public NodeMeter meter
    cdef public JobHeap heads
    cdef JobHeap _not_eligible
    cdef object _dropper, _order, _stay, _form, _expiry
    cdef public Unit held
    cdef long long _at_ns
    cdef public bint batching, decided, expires, selects, direct, ordered, measured
    cdef public Job running
    cdef public list batch
    cdef public long long released, dispatched
    cpdef release(self, long long at_ns, Unit unit, tuple lineage, object payload)
    cdef _release_otherwise(self, long long at_ns, Unit unit, tuple lineage, object payload)
    cdef _release_by_key(self, long long at_ns, Unit unit, tuple lineage, object payload)
    @cython.locals(meter=UnitMeter, queue=ArrivalQueue, number=cython.longlong, key_ns=cython.longlong, job=Job, running=Job)
    cdef _release_measured(self, long long at_ns, Unit unit, tuple lineage, object payload)
    @cython.locals(heads=JobHeap, job=Job, head=Job, unit=Unit, queue=ArrivalQueue)
    cpdef Job pop(self, long long at_ns)
    @cython.locals(heads=JobHeap, job=Job, unit=Unit)
    cdef Job _pop_by_key(self)
    cdef Job _pop_measured(self, long long at_ns)
    @cython.locals(arrivals=ArrivalQueue)
    cdef bint _leaves(self, Unit unit, Job job)
    @cython.locals(job=Job, heads=JobHeap, arrivals=ArrivalQueue, eligible_ns=cython.longlong)
    cdef _head(self, Unit unit)
    @cython.locals(heads=JobHeap, job=Job, unit=Unit)
    cdef Job _take(self)
    @cython.locals(held=Unit)
    cdef _let_go(self, long long at_ns)
    cdef _follow(self, Unit unit, Job job)
    cdef Job _other(self)
    cpdef Job candidate(self, long long at_ns)
    @cython.locals(unit=Unit)
    cpdef long long judge(self, Job job, long long at_ns)
    cpdef begin(self, Unit unit, Job job)
    cpdef idle(self)
    @cython.locals(meter=UnitMeter)
    cpdef ended_alone(self, Unit unit, unsigned long long made, bint missed, long long ran_ns, long long decided_ns)
