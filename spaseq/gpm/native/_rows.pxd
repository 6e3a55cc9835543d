"""Tables of rows of term numbers; see _rows.pyx."""

from libc.stdint cimport uint32_t, uint64_t

from spaseq.rdf._memory cimport Arena
from spaseq.rdf._terms cimport term_t

# The bytes that the tables of one graph pattern may still take.
cdef struct RowBudget:
    size_t left
    int pattern         # its number, for the error

# `count` rows of `width` terms each, 0 is unbound.
cdef struct Rows:
    term_t* cells
    RowBudget* budget
    uint32_t width
    uint32_t count
    uint32_t room

# Rows by the hash of their keys: position + 1 of the first, and of the next; 0: none. A position
# has the bit MORE if there is a next one, which saves a read of memory.
cdef enum:
    MORE = 0x80000000u

cdef struct RowIndex:
    uint32_t* heads     # NULL: no index; the rows are few, or there is no key
    uint32_t* next
    uint32_t mask

cdef int rows_init(Rows* rows, uint32_t width, RowBudget* budget) except -1
cdef void rows_free(Rows* rows) noexcept nogil
cdef int require(const RowBudget* budget, size_t size) except -1 nogil
cdef int rows_grow(Rows* rows) except -1 nogil
cdef int index_rows(
    RowIndex* index, const Rows* rows, const uint32_t* keys, uint32_t key_count, Arena* arena
) except -1 nogil
cdef bint overlap(const term_t* left, const term_t* right, uint32_t width) noexcept nogil
cdef int drop_duplicates(Rows* rows, uint32_t columns, Arena* arena) except -1 nogil


cdef inline term_t* row_at(const Rows* rows, uint32_t i) noexcept nogil:
    return rows.cells + <size_t>i * rows.width


cdef inline term_t* row_new(Rows* rows) except NULL nogil:
    """Append a row, which is not initialised; earlier rows may move."""
    if rows.count == rows.room:
        rows_grow(rows)
    rows.count += 1
    return row_at(rows, rows.count - 1)


cdef inline uint32_t key_hash(
    const term_t* row, const uint32_t* keys, uint32_t key_count
) noexcept nogil:
    cdef uint64_t hash = 0
    cdef uint32_t i
    for i in range(key_count):
        hash = (hash ^ row[keys[i]]) * 0x9E3779B97F4A7C15u
    return <uint32_t>(hash >> 32)
