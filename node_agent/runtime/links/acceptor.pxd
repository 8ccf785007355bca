from node_agent.runtime.links.socket_connection cimport Connection
from node_agent.runtime.links.roles cimport Context

cdef class Accepted:
    cdef public Connection connection
    cdef public object acceptor, since_ns, host, role, counted, era, rest, heard_ns

cdef class Acceptor:
    cdef public Context context
    cdef public object _security, _ring, _forgotten, _listener, _inbox, _outcome_logs
    cdef public dict _promised, _accepted, _strangers, sinks, touched, waiting
    cdef public list _closed
    cdef public long long room
    cdef public bint unflushed
