"""Sets of pairs of numbers that are emptied in constant time; see _marks.pyx."""

from libc.stdint cimport uint32_t, uint64_t

# A slot is in use if it has the current stamp.
cdef struct Marks:
    uint64_t* keys
    uint32_t* stamps
    uint32_t room       # a power of two; 0 before the first reservation
    uint32_t stamp

cdef int marks_reserve(Marks* marks, uint64_t count) except -1 nogil
cdef int marks_empty(Marks* marks) noexcept nogil
cdef void marks_free(Marks* marks) noexcept nogil


cdef inline bint mark(Marks* marks, uint32_t first, uint32_t second) noexcept nogil:
    """Mark a pair; True if it was not marked before. There must be room."""
    cdef uint64_t key = <uint64_t>first << 32 | second
    cdef uint32_t mask = marks.room - 1
    cdef uint32_t at = <uint32_t>((key * 0x9E3779B97F4A7C15u) >> 32) & mask
    while marks.stamps[at] == marks.stamp:
        if marks.keys[at] == key:
            return False
        at = (at + 1) & mask
    marks.keys[at] = key
    marks.stamps[at] = marks.stamp
    return True
