cimport cython

from node_agent.runtime.links.credit cimport Backpressure
from node_agent.runtime.links.roles cimport Context


cdef class SinkRole:
    cdef public Context context
    cdef public object connection, name, boot, output_name, clock, codec_name, _waiting
    cdef public long long _offset, _most_bytes, _bytes, _next
    cpdef bint takes(self, object data)
    cpdef deliver(self, object data)
    @cython.locals(load=Backpressure)
    cdef bint _holds_too_much(self)
    @cython.locals(load=Backpressure, change=cython.longlong)
    cdef _hold(self, object data, int sign=*)
    @cython.locals(batch=list, size=cython.longlong)
    cpdef bint flush(self, long long at_ns)
