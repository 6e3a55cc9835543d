# cython: language_level=3, boundscheck=False, wraparound=False
"""What the queries can use of an event, for readers to leave out the rest.

A triple is of use if some pattern has its predicate, or a variable in the predicate's
place; where every pattern with that predicate names the object, only with such an object.
Leaving out the others changes no result (docs/architecture.md): an event keeps its count of
statements, so that one whose triples are all left out is still an event with facts.

Objects that are of use with the same predicates share a set of these, so that thousands of
classes of one hierarchy take one number each, which stays near. Cost: two look-ups of arrays.
"""

from spaseq.rdf._memory cimport give_back, zeroed


cdef class Relevance:
    """The predicates, and for some of them the objects, that patterns name."""

    def __cinit__(self, Dictionary dictionary not None, uses=None):
        """`uses`: (predicate, object or None) of each triple pattern; None: keep everything."""
        cdef term_t predicate, value
        self.dictionary = dictionary
        self.everything = uses is None
        some, every = {}, set()
        for p, o in uses or ():
            if o is None:
                every.add(dictionary.intern(p))
            else:
                some.setdefault(dictionary.intern(p), set()).add(dictionary.intern(o))
        for predicate in every:
            some.pop(predicate, None)
        self.size = max([*some, *every], default=0) + 1
        self.by_predicate = <uint32_t*>zeroed(self.size, sizeof(uint32_t))
        for predicate in every:
            self.by_predicate[predicate] = Keep.EVERY
        predicates_of = {}
        for number, predicate in enumerate(some):
            self.by_predicate[predicate] = Keep.SOME + number
            for value in some[predicate]:
                predicates_of.setdefault(value, []).append(number)
        self._enter_objects(predicates_of, len(some) // 8 + 1)

    def __dealloc__(self):
        give_back(self.by_predicate)
        give_back(self.by_object)
        give_back(self.sets)

    cdef int _enter_objects(self, dict predicates_of, uint32_t width) except -1:
        """The set of predicates, by their numbers, that each object is of use with."""
        cdef term_t value
        cdef uint32_t number, place
        self.width = width
        sets = {(): 0}
        for value, numbers in predicates_of.items():
            sets.setdefault(tuple(sorted(numbers)), len(sets))
        self.objects = max(predicates_of, default=0) + 1
        self.by_object = <uint32_t*>zeroed(self.objects, sizeof(uint32_t))
        self.sets = <uint8_t*>zeroed(len(sets), width)
        for value, numbers in predicates_of.items():
            self.by_object[value] = sets[tuple(sorted(numbers))]
        for numbers, place in sets.items():
            for number in numbers:
                self.sets[place * <size_t>width + number // 8] |= 1 << number % 8
        return 0
