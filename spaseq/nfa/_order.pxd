"""Groups in the order of one register's value; see _order.pyx."""

cimport cython
from libc.stdint cimport uint8_t, uint32_t

from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._terms cimport TermRecord, term_t
from spaseq.rdf._window cimport WindowTerms

# What of a term can be compared with numbers.
cdef enum Rank:
    NUMERIC     # its value
    OTHERWISE   # what no number is compared with: dates, strings, …, and NaN
    UNBOUND

cdef Rank rank_of(TermRecord* record, double* value) noexcept nogil


@cython.final
cdef class Registers:
    cdef WindowTerms window
    cdef Dictionary dictionary

    cdef Rank rank(self, term_t term, double* value) noexcept nogil


@cython.final
cdef class Order:
    cdef uint32_t root
    cdef uint32_t* left         # per group: its subtrees
    cdef uint32_t* right
    cdef uint32_t* hashes       # of the registers an index reads
    cdef uint8_t* ranks
    cdef double* values

    cdef int reserve(self, uint32_t room) except -1
    cdef int enter(self, uint32_t group, uint32_t hash, Rank rank, double value) noexcept nogil
    cdef int leave(self, uint32_t group) noexcept nogil
    cdef uint32_t at(self, uint32_t hash, Rank rank, double value, uint32_t group) noexcept nogil
    cdef bint _before(
        self, uint32_t node, uint32_t hash, uint8_t rank, double value, uint32_t group
    ) noexcept nogil
