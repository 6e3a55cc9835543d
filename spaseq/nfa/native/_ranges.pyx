# cython: language_level=3, boundscheck=False, wraparound=False
"""Between which numbers the rows of a block lie, in columns whose values filters compute with.

A filter that no numbers from there can satisfy passes over the whole block. So where nothing is
known of what a filter computes, it still is not asked of every row (Moerkotte: *Small Materialized
Aggregates*, VLDB 1998). Blocks are rows with consecutive numbers, and blocks of blocks.

Invariant: every kept row lies in the box of its blocks; what has been forgotten may still widen
them. There are twice as many blocks in a ring as rows fill, for both ends may be begun only.
Cost: constant for each row.
"""

from libc.math cimport INFINITY

from spaseq.nfa.native._range_index cimport record_in
from spaseq.rdf._intervals cimport real_at
from spaseq.rdf._memory cimport give_back, zeroed
from spaseq.rdf._numerals cimport is_numeral, real_of
from spaseq.rdf._terms cimport term_t


cdef Ranges* ranges_new(columns, registers) except NULL:
    """The blocks of rows that `rows_new` gave: for their columns, and the registers of these."""
    cdef Ranges* ranges = <Ranges*>zeroed(1, sizeof(Ranges))
    cdef uint32_t i
    ranges.width = <uint32_t>len(columns)
    ranges.columns = <uint32_t*>zeroed(ranges.width, sizeof(uint32_t))
    ranges.registers = <uint32_t*>zeroed(ranges.width, sizeof(uint32_t))
    for i in range(ranges.width):
        ranges.columns[i], ranges.registers[i] = columns[i], registers[i]
    return ranges


cdef int ranges_free(Ranges* ranges) noexcept nogil:
    """Give back what `ranges_new` gave; NULL is nothing."""
    cdef uint32_t level
    if ranges == NULL:
        return 0
    give_back(ranges.columns)
    give_back(ranges.registers)
    for level in range(LEVELS):
        give_back(ranges.levels[level])
    give_back(ranges)
    return 0


cdef int ranges_add(Ranges* ranges, const KeptRows* rows, Registers registers) except -1 nogil:
    """The newest of the rows falls into its blocks."""
    cdef uint64_t number = rows.end - 1
    cdef const term_t* row
    cdef uint32_t level, i
    cdef double real = 0
    cdef bint known
    cdef Interval* interval
    if ranges.room != rows.room:
        _grow(ranges, rows)
    row = rows.labels[number & (rows.room - 1)].row
    for i in range(ranges.width):
        known = _real_of(registers, row[ranges.columns[i]], &real)
        for level in range(LEVELS):
            interval = block_of(ranges, number, level) + i
            if block_start(number, level) == number:
                interval.low, interval.high = INFINITY, -INFINITY
            interval.low = min(interval.low, real if known else -INFINITY)
            interval.high = max(interval.high, real if known else INFINITY)
    return 0


cdef inline bint _real_of(Registers registers, term_t term, double* real) noexcept nogil:
    """The number that a kept term is; False: it is none that a box may hold."""
    if is_numeral(term):
        real[0] = real_of(term)
        return True
    return term != 0 and real_at(record_in(registers, term), real)


cdef int _grow(Ranges* ranges, const KeptRows* rows) except -1 nogil:
    """There is room for more rows: the blocks of those that were there move."""
    cdef Ranges wider = ranges[0]
    cdef uint64_t number, size, count, newest = rows.end - 2
    cdef uint32_t level, i
    wider.room = rows.room
    for level in range(LEVELS):
        count = block_count(wider.room, level) * wider.width
        wider.levels[level] = <Interval*>zeroed(count, sizeof(Interval))
        for number in range(count):
            wider.levels[level][number] = Interval(INFINITY, -INFINITY)
    for level in range(LEVELS):
        size = <uint64_t>1 << WIDER * (level + 1)
        number = block_start(rows.first, level)
        while ranges.room and number <= newest:
            for i in range(wider.width):
                block_of(&wider, number, level)[i] = block_of(ranges, number, level)[i]
            number += size
        give_back(ranges.levels[level])
    ranges[0] = wider
    return 0
