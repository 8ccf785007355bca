cimport cython

from node_agent.core.model cimport Route
from node_agent.link.arrived cimport Arrived
from node_agent.link.clock_offset cimport PeerClock
from node_agent.link.outcomes cimport OutcomeLog
from node_agent.link.receiver cimport Receiver
from node_agent.wire.frames cimport Batch
from node_agent.runtime.links.roles cimport Context

cdef int LOOKED_EVERY
cdef tuple NOTHING

cdef class Feed:
    cdef public object ages, codec, decode, deployed, source
    cdef public str codec_name
    cdef public long long id, max_age_ns
    cdef public unsigned long long stamp
    cdef public Route route
    cdef public bint counted, refuses

cdef class SourceRole:
    cdef public Context context
    cdef public object connection
    cdef public Receiver receiver
    cdef public OutcomeLog outcome_log
    cdef public str name, source_name, codec_name
    cdef public object boot, key
    cdef public tuple _found
    cdef public Feed _feed
    cdef public PeerClock clock
    @cython.locals(arrived=Arrived, feed=Feed, outcome_log=OutcomeLog, link_seq=cython.longlong, left=int,
                   room=cython.longlong, sent_ns=cython.longlong, why=str)
    cpdef on_batch(self, long long at_ns, Batch batch)
    cdef Feed _feed_now(self)
    @cython.locals(lo_ns=cython.longlong, hi_ns=cython.longlong, seq=cython.longlong, context=Context)
    cdef str _admit(self, long long at_ns, Feed feed, Arrived arrived, long long link_seq, bint full, long long sent_ns)
    cdef tuple _against(self, long long at_ns, Feed feed, Arrived arrived, bint full, long long lo_ns, long long hi_ns)
