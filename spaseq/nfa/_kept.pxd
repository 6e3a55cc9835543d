"""Rows that somebody may look back at; see _kept.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from spaseq.nfa._tecs cimport Label, instant_t
from spaseq.rdf._terms cimport term_t

cdef enum:
    UNINDEXED = 0xFFFFFFFF

# Rows by the term in one column: chains from newer to older through buckets.
cdef struct Index:
    uint32_t column
    uint64_t* newest    # per bucket
    uint64_t* older     # per row


@cython.final
cdef class KeptRows:
    cdef Label** labels         # a ring of `room`: rows first … end - 1
    cdef instant_t* instants    # of the same
    cdef uint8_t* keyed         # whether they bind all partition variables
    cdef readonly uint64_t first
    cdef readonly uint64_t end
    cdef uint32_t room
    cdef Index* indexes
    cdef uint32_t index_count

    cdef int add(self, Label* label, bint keyed) except -1
    cdef int forget(self, instant_t bound) noexcept nogil
    cdef uint64_t before(self, instant_t high) noexcept nogil
    cdef uint64_t until(self, int64_t micros) noexcept nogil
    cdef uint64_t newest_like(self, uint32_t index, term_t term) noexcept nogil
    cdef uint64_t older_like(self, uint32_t index, uint64_t number) noexcept nogil
    cdef int _grow(self) except -1
    cdef int _enter(self, Index* index, uint64_t number) noexcept nogil
