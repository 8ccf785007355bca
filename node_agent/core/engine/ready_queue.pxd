cimport cython

from node_agent.core.job_queues cimport ArrivalQueue, JobHeap, KeyQueue
from node_agent.core.meters cimport NodeMeter, UnitMeter
from node_agent.core.model cimport DeadlineRule, Job, Unit, new_job
from node_agent.core.policies.fixed_batches cimport Fixed
from node_agent.core.policies.policy_parts cimport BatchFormer, Dropper, Key, Order, Stay

cdef bint COMPILED
cdef list NONE

cdef class ReadyQueue:
    cdef public object policy
    cdef public Fixed tuner
    cdef public NodeMeter meter
    cdef public JobHeap heads
    cdef JobHeap _not_eligible
    cdef object _sifter, _expiry
    cdef Key _key
    cdef Dropper _dropper
    cdef Order _order
    cdef Stay _stay
    cdef BatchFormer _form
    cdef public Unit held
    cdef long long _at_ns
    cdef public bint batching, decided, expires, selects, direct, plain, ordered, costs, gaps, results
    cdef public Job running
    cdef public list batch, shed
    cdef list _runs
    cdef Unit _chosen
    cdef public long long released, dispatched
    cpdef long long queued(self) except -1
    @cython.locals(job=Job, queue=ArrivalQueue, number=cython.longlong, key_ns=cython.longlong)
    cpdef release(self, long long at_ns, Unit unit, tuple lineage, object payload)
    cdef _release_otherwise(self, long long at_ns, Unit unit, tuple lineage, object payload)
    @cython.locals(job=Job, number=cython.longlong, queue=KeyQueue, key=Key)
    cdef _release_by_key(self, long long at_ns, Unit unit, tuple lineage, object payload)
    @cython.locals(meter=UnitMeter, queue=ArrivalQueue, number=cython.longlong, key_ns=cython.longlong, running=Job,
        rule=DeadlineRule, is_head=cython.bint)
    cdef _release_in_order(self, long long at_ns, Unit unit, tuple lineage, object payload)
    @cython.locals(heads=JobHeap, job=Job, head=Job, unit=Unit, queue=ArrivalQueue)
    cpdef Job pop(self, long long at_ns)
    @cython.locals(heads=JobHeap, job=Job, queue=KeyQueue)
    cdef Job _pop_by_key(self)
    @cython.locals(job=Job)
    cdef Job _pop_by_rank(self, long long at_ns)
    @cython.locals(arrivals=ArrivalQueue)
    cdef bint _leaves(self, Unit unit, Job job)
    @cython.locals(job=Job, heads=JobHeap, arrivals=ArrivalQueue, eligible_ns=cython.longlong, order=Order, tuner=Fixed)
    cdef _head(self, Unit unit)
    @cython.locals(heads=JobHeap, not_eligible=JobHeap, arrivals=ArrivalQueue, unit=Unit, head=Job)
    cdef _make_eligible(self)
    @cython.locals(heads=JobHeap, job=Job, unit=Unit)
    cdef Job _take(self)
    @cython.locals(held=Unit)
    cdef _let_go(self, long long at_ns)
    cdef _follow(self, Unit unit, Job job)
    cdef Job _other(self)
    cpdef Job candidate(self, long long at_ns)
    @cython.locals(unit=Unit, dropper=Dropper)
    cpdef long long judge(self, Job job, long long at_ns)
    cpdef begin(self, Unit unit, Job job)
    @cython.locals(job=Job, policy=cython.longlong)
    cpdef bint choose_batch(self, long long at_ns)
    @cython.locals(unit=Unit, queue=ArrivalQueue, dropper=Dropper, form=BatchFormer, tuner=Fixed, at_ns=cython.longlong, late_ns=cython.longlong,
        oldest_ns=cython.longlong, more=Py_ssize_t, batch=list, candidates=list, policy=cython.longlong)
    cdef list _batch(self, Job head)
    @cython.locals(job=Job, unit=Unit, runs=list)
    cpdef Job begin_batch(self)
    cpdef idle(self)
    @cython.locals(held=Unit, stay=Stay, arrivals=ArrivalQueue, head=Job, job=Job)
    cpdef Job goes_on(self, long long at_ns)
    @cython.locals(meter=UnitMeter, jobs=cython.longlong)
    cpdef ended(self, Unit unit, list made, long long missed, long long ran_ns, long long decided_ns)
    @cython.locals(meter=UnitMeter, node=NodeMeter)
    cpdef Job ended_alone(
        self, Unit unit, unsigned long long made, bint missed, long long start_ns, long long end_ns, long long decided_ns,
    )
