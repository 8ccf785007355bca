cdef long long LARGE
cdef int NUMBER, ITEM, KEY, ESCAPED

cpdef long long left(object value, long long most, int depth) except? -2
