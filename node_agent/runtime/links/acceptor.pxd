cimport cython

from node_agent.runtime.links.roles cimport Context
from node_agent.runtime.links.sink_role cimport SinkRole
from node_agent.runtime.links.socket_connection cimport Connection

cdef class Accepted:
    cdef public Connection connection
    cdef public Acceptor acceptor
    cdef public object since_ns, host, role, counted, era, rest, heard_ns
    cpdef on_ready(self, at_ns, long long mask)
    @cython.locals(acceptor=Acceptor)
    cdef _read(self)
    cdef _on_frame(self, at_ns, object frame)
    cpdef close_if_gone(self)

cdef class Acceptor:
    cdef public Context context
    cdef public object _security, _ring, _forgotten, _listener, _inbox, _outcome_logs
    cdef public dict _promised, _accepted, _strangers, sinks, touched, waiting
    cdef public list _closed
    cdef public long long room
    cdef public bint unflushed
    cpdef begin_drain(self)
    @cython.locals(taken=list, promised=bint, accepted=Accepted)
    cpdef promise_acknowledgements(self)
    @cython.locals(accepted=Accepted, sink=SinkRole, sinks=list)
    cpdef flush(self, long long at_ns)
