"""Sets of pairs of numbers that are emptied in constant time.

A hash table with open addressing. Each slot has the stamp of the set in which it was marked, so a
new stamp empties all slots. Searches along paths and DISTINCT aggregates empty their sets many
times for one event.

Invariant: at most half of the slots are in use; the memory is that of the largest set so far.
"""

from libc.string cimport memset

from spaseq.rdf.native._terms cimport mem_free, mem_grow

# A slot is in use if it has the current stamp.
cdef struct Marks:
    uint64_t* keys
    uint32_t* stamps
    uint32_t room       # a power of two; 0 before the first reservation
    uint32_t stamp


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


cdef int marks_reserve(Marks* marks, uint64_t count) except -1 nogil:
    """Make room for `count` pairs. A set that moves is emptied.

    Raises:
        MemoryError: for more than a billion pairs.
    """
    cdef uint32_t room = 64
    while room < 2 * count:
        if room == <uint32_t>1 << 31:
            with gil:
                raise MemoryError("one event needs a set of more than a billion nodes or values")
        room *= 2
    if room <= marks.room:
        return 0
    marks.keys = <uint64_t*>mem_grow(marks.keys, room, sizeof(uint64_t), b"visited nodes")
    marks.stamps = <uint32_t*>mem_grow(marks.stamps, room, sizeof(uint32_t), b"visited nodes")
    marks.room = room
    memset(marks.stamps, 0, room * sizeof(uint32_t))
    marks.stamp = 1
    return 0


cdef int marks_empty(Marks* marks) noexcept nogil:
    marks.stamp += 1
    if marks.stamp == 0:    # it has wrapped
        memset(marks.stamps, 0, marks.room * sizeof(uint32_t))
        marks.stamp = 1
    return 0


cdef void marks_free(Marks* marks) noexcept nogil:
    mem_free(marks.keys)
    mem_free(marks.stamps)
