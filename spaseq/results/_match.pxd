"""One result; see _match.pyx."""


cdef class Match:
    cdef readonly str query
    cdef readonly tuple variables
    cdef readonly object boolean
    cdef readonly object kb_version
    cdef readonly object results
    cdef readonly bint closed_by_end
    # None until they are first read.
    cdef object found_start, found_end, found_bindings, found_events, found_graph

    cdef int decode_times(self) except -1
    cdef int decode_bindings(self) except -1
    cdef int decode_events(self) except -1
    cdef int decode_graph(self) except -1
