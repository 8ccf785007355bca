cimport cython

from node_agent.core.meters cimport NodeMeter, UnitMeter
from node_agent.core.model cimport Job, before
from node_agent.core.policies.hopeless cimport hopeless
from node_agent.core.policies.policy_parts cimport Stay
from node_agent.core.policies.slack cimport EndToEnd

cdef long long MOST_DECISION_NS, PPM

cdef class FeedForward(Stay):
    cdef NodeMeter _meter
    cdef EndToEnd _order
    cdef long long _began_ns, _share_ppm
    cpdef begins(self, Job job, Job other, long long at_ns)
    @cython.locals(meter=UnitMeter, rival=UnitMeter, decision_ns=cython.longlong, cost_ns=cython.longlong,
        youngest_ns=cython.longlong, room_ns=cython.longlong)
    cpdef bint goes_on(self, Job head, Job other, long long at_ns)
