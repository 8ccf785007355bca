cimport cython

from node_agent.link.arrived cimport Arrived

cdef class Memory:
    cdef public long long _keep
    cdef public dict _young, _elder, _before
    @cython.locals(young=dict)
    cpdef bint is_fresh(self, tuple key) except -1

cdef class Receiver:
    cdef public Memory _memory
    cdef public object _ack_every, _acked, _granted, last, duplicates, refused
    cdef public bint superseded, began_anew
    @cython.locals(memory=Memory, each=Arrived, fresh=list)
    cpdef on_batch(self, first, tuples)
    cpdef ack(self, credit_bytes, bint drained, large_bytes=*)
