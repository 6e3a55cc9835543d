"""Zone maps: the least and greatest values of the rows of a block, in columns that filters read.

A filter that no value in these intervals satisfies skips the whole block, so an opaque filter need
not be evaluated for every row (Moerkotte: *Small Materialized Aggregates*, VLDB 1998). Blocks are
runs of consecutively numbered rows, and blocks of blocks.

Invariant: every buffered row lies in the box of its blocks; removed rows may still widen them. A
ring has twice as many blocks as its rows fill, since the blocks at both ends may be partial. Cost:
constant for each row.
"""

from libc.math cimport INFINITY

from spaseq.rdf.native._literals cimport real_at
from spaseq.rdf.native._terms cimport mem_calloc, mem_free


cdef Ranges* ranges_alloc(columns, registers) except NULL:
    """Create the zone maps of a buffer, for some columns and the registers that take them."""
    cdef Ranges* ranges = <Ranges*>mem_calloc(1, sizeof(Ranges))
    cdef uint32_t i
    ranges.width = <uint32_t>len(columns)
    ranges.columns = <uint32_t*>mem_calloc(ranges.width, sizeof(uint32_t))
    ranges.registers = <uint32_t*>mem_calloc(ranges.width, sizeof(uint32_t))
    for i in range(ranges.width):
        ranges.columns[i], ranges.registers[i] = columns[i], registers[i]
    return ranges


cdef int ranges_free(Ranges* ranges) noexcept nogil:
    """Free zone maps; NULL is allowed."""
    cdef uint32_t level
    if ranges == NULL:
        return 0
    mem_free(ranges.columns)
    mem_free(ranges.registers)
    for level in range(ZONE_LEVELS):
        mem_free(ranges.levels[level])
    mem_free(ranges)
    return 0


cdef int ranges_add(Ranges* ranges, const RowBuffer* rows, TermResolver registers) except -1 nogil:
    """Extend the blocks of the newest row by its values."""
    cdef uint64_t number = rows.end - 1
    cdef const term_t* row
    cdef uint32_t level, i
    cdef double real = 0
    cdef bint known
    cdef Interval* interval
    if ranges.room != rows.room:
        _grow_ranges(ranges, rows)
    row = rows.labels[number & (rows.room - 1)].row
    for i in range(ranges.width):
        known = _real_of(registers, row[ranges.columns[i]], &real)
        for level in range(ZONE_LEVELS):
            interval = intervals_of(ranges, number, level) + i
            if block_start(number, level) == number:
                interval.low, interval.high = INFINITY, -INFINITY
            interval.low = min(interval.low, real if known else -INFINITY)
            interval.high = max(interval.high, real if known else INFINITY)
    return 0


cdef inline bint _real_of(TermResolver registers, term_t term, double* real) noexcept nogil:
    """The number that a stored term denotes; False if an interval cannot hold it."""
    if is_numeral(term):
        real[0] = real_of(term)
        return True
    return term != 0 and real_at(record_in(registers, term), real)


cdef int _grow_ranges(Ranges* ranges, const RowBuffer* rows) except -1 nogil:
    """Grow with the buffer: copy the blocks of the older rows."""
    cdef Ranges wider = ranges[0]
    cdef uint64_t number, size, count, newest = rows.end - 2
    cdef uint32_t level, i
    wider.room = rows.room
    for level in range(ZONE_LEVELS):
        count = block_count(wider.room, level) * wider.width
        wider.levels[level] = <Interval*>mem_calloc(count, sizeof(Interval))
        for number in range(count):
            wider.levels[level][number] = Interval(INFINITY, -INFINITY)
    for level in range(ZONE_LEVELS):
        size = <uint64_t>1 << ZONE_BITS * (level + 1)
        number = block_start(rows.first, level)
        while ranges.room and number <= newest:
            for i in range(wider.width):
                intervals_of(&wider, number, level)[i] = intervals_of(ranges, number, level)[i]
            number += size
        mem_free(ranges.levels[level])
    ranges[0] = wider
    return 0
