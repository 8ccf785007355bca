cdef class SocketNetwork:
    cdef public object _epoll
    cdef public dict _handlers
