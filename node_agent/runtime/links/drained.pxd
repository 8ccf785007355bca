cimport cython

from node_agent.core.engine.engine cimport Engine
from node_agent.core.model cimport CompiledPlan, Route
from node_agent.runtime.links.credit cimport Backpressure

cdef object _PUNCTUATION

cdef class Arrivals:
    cdef Backpressure _backpressure
    cdef public list _first, _then
    cpdef add(self, Route route, bint admits, tuple lineage, object payload, long long size, long long sent_ns=*)
    @cython.locals(loaded=CompiledPlan, engine=Engine, route=Route, admits=bint, lineage=tuple, size=cython.longlong,
                   sent_ns=cython.longlong)
    cdef _apply(self, long long at_ns, list arrivals)
