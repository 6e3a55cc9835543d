# cython: language_level=3, boundscheck=False, wraparound=False
"""What the queries can use of an event, for readers to leave out the rest.

A triple is of use if some pattern has its predicate, or a variable in the predicate's
place; where every pattern with that predicate names the object, only with such an object.
Leaving out the others changes no result (docs/architecture.md): an event keeps its count of
statements, so that one whose triples are all left out is still an event with facts.
"""

from libc.string cimport memset

from spaseq.rdf._memory cimport give_back, take


cdef class Relevance:
    """The predicates, and for some of them the objects, that patterns name."""

    def __cinit__(self, Dictionary dictionary not None, uses=None):
        """`uses`: (predicate, object or None) of each triple pattern; None: keep everything."""
        self.dictionary = dictionary
        self.everything = uses is None
        pairs = {
            (dictionary.intern(p), 0 if o is None else dictionary.intern(o)) for p, o in uses or ()
        }
        self.size = dictionary.permanent.count
        self.mask = 1
        while self.mask < 2 * len(pairs):
            self.mask *= 2
        self.by_predicate = <uint8_t*>take(self.size)
        self.pairs = <uint64_t*>take(self.mask * sizeof(uint64_t))
        if self.by_predicate == NULL or self.pairs == NULL:
            raise MemoryError
        memset(self.by_predicate, Keep.NOTHING, self.size)
        memset(self.pairs, 0, self.mask * sizeof(uint64_t))
        self.mask -= 1
        for predicate, value in pairs:
            self._enter(predicate, value)

    def __dealloc__(self):
        give_back(self.by_predicate)
        give_back(self.pairs)

    cdef int _enter(self, term_t predicate, term_t value) except -1:
        cdef uint32_t place = pair_hash(predicate, value) & self.mask
        if value == 0:
            self.by_predicate[predicate] = Keep.EVERY
            return 0
        if self.by_predicate[predicate] == Keep.NOTHING:
            self.by_predicate[predicate] = Keep.SOME
        while self.pairs[place]:
            place = (place + 1) & self.mask
        self.pairs[place] = <uint64_t>predicate << 32 | value
        return 0
