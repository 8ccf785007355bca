cimport cython

from node_agent.core.facts cimport Facts
from node_agent.core.model cimport Route, Unit

cdef class Ledger:
    cdef public Facts facts
    cdef public dict shed_by, lost_by, degraded
    @cython.locals(source=cython.ulonglong, epoch=cython.ulonglong, seq=cython.ulonglong, lo_ns=cython.longlong,
                   hi_ns=cython.longlong)
    cpdef admitted(self, long long at_ns, Route route, tuple lineage, unsigned long long size, long long sent_ns)
    @cython.locals(source=cython.ulonglong, epoch=cython.ulonglong, seq=cython.ulonglong, ordinal=cython.longlong,
                   lo_ns=cython.longlong, hi_ns=cython.longlong, facts=Facts)
    cpdef delivered(self, long long at_ns, Route route, object output, tuple lineage)
