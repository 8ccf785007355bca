cdef class PacePolice:
    cdef public list due, young
    cdef public object interval, most, parts, rounds, slack, tuples
    cdef public Py_ssize_t position
    cpdef bint conforms(self, object at_ns)
    cpdef count(self, object at_ns)

cdef class SpanPolice:
    cdef public object at, counts, held, latest, least

cdef class ArrivalPolice:
    cdef public object _declared, name, shed, spans
    cdef public tuple paces
    cpdef bint passes(self, object at_ns)
