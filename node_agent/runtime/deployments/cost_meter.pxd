cimport cython

from node_agent.core.model cimport Step

cdef int SLOTS_BITS
cdef long long FAR_NS

cpdef long long bucket(long long ns)

cdef class Cost:
    cdef public object name, operator_id, of
    cdef public bint degraded
    cdef public long long emulate_ns, tuples, total_ns, elapsed_ns, worst_ns, later_worst_ns
    cdef public double squares_ns2
    cdef public dict counts
    cpdef add(self, long long spent_ns, long long elapsed_ns)

cdef class Ages:
    cdef public object name, source_id
    cdef public dict counts
    cdef public long long worst_ns
    cpdef add(self, long long at_ns, long long origin_ns)

cdef class CostMeter:
    cdef public object clock, checking
    cdef public dict costs
    cdef public long long mark_ns, wall_ns, began_ns
    cpdef start(self)
    cdef tuple _checked(self)
    @cython.locals(
        cost=Cost, mark_ns=cython.longlong, emulate_ns=cython.longlong, spent_ns=cython.longlong,
        checks_ns=cython.longlong, waited_ns=cython.longlong,
    )
    cpdef spend(self, Step step, tuple lineage, bint raised)
