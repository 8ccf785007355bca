cimport cython

cpdef long long end_to_end_deadline(unit, tuple lineage)
