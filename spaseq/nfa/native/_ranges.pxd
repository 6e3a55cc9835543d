"""Zone maps over the blocks of a row buffer; see _ranges.pyx."""

from libc.stdint cimport uint32_t, uint64_t

from spaseq.nfa.native._row_buffer cimport RowBuffer
from spaseq.nfa.native._range_index cimport TermResolver
from spaseq.rdf._intervals cimport Box, Interval

cdef enum:
    ZONE_LEVELS = 2
    ZONE_BITS = 4   # a block has 2**4 rows, one of the next level 2**4 blocks

# Rings of blocks, for those numeric columns of buffered rows that filters compute with.
cdef struct Ranges:
    uint32_t* columns
    uint32_t* registers         # registers that take the columns
    uint32_t width
    uint32_t room               # of the row buffer
    Interval* levels[ZONE_LEVELS] # per block, an interval for each column

cdef Ranges* ranges_alloc(columns, registers) except NULL
cdef int ranges_free(Ranges* ranges) noexcept nogil
cdef int ranges_add(Ranges* ranges, const RowBuffer* rows, TermResolver registers) except -1 nogil


cdef inline bint ends_block(uint64_t number, uint32_t level) noexcept nogil:
    """Whether a row is the last of its block."""
    return ((number + 1) & ((<uint64_t>1 << ZONE_BITS * (level + 1)) - 1)) == 0


cdef inline uint64_t block_start(uint64_t number, uint32_t level) noexcept nogil:
    """The number of the first row of a row's block."""
    return number & ~((<uint64_t>1 << ZONE_BITS * (level + 1)) - 1)


cdef inline uint64_t block_count(uint32_t room, uint32_t level) noexcept nogil:
    """The number of blocks in a ring: a power of two."""
    return max(2 * <uint64_t>room >> ZONE_BITS * (level + 1), 2)


cdef inline Interval* block_of(
    const Ranges* ranges, uint64_t number, uint32_t level
) noexcept nogil:
    """The intervals of a row's block."""
    cdef uint64_t block = number >> ZONE_BITS * (level + 1) & (block_count(ranges.room, level) - 1)
    return ranges.levels[level] + block * ranges.width


cdef inline Box box_of(const Ranges* ranges, uint64_t number, uint32_t level) noexcept nogil:
    """The intervals of a row's block, by register."""
    return Box(ranges.registers, block_of(ranges, number, level), ranges.width)
