# Values have any type.
cimport cython

from node_agent.operators.plain_json cimport left

cdef Py_ssize_t _SHORT

cdef _encode_plain(value)
@cython.locals(size=Py_ssize_t)
cpdef decode_json(data)
cdef _scan(text)
cpdef encode_json(value)
