"""Which triples some query can use; see _relevance.pyx."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._terms cimport term_t

cdef enum Keep:
    NOTHING     # no query can use a triple of this predicate
    SOME        # only those with certain objects
    EVERY       # all of them


cdef class Relevance:
    cdef readonly Dictionary dictionary
    cdef readonly bint everything   # some pattern may use any triple
    cdef uint8_t* by_predicate      # a Keep per permanent term below `size`
    cdef term_t size
    cdef uint64_t* pairs            # hash table of predicate << 32 | object; 0 is an empty slot
    cdef uint32_t mask

    cdef int _enter(self, term_t predicate, term_t value) except -1


cdef inline Keep keep_of(Relevance relevance, term_t predicate) noexcept nogil:
    """What to keep of the triples with this predicate (any number of the batch, or 0)."""
    if relevance.everything:
        return Keep.EVERY
    if predicate >= relevance.size:
        return Keep.NOTHING
    return <Keep>relevance.by_predicate[predicate]


cdef inline uint32_t pair_hash(term_t predicate, term_t value) noexcept nogil:
    """Spreads the thousands of classes of one hierarchy, whose numbers follow each other."""
    return ((predicate * 2654435769u) ^ (value * 2246822519u)) >> 7


cdef inline bint keeps_object(Relevance relevance, term_t predicate, term_t value) noexcept nogil:
    """Whether a triple is kept whose predicate has Keep.SOME."""
    cdef uint64_t pair = <uint64_t>predicate << 32 | value
    cdef uint32_t place = pair_hash(predicate, value) & relevance.mask
    while relevance.pairs[place]:
        if relevance.pairs[place] == pair:
            return True
        place = (place + 1) & relevance.mask
    return False
