"""Groups in the order of one register's value; see _order.pyx."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from spaseq.nfa._tecs cimport Cell, instant_t
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._terms cimport TermRecord, term_t
from spaseq.rdf._window cimport WindowTerms

# What of a term can be compared with numbers.
cdef enum Rank:
    NUMERIC     # its value
    OTHERWISE   # what no number is compared with: dates and the like, and NaN
    UNBOUND
    TEXT        # equal only to the same term, whose hash stands for a value

cdef Rank rank_of(TermRecord* record, double* value) noexcept nogil


cdef inline uint64_t class_of(uint32_t hash, Rank rank) noexcept nogil:
    """What groups share that are in one order of values."""
    return <uint64_t>hash << 2 | <uint64_t>rank


@cython.final
cdef class Registers:
    cdef WindowTerms window
    cdef Dictionary dictionary

    cdef Rank rank(self, term_t term, double* value) noexcept nogil


cdef struct Leaf:
    uint64_t alike      # the hash of the registers an index reads, and a rank
    double value
    uint32_t[2] child   # groups: what of its subtree comes before it, and after


# The union of all groups in a subtree, see _sums.pyx; stale: so are those of all subtrees it is in.
cdef struct Subtotal:
    Cell* cell          # NULL: nobody
    instant_t latest
    bint stale


cdef enum:
    MOST_HELD = 7       # after some 128 groups the walk begins again

# A walk over the groups of some values.
cdef struct Span:
    Leaf position           # where it began
    double most
    uint32_t root
    uint32_t[MOST_HELD] path    # groups that are to come, the next one last
    uint32_t depth
    bint whole              # none had to be left out


@cython.final
cdef class Order:
    cdef Leaf* leaves           # per group
    cdef Subtotal* subtotals    # per group; NULL: nobody has asked for any
    cdef uint32_t room          # of these
    cdef uint32_t* roots        # by hash: mask + 1 of them
    cdef uint32_t mask

    cdef int reserve(self, uint32_t room) except -1 nogil
    cdef int keep_subtotals(self) except -1 nogil
    cdef int spoil(self, uint32_t group) noexcept nogil
    cdef int enter(self, uint32_t group, uint32_t hash, Rank rank, double value) noexcept nogil
    cdef int put(self, uint32_t group) noexcept nogil
    cdef int leave(self, uint32_t group) noexcept nogil
    cdef uint32_t seek(
        self, Span* span, uint32_t hash, Rank rank, double least, double most
    ) noexcept nogil
    cdef uint32_t next_of(self, Span* span) noexcept nogil
    cdef uint32_t _descend(self, Span* span, uint32_t group) noexcept nogil
    cdef int _hold(self, Span* span, uint32_t node) noexcept nogil
    cdef uint32_t _top(self, Span* span) noexcept nogil
    cdef bint _before(self, uint32_t node, const Leaf* position, uint32_t group) noexcept nogil
