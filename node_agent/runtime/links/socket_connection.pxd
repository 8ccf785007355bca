from node_agent.runtime.context cimport Shared
from node_agent.wire.frames cimport FrameReader

cdef class Connection:
    cdef public bint closed
    cdef public object descriptor, stream
    cdef public Shared shared
    cdef public FrameReader reader
    cdef public bytearray unwritten
    cpdef read(self)
    cpdef write(self, object data)
    cpdef _send(self, object data)
