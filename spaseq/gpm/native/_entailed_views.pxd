"""What an event's triples stand for under entailment; see _entailed_views.pyx."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._terms cimport term_t

# In place of a term: that part of the triple the rule is applied to.
cdef enum:
    THE_SUBJECT = 0xFFFFFFFFu
    THE_PREDICATE = 0xFFFFFFFEu
    THE_OBJECT = 0xFFFFFFFDu
# Targets that are no views: properties of chains, and from AGAIN on, by group, the triples that
# chains make, which go through the rules themselves.
cdef enum:
    LINK = 0x80000000u
    AGAIN = 0xC0000000u

# A triple that a rule makes.
cdef struct Emission:
    uint32_t target
    term_t subject
    term_t predicate
    term_t object
    bint named          # only where the object of the triple at hand is no literal

# A triple for a view, or of a property of a chain.
cdef struct Derived:
    uint32_t target
    term_t subject
    term_t predicate
    term_t object
    uint32_t next_of_subject    # links: the next with the same end, plus 1; 0 ends a list
    uint32_t next_of_object

cdef struct Span:
    uint32_t first
    uint32_t end

# What follows from a predicate, and the columns, plus 1, that say what follows from it with a
# class for subject or object; 0 for none.
cdef struct Rule:
    Span emissions
    uint32_t by_subject
    uint32_t by_object

cdef enum Side:
    AHEAD = 1
    BACK = 2

# An entry of the hash table of the background's pairs: what a link leads to from an end.
cdef struct Keyed:
    uint32_t kind       # twice the link, and the Side: never 0
    term_t end
    Span span

cdef struct Joined:
    uint32_t other      # the link that goes on from this one
    term_t result


@cython.final
cdef class Deriver:
    cdef readonly Dictionary dictionary
    cdef Rule* rules                # of each group: one per permanent term below `known`
    cdef Rule* otherwise            # per group: of all other predicates
    cdef term_t known
    cdef uint32_t groups
    cdef Emission* emissions
    cdef uint32_t emission_count
    cdef Span* columns              # each with a span for every permanent term below `ends`
    cdef term_t ends
    cdef Keyed* pairs
    cdef uint32_t pair_mask
    cdef term_t* beyond             # the ends that the background leads to
    cdef Span* ahead                # per link: the joins it begins
    cdef Span* back                 # per link: the joins it ends
    cdef Joined* joins
    cdef Derived* found             # of the event at hand
    cdef uint32_t count, room
    cdef uint32_t* places           # of `found` by hash, plus 1
    cdef uint32_t place_mask
    cdef uint32_t* heads            # of links, plus 1: by subject, then as many by object
    cdef uint32_t head_mask
    cdef uint32_t linked            # links of the event at hand
    cdef uint32_t again             # the target of what chains make
    cdef readonly uint32_t most     # triples that may follow from one event

    cdef int derive(self, EventBatch batch, uint32_t event) except -1 nogil
    cdef int _apply(
        self, EventBatch batch, uint32_t group, term_t subject, term_t predicate, term_t object
    ) except -1 nogil
    cdef int _emit(
        self, EventBatch batch, Span span, term_t subject, term_t predicate, term_t object
    ) except -1 nogil
    cdef int _enter(
        self, uint32_t target, term_t subject, term_t predicate, term_t object
    ) except -1 nogil
    cdef int _link(self, uint32_t at) except -1 nogil
    cdef int _hang(self, uint32_t number) noexcept nogil
    cdef int _relink(self, uint32_t before) except -1 nogil
    cdef Span _pairs(self, uint32_t link, Side side, term_t end) noexcept nogil
    cdef int _rehash(self) except -1 nogil
    cdef int _enter_rules(
        self, uint32_t group, rules, list numbers, dict emissions, dict columns
    ) except -1
    cdef Span _entered(self, given, list numbers, dict emissions) except *
    cdef int _take_rules(self, emissions, columns) except -1
    cdef int _take_joins(self, pairs, beyond, ahead, back) except -1
