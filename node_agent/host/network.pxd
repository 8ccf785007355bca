cimport cython

cdef extern from *:
    """
    #include <errno.h>
    #include <math.h>
    #include <sys/epoll.h>
    #define MOST_EVENTS_AT_ONCE 64
    static int look(int epoll, double seconds, int *found) {
        struct epoll_event events[MOST_EVENTS_AT_ONCE];
        int count, place, timeout_ms = 0;
        if (seconds > 0) timeout_ms = seconds < 1e6 ? (int)ceil(seconds * 1000.0) : 1000000000;
        Py_BEGIN_ALLOW_THREADS
        count = epoll_wait(epoll, events, MOST_EVENTS_AT_ONCE, timeout_ms);
        Py_END_ALLOW_THREADS
        if (count < 0) {
            if (errno != EINTR) {
                PyErr_SetFromErrno(PyExc_OSError);
                return -1;
            }
            return PyErr_CheckSignals() ? -1 : 0;
        }
        for (place = 0; place < count; place++) {
            found[2 * place] = events[place].data.fd;
            found[2 * place + 1] = (int)events[place].events;
        }
        return count;
    }
    """
    int look(int epoll, double seconds, int *found) except -1  # descriptors and masks; a signal ends it early

cdef bint COMPILED

cdef class SocketNetwork:
    cdef public object _epoll
    cdef public dict _handlers
    cdef object _neighbours
    cdef int _descriptor
    cdef int[128] _events  # descriptors and masks
    @cython.locals(count=int, place=int)
    cpdef long long wait(self, double seconds) except? -1
    cdef _serve(self, int descriptor, int mask)
