cimport cython

from node_agent.core.facts cimport Facts
from node_agent.core.model cimport Route, Unit

cdef bint COMPILED
cdef unsigned long long RAN, SHED
cdef long long RECORD_BYTES

cdef class Ledger:
    cdef public Facts facts
    cdef public dict shed_by, lost_by, degraded
    @cython.locals(source=cython.ulonglong, epoch=cython.ulonglong, seq=cython.ulonglong, lo_ns=cython.longlong,
                   hi_ns=cython.longlong)
    cpdef admitted(self, long long at_ns, Route route, tuple lineage, unsigned long long size, long long sent_ns)
    @cython.locals(source=cython.ulonglong, epoch=cython.ulonglong, seq=cython.ulonglong, ordinal=cython.longlong,
                   lo_ns=cython.longlong, hi_ns=cython.longlong, facts=Facts)
    cpdef delivered(self, long long at_ns, Route route, object output, tuple lineage)
    @cython.locals(facts=Facts, position=cython.longlong, source=cython.ulonglong, epoch=cython.ulonglong, seq=cython.ulonglong, ordinal=cython.ulonglong)
    cpdef ran(
        self, unsigned long long flags, unsigned long long unit, tuple lineage, long long release_ns,
        long long start_ns, long long end_ns, long long due_ns, long long decision, unsigned long long outputs,
    )
    cpdef shed(self, long long at_ns, Unit unit, tuple lineage, long long policy, unsigned long long operator_id=*)
    cpdef _count_shed(self, long long policy)
