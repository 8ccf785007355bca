from node_agent.wire.frames cimport FrameReader

cdef class Connection:
    cdef public bint closed
    cdef public object descriptor, shared, stream
    cdef public FrameReader reader
    cdef public bytearray unwritten
