cimport cython

from node_agent.core.engine.ledger cimport Ledger
from node_agent.core.engine.ready_queue cimport ReadyQueue
from node_agent.core.facts cimport Facts
from node_agent.core.job_queues cimport ArrivalQueue, JobHeap
from node_agent.core.meters cimport NodeMeter
from node_agent.core.model cimport Exit, Job, Route, Step, Unit

cdef bint COMPILED
cdef long long RECORD_BYTES, POLICY_LATE, MOST_POLICED
cdef unsigned long long FLAG

cdef class Engine:
    cdef public object policy, loaded, windows, _commands, _memory_full
    cdef public long long _limit_jobs
    cdef public Ledger ledger
    cdef public Facts facts
    cdef public ReadyQueue ready
    cdef public bint simple
    cdef public long long ended_ns
    cdef unsigned long long _made
    cdef list _batch_made
    cdef dict _surplus
    cdef bint _resumed, _batching, _metered, _slow, _selects, _plain, _ruled
    @cython.locals(ready=ReadyQueue, job=Job, unit=Unit, each=Unit, queue=ArrivalQueue, number=cython.longlong, key_ns=cython.longlong)
    cpdef emit(self, long long at_ns, Exit exit_, tuple lineage, object payload, Py_ssize_t slot=*)
    @cython.locals(ready=ReadyQueue, job=Job, unit=Unit, facts=Facts, release_ns=cython.longlong, made=cython.ulonglong,
        position=cython.longlong, due_ns=cython.longlong, decided_ns=cython.longlong, source=cython.ulonglong, epoch=cython.ulonglong,
        seq=cython.ulonglong, ordinal=cython.ulonglong)
    cpdef Job step(self, long long start_ns, long long end_ns)
    cdef Job _next(self, long long at_ns)
    cpdef Job next(self, long long at_ns)
    @cython.locals(heads=JobHeap)
    cpdef Unit most_urgent(self)
    cpdef bint has_room(self, long long more) except -1
    @cython.locals(ready=ReadyQueue, job=Job, policy=cython.longlong)
    cdef Job _choose(self, long long at_ns)
    @cython.locals(ready=ReadyQueue, first=Job)
    cdef Job _choose_batch(self, long long at_ns)
    @cython.locals(unit=Unit, ready=ReadyQueue, flags=cython.ulonglong, took_ns=cython.longlong,
        decided_ns=cython.longlong, missed=cython.longlong, share_ns=cython.longlong, slot=Py_ssize_t, jobs=list,
        made=list, each=Job, following=Job, late=cython.bint)
    cdef Job _end_slowly(self, Job job, long long start_ns, long long end_ns)
    @cython.locals(unit=Unit, due_ns=cython.longlong, decision=cython.longlong, surplus=cython.longlong, surpluses=dict)
    cdef bint _end_one(
        self, Job job, Py_ssize_t slot, unsigned long long made, unsigned long long flags, long long start_ns,
        long long end_ns, long long took_ns,
    )
    @cython.locals(ready=ReadyQueue)
    cdef _drop(self, long long at_ns, Job job, long long policy)
    cdef _shed(self, long long at_ns, Unit unit, tuple lineage, long long policy)
    @cython.locals(unit=Unit)
    cpdef release(self, long long at_ns, Unit unit, tuple lineage, object payload)
    cpdef admit(self, long long at_ns, Route route, tuple lineage, object payload, long long size, long long sent_ns=*)
    cpdef receive(self, long long at_ns, Route route, tuple lineage, object payload)
    @cython.locals(ready=ReadyQueue, unit=Unit)
    cdef _arrive(self, long long at_ns, Route route, tuple lineage, object payload)
    cdef _pass_admission(self, long long at_ns, Route route, tuple lineage, object payload)
    @cython.locals(unit=Unit)
    cdef _spread(self, long long at_ns, Route route, tuple lineage, object payload)
