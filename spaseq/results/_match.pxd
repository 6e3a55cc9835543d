"""One result; see _match.pyx."""


cdef class Match:
    cdef readonly str query
    cdef readonly tuple variables
    cdef readonly object graph
    cdef readonly object boolean
    cdef readonly object kb_version
    # None until one of them is first read.
    cdef object found_start, found_end, found_bindings, found_events

    cdef int decode(self) except -1
