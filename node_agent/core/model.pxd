cimport cython

from node_agent.core.meters cimport UnitMeter

cdef bint COMPILED

cdef class DeadlineRule:
    cpdef long long next_ns(self, long long at_ns, bint idle)

cdef class Exit:
    cdef public object index, operator_id
    cdef public Route route
    cdef public long long one, outdated_ns
    cdef public Unit only, alone

cdef class Step:
    cdef public bint bare, plain, policed
    cdef public object call, cost_ns, operator_id, join, late, sides, collects, police
    cdef public Exit exit

cdef class Unit:
    # What each tuple asks for stands first: with many units each line of the processor's cache is a wait.
    cdef public object arrivals
    cdef public UnitMeter meter
    cdef public DeadlineRule rule
    cdef public long long offset_ns, sub_deadline_ns, runs
    cdef public unsigned long long ran
    cdef public Step last_step
    cdef public tuple chain, punctuated_exits
    cdef public object loaded
    cdef public bint has_end_hooks
    cdef public long long late_ns, deadline_ns
    cdef public unsigned long long id, flags
    cdef public object queue, gate, spec, utilisation, collects, join_shedder, rest
    cdef public long long useful_ns, hang_ns
    cdef public tuple exits
    cdef public object shed, lost, unfused, timed, timed_ns, worst_ns, _span, _span_worst_ns, _before_ns, inputs, absences

cdef class Route:
    cdef public CompiledPlan loaded
    cdef public object joins, stream_shedders, entry_shedders
    cdef public tuple units, sides, sends, outputs
    cdef public bint marked, simple, counted
    cdef public long long stream, admitted, refused, shed, lost
    cdef public object delayed_removal, admission

cdef class CompiledPlan:
    cdef public object plan, shedders
    cdef public unsigned long long flags
    cdef public list units, joins, windows
    cdef public dict routes, source_routes

cdef class Job:
    cdef public long long key_ns, rank, tie, release_ns, number, origin_ns
    cdef public Unit unit
    cdef public object payload
    cdef public tuple lineage

@cython.locals(job=Job)
cpdef Job new_job(long long key_ns, long long release_ns, long long number, Unit unit, tuple lineage, object payload)

cpdef bint before(Job job, Job other) noexcept
