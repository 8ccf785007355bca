cimport cython

from node_agent.core.facts cimport Facts
from node_agent.core.model cimport CompiledPlan
from node_agent.link.sender cimport Sender as TypedSender  # the name stays for tests that put another one there
from node_agent.runtime.context cimport Shared
from node_agent.runtime.links.credit cimport Backpressure
from node_agent.runtime.links.socket_connection cimport Connection

cdef class PeerLink:
    cdef public Shared shared
    cdef public Backpressure backpressure
    cdef public TypedSender sender
    cdef public Connection _connection
    cdef public object name, address, pending
    cdef public unsigned long long index, flags
    cdef public object _security, _routed, _since_ns, _away_ns, _patience_ns
    cdef public long long _unprobed_ns, _held_bytes
    cdef public dict _dirty, _flight
    @cython.locals(loaded=CompiledPlan)
    cpdef sent(self, long long at_ns, long long link_seq, tuple tag)
    @cython.locals(flight=dict, taken=list)
    cpdef acked(self, long long at_ns, object upto)
    cpdef gave_up(self, long long at_ns, object link_seq, tuple tag)
    cpdef lost(self, long long at_ns, tuple tag, object cause)
    cpdef offer(self, long long at_ns, object data, long long give_up_ns, tuple tag)
    cpdef heartbeat(self, long long at_ns, object data, long long give_up_ns, tuple tag)
    @cython.locals(connection=Connection, sender=TypedSender, more=bint, held_bytes=cython.longlong)
    cpdef bint flush(self, long long at_ns) except -1
    @cython.locals(connection=Connection)
    cdef bint _write(self, long long at_ns) except -1
    @cython.locals(connection=Connection)
    cpdef on_ready(self, at_ns, long long mask)
    @cython.locals(sender=TypedSender)
    cdef _on_frame(self, at_ns, object frame)
    @cython.locals(connection=Connection)
    cdef _close_if_gone(self, at_ns)
