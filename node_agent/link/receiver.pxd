cimport cython

from node_agent.link.arrived cimport Arrived

cdef class Memory:
    cdef public long long _keep
    cdef public dict _young, _elder, _before
    @cython.locals(young=dict)
    cpdef bint is_fresh(self, tuple key) except -1

cdef class Acknowledgement:
    cdef public long long upto, credit_bytes

cdef class Receiver:
    cdef public Memory _memory
    cdef public long long _ack_every, _acked, _granted, last
    cdef public object duplicates, refused
    cdef public bint superseded, began_anew
    @cython.locals(memory=Memory, each=Arrived, fresh=list, old=cython.longlong)
    cpdef on_batch(self, long long first, tuples)
    @cython.locals(behind=cython.longlong, granted=cython.longlong, moved=bint)
    cpdef ack(self, long long credit_bytes, bint drained, long long large_bytes=*)

cpdef long long share_credit(
    long long free_bytes, long long all_bytes, long long senders, long long most=*, long long least=*
) except -1
