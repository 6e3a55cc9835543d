"""A buffer of rows that guards, conjunctions and lazy joins search; see _row_buffer.pyx."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from spaseq.nfa.native._tecs cimport Label, instant_t
from spaseq.rdf._terms cimport term_t

cdef enum:
    UNINDEXED = 0xFFFFFFFF

# Rows by the term in one column: a chain per bucket, from newer to older rows.
cdef struct Index:
    uint32_t column
    uint64_t* newest    # per bucket
    uint64_t* older     # per row


cdef struct RowBuffer:
    Label** labels          # a ring of `room`: rows first … end - 1
    instant_t* instants     # instants of the rows
    uint8_t* keyed          # whether the rows bind all partition variables
    uint64_t first
    uint64_t end
    uint32_t room
    Index* indexes
    uint32_t index_count

cdef RowBuffer* rows_alloc(columns) except NULL
cdef int rows_free(RowBuffer* rows) noexcept nogil
cdef int rows_add(RowBuffer* rows, Label* label, bint keyed) except -1 nogil
cdef int rows_expire(RowBuffer* rows, instant_t bound) noexcept nogil
cdef uint64_t row_before(const RowBuffer* rows, instant_t high) noexcept nogil
cdef uint64_t row_until(const RowBuffer* rows, int64_t micros) noexcept nogil
cdef uint64_t chain_newest(const RowBuffer* rows, uint32_t index, term_t term) noexcept nogil
cdef uint64_t chain_older(const RowBuffer* rows, uint32_t index, uint64_t number) noexcept nogil
