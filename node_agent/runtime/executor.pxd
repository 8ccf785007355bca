cimport cython

from node_agent.core.engine.engine cimport Engine
from node_agent.core.model cimport Job
from node_agent.core.model cimport Exit, Step, Unit
from node_agent.host.clock cimport raw_ns
from node_agent.host.trace_ring cimport RingFacts

cdef bint COMPILED

cdef class Executor:
    cdef public Engine engine
    cdef public object now, spend, failed, operate, drain, barrier
    cdef public long long due_ns
    cdef public bint stepwise
    cdef bint _real
    cdef long long _instant(self)
    @cython.locals(engine=Engine, unit=Unit, step=Step, start_ns=cython.longlong, end_ns=cython.longlong, due_ns=cython.longlong, next_job=Job, lineage=tuple)
    cpdef Job run(self, Job job, RingFacts facts=*)
