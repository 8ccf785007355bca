cimport cython

cdef unsigned long long MADE_BITS, MOST_MADE
cdef long long JOBS, ARRIVALS, DECISIONS, MOST_PAUSE_NS

cdef class Mean:
    cdef public long long total, count, limit
    cpdef add(self, long long total, long long count=*)
    cpdef halve(self)
    cpdef inherit(self, Mean other)
    cpdef long long of(self)

cdef class ExitMeter:
    cdef public Mean passed
    cdef public long long queued_ns
    @cython.locals(passed=Mean)
    cpdef long long passing(self, long long work_ns)

cdef class UnitMeter:
    cdef public NodeMeter node
    cdef public long long number, declared_ns, sub_deadline_ns, declared_slack_ns, slack_ns, due_ns, work_ns, place_ns
    cdef public long long steps, pause_ns, excess
    cdef public bint ends, urgent, yields, on_trial
    cdef public object service, arrivals, doubted_ns
    cdef public tuple exits
    cdef public Mean cost, gap
    cdef bint _came
    cdef long long _last_ns
    @cython.locals(cost=Mean)
    cpdef long long expected_ns(self)
    cpdef arrived(self, long long at_ns)
    @cython.locals(done_ns=cython.longlong, count=cython.longlong, exit_=ExitMeter, passed=Mean)
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
