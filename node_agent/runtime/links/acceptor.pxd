cimport cython

from node_agent.host.trace_ring cimport Ring
from node_agent.runtime.links.roles cimport Context
from node_agent.runtime.links.sink_role cimport SinkRole
from node_agent.runtime.links.socket_connection cimport Connection

cdef class Accepted:
    cdef public Connection connection
    cdef public Acceptor acceptor
    cdef public long long since_ns, heard_ns
    cdef public bint counted
    cdef public object host, role, era, rest
    cpdef on_ready(self, long long at_ns, long long mask)
    @cython.locals(acceptor=Acceptor, at_ns=cython.longlong)
    cdef _read(self)
    cdef _on_frame(self, long long at_ns, object frame)
    cpdef close_if_gone(self)

cdef class Acceptor:
    cdef public Context context
    cdef public Ring _ring
    cdef public object _security, _forgotten, _listener, _inbox, _outcome_logs
    cdef public dict _promised, _accepted, _strangers, sinks, touched, waiting
    cdef public list _closed
    cdef public long long room
    cdef public bint unflushed
    cpdef begin_drain(self)
    @cython.locals(taken=list, promised=bint, accepted=Accepted, written=cython.longlong)
    cpdef bint promise_acknowledgements(self) except -1
    @cython.locals(accepted=Accepted, sink=SinkRole, sinks=list)
    cpdef flush(self, long long at_ns)
