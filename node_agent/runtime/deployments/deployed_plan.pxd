from node_agent.core.engine.engine cimport Engine
from node_agent.core.model cimport Job
from node_agent.runtime.executor cimport Executor

cdef class EngineSlot:
    cdef public tuple policy
    cdef public Engine engine
    cdef public Executor executor
    cdef public Job parked
