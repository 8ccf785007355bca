cimport cython

from node_agent.core.engine.engine cimport Engine
from node_agent.core.model cimport CompiledPlan
from node_agent.runtime.context cimport Shared
from node_agent.runtime.deployments.deployed_plan cimport EngineSlot

cdef long long BESIDE_LARGE, LEAST_CREDIT, LARGE_BYTES, JOB_BYTES, WEIGH_NS

cdef class Backpressure:
    cdef public Shared shared
    cdef public object plans
    cdef list _engine_slots
    cdef dict _by_loaded
    cdef public long long busy_ns, overhead_ns, next_ns
    cdef public long long held_bytes, sink_bytes, pending
    cdef public long long _encoded_16, _weight_16, _left
    cdef public long long _queued_weight
    cdef public object _more_16
    cdef public bint _weighed
    cdef public long long _weighed_ns, _measured_ns
    cdef public object _forgotten_ns, _plans, _base_bytes, _peak_bytes, _turn
    cpdef arrived(self, long long size, object payload=*)
    @cython.locals(engine_slot=EngineSlot, ready=cython.longlong)
    cdef long long _ready(self) except -1
    cdef long long _job_bytes(self) except -1
    cdef long long _known_bytes(self) except -1
    @cython.locals(loaded=CompiledPlan, jobs=cython.longlong, other=cython.longlong)
    cdef long long _bytes(self, long long job_bytes) except -1
    @cython.locals(job_bytes=cython.longlong, limit_bytes=cython.longlong, queued=cython.longlong)
    cpdef long long room(self) except -1
    @cython.locals(
        encoded=cython.longlong, most_jobs=cython.longlong, granted=cython.longlong, large=cython.longlong,
    )
    cpdef long long credit(self, long long senders, bint sheds=*) except -1
    cpdef measure(self, long long at_ns)
