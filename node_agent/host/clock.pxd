cdef bint COMPILED

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int CLOCK_MONOTONIC_RAW
    int clock_gettime(int clock, timespec* at)

cdef inline long long raw_ns() noexcept:
    """The clock of `now_ns`."""
    cdef timespec at
    clock_gettime(CLOCK_MONOTONIC_RAW, &at)
    return <long long>at.tv_sec * 1_000_000_000 + at.tv_nsec
