cimport cython

from node_agent.core.engine.engine cimport Engine
from node_agent.core.model cimport Job
from node_agent.core.model cimport Exit, Step, Unit
from node_agent.host.trace_ring cimport RingFacts

cdef bint COMPILED

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int CLOCK_MONOTONIC_RAW
    int clock_gettime(int clock, timespec* at)

cdef inline long long raw_ns() noexcept:
    """The clock of `node_agent.host.clock.now_ns`."""
    cdef timespec at
    clock_gettime(CLOCK_MONOTONIC_RAW, &at)
    return at.tv_sec * 1_000_000_000 + at.tv_nsec

cdef class Executor:
    cdef public Engine engine
    cdef public object now, spend, failed, operate, drain, barrier
    cdef public long long due_ns
    cdef public bint stepwise
    cdef bint _real
    cdef long long _instant(self)
    @cython.locals(engine=Engine, unit=Unit, step=Step, start_ns=cython.longlong, end_ns=cython.longlong, due_ns=cython.longlong, next_job=Job, lineage=tuple)
    cpdef Job run(self, Job job, RingFacts facts=*)
