"""The triples that an event entails, for the views of a summary graph; see _entailed_views.pyx."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._terms cimport term_t

# Placeholders for terms in an emission: parts of the triple to which the rule is applied.
cdef enum:
    THE_SUBJECT = 0xFFFFFFFFu
    THE_PREDICATE = 0xFFFFFFFEu
    THE_OBJECT = 0xFFFFFFFDu
# Targets that are not views: from LINK on, the properties of chains; from REAPPLIED on, by group,
# the triples that chains derive, to which the rules are applied in turn.
cdef enum:
    LINK = 0x80000000u
    REAPPLIED = 0xC0000000u

# A triple that a rule derives.
cdef struct Emission:
    uint32_t target
    term_t subject
    term_t predicate
    term_t object
    bint named          # only if the object of the triple is not a literal

# A triple for a view, or of a property of a chain.
cdef struct Derived:
    uint32_t target
    term_t subject
    term_t predicate
    term_t object
    uint32_t next_of_subject    # of links: the next in the list of this end, plus 1; 0: none
    uint32_t next_of_object

cdef struct Span:
    uint32_t first
    uint32_t end

# What a predicate entails: emissions for every triple, and the columns, plus 1, of what it entails
# together with a class as subject or object; 0: none.
cdef struct Rule:
    Span emissions
    uint32_t by_subject
    uint32_t by_object

cdef enum Side:
    AHEAD = 1
    BACK = 2

# An entry of the hash table of the pairs of the background graph: where a link leads from an end.
cdef struct Keyed:
    uint32_t kind       # twice the link, and the Side: never 0
    term_t end
    Span span

cdef struct Joined:
    uint32_t other      # the link that continues this one
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
    cdef term_t* beyond             # the ends to which the background graph leads
    cdef Span* ahead                # per link: the joins it begins
    cdef Span* back                 # per link: the joins it ends
    cdef Joined* joins
    cdef Derived* triples           # derived from the current event
    cdef uint32_t count, room
    cdef uint32_t* places           # of `triples` by hash, plus 1
    cdef uint32_t place_mask
    cdef uint32_t* heads            # of links, plus 1: by subject, then as many by object
    cdef uint32_t head_mask
    cdef uint32_t linked            # the number of links among `triples`
    cdef uint32_t reapplied             # the target of what chains derive
    cdef readonly uint32_t max_derived     # the limit of triples derived from one event

    cdef int derive(self, EventBatch batch, uint32_t event) except -1 nogil
    cdef int _apply(
        self, EventBatch batch, uint32_t group, term_t subject, term_t predicate, term_t object
    ) except -1 nogil
    cdef int _emit(
        self, EventBatch batch, Span span, term_t subject, term_t predicate, term_t object
    ) except -1 nogil
    cdef int _add(
        self, uint32_t target, term_t subject, term_t predicate, term_t object
    ) except -1 nogil
    cdef int _join_link(self, uint32_t at) except -1 nogil
    cdef int _list_link(self, uint32_t number) noexcept nogil
    cdef int _grow_heads(self, uint32_t before) except -1 nogil
    cdef Span _pairs(self, uint32_t link, Side side, term_t end) noexcept nogil
    cdef int _grow_places(self) except -1 nogil
    cdef int _collect_rules(
        self, uint32_t group, rules, list numbers, dict emissions, dict columns
    ) except -1
    cdef Span _collect_emissions(self, given, list numbers, dict emissions) except *
    cdef int _lay_out_rules(self, emissions, columns) except -1
    cdef int _lay_out_joins(self, pairs, beyond, ahead, back) except -1
