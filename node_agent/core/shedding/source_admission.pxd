from node_agent.core.shedding.policing cimport ArrivalPolice

cdef int POLICY_ARRIVALS

cdef class SourceAdmission:
    cdef public object limit, name, on_full
    cdef public bint only_polices
    cdef public ArrivalPolice _police
    cpdef int police(self, long long at_ns) except -1
