cimport cython

cdef bint COMPILED
cdef long long LEAST_NS

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int CLOCK_MONOTONIC
    int CLOCK_BOOTTIME
    int clock_gettime(int clock, timespec* at)

cdef inline long long clock_ns(int clock) noexcept:
    """Of Python's `time.clock_gettime_ns`."""
    cdef timespec at
    clock_gettime(clock, &at)
    return at.tv_sec * 1_000_000_000 + at.tv_nsec

cdef class Suspension:
    cdef object _now, _awake, _through
    cdef long long _since_ns, _most_ns
    cdef bint _real
    cdef public object steady_since_ns
    @cython.locals(before_ns=cython.longlong, at_ns=cython.longlong, after_ns=cython.longlong,
                   since_ns=cython.longlong, slept_ns=cython.longlong)
    cpdef look(self)
