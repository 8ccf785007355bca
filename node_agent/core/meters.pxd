cimport cython

cdef unsigned long long MADE_BITS, MOST_MADE
cdef long long JOBS, ARRIVALS, DECISIONS, MOST_PAUSE_NS

cdef class Mean:
    cdef public long long total, count, limit
    cpdef add(self, long long total, long long count=*)
    cpdef halve(self)
    cpdef inherit(self, Mean other)
    cpdef long long of(self)

cdef class ExitMeter(Mean):
    cdef public long long queued_ns
    cpdef long long passing(self, long long work_ns)

cdef class UnitMeter:
    # What each tuple asks for stands first: with many units each line of the processor's cache is a wait.
    cdef public NodeMeter node
    cdef public long long place_ns, steps, slack_ns, costs
    cdef long long _costs_ns
    cdef public long long work_ns
    cdef public tuple exits
    cdef public bint on_trial, yields, ends, urgent
    cdef bint _came
    cdef public object doubted_ns
    cdef public long long number, declared_ns, due_ns, excess
    cdef long long _last_ns, _gaps, _gaps_ns
    cdef public object service, arrivals
    cdef public long long declared_slack_ns, sub_deadline_ns, pause_ns
    cpdef long long expected_ns(self)
    cpdef ran(self, long long tuples, long long ran_ns)
    cpdef arrived(self, long long at_ns)
    @cython.locals(done_ns=cython.longlong, count=cython.longlong, exit_=ExitMeter)
    cpdef made(self, unsigned long long counts)
    cpdef tried(self, long long ran_ns)
    @cython.locals(own=ExitMeter, known=ExitMeter)
    cpdef inherit(self, UnitMeter other)

cdef class NodeMeter:
    cdef public Mean decision, cost
    cdef public long long ended, missed, changes, looks, looked_ns, done_ns, ranks, least_ns, _number
    cdef public list units
    cpdef ran(self, UnitMeter unit, long long jobs, long long missed, long long ran_ns)
    cpdef decided(self, long long decision_ns)
    cpdef shed(self)
