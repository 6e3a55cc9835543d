"""Which triples some query can use; see _relevance.pyx."""

from libc.stdint cimport uint8_t, uint32_t

from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._terms cimport term_t

cdef enum Keep:
    NOTHING     # no query can use a triple of this predicate
    EVERY       # some query may use any triple of this predicate
    SOME        # queries can use only triples with certain objects


cdef class Relevance:
    cdef readonly Dictionary dictionary
    cdef readonly bint everything   # some pattern may use any triple
    cdef uint32_t* by_predicate     # per permanent term below `size`: a Keep, or SOME + its number
    cdef term_t size
    cdef uint32_t* by_object        # per permanent term below `objects`: a set of numbers
    cdef term_t objects
    cdef uint8_t* sets              # a bit for each number, in `width` bytes; the first has none
    cdef uint32_t width

    cdef int _enter_objects(self, dict predicates_of, uint32_t width) except -1


cdef inline Keep keep_of(Relevance relevance, term_t predicate) noexcept nogil:
    """Which triples with this predicate to store; the predicate may be any term number, or 0."""
    if relevance.everything:
        return Keep.EVERY
    if predicate >= relevance.size:
        return Keep.NOTHING
    return <Keep>min(relevance.by_predicate[predicate], <uint32_t>Keep.SOME)


cdef inline bint keeps_object(Relevance relevance, term_t predicate, term_t value) noexcept nogil:
    """Whether to store a triple whose predicate has Keep.SOME."""
    cdef uint32_t number = relevance.by_predicate[predicate] - Keep.SOME
    if value >= relevance.objects:
        return False
    return relevance.sets[
        relevance.by_object[value] * <size_t>relevance.width + number // 8
    ] >> number % 8 & 1
