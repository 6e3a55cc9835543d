"""The declarations of _columns.pyx that other modules use."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t

from spaseq.results.native._match cimport Text

# columns/building.pxi


@cython.final
cdef class Strings:
    cdef Text text
    cdef int32_t* ends          # count + 1 offsets: string i is text[ends[i]:ends[i + 1]]
    cdef uint8_t* present       # a bit per string: 0 for null
    cdef readonly size_t count
    cdef size_t room
    cdef size_t nulls

    cdef int close(self) except -1
    cdef int add(self, const char* text, size_t size) except -1
    cdef int skip(self) except -1
    cdef int _next(self, bint present) except -1
    cdef int clear(self) noexcept
