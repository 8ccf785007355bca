from node_agent.runtime.links.credit cimport Backpressure

cdef class PeerLink:
    cdef public object shared
    cdef public Backpressure backpressure
    cdef public object name, address, sender, pending, index, flags
    cdef public object _security, _routed, _connection, _since_ns, _away_ns, _patience_ns, _unprobed_ns, _held_bytes
    cdef public dict _dirty, _flight
