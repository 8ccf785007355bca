cimport cython

from node_agent.link.arrived cimport Arrived

cdef class Memory:
    cdef public object _keep
    cdef public dict _young, _elder, _before
    cpdef bint is_fresh(self, tuple key)

cdef class Receiver:
    cdef public Memory _memory
    cdef public object _ack_every, _acked, _granted, last, duplicates, refused
    cdef public bint superseded, began_anew
