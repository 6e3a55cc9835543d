"""The triples that queries can use, for readers to prune the others.

A triple is relevant if some pattern has its predicate, or a variable in predicate position; if
every pattern with that predicate has a constant object, only with such an object. Pruning changes
no result (docs/architecture.md section 5): an event stores its count of statements, so that an
event whose triples are all pruned is still not empty.

Objects that are relevant with the same set of predicates share the set, so that thousands of
classes of one hierarchy need one small number each. Cost: two array accesses.
"""


cdef class Relevance:
    """The predicates, and for some of them the objects, that patterns name."""

    def __cinit__(self, Dictionary dictionary not None, uses=None):
        """`uses` has (predicate, object or None) of each triple pattern; None: prune nothing."""
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
        self.by_predicate = <uint32_t*>mem_calloc(self.size, sizeof(uint32_t))
        for predicate in every:
            self.by_predicate[predicate] = Keep.EVERY
        predicates_of = {}
        for number, predicate in enumerate(some):
            self.by_predicate[predicate] = Keep.SOME + number
            for value in some[predicate]:
                predicates_of.setdefault(value, []).append(number)
        self._enter_objects(predicates_of, len(some) // 8 + 1)

    def __dealloc__(self):
        mem_free(self.by_predicate)
        mem_free(self.by_object)
        mem_free(self.sets)

    cdef int _enter_objects(self, dict predicates_of, uint32_t width) except -1:
        """Build the set of predicates, by number, with which each object is relevant."""
        cdef term_t value
        cdef uint32_t number, place
        self.width = width
        sets = {(): 0}
        for value, numbers in predicates_of.items():
            sets.setdefault(tuple(sorted(numbers)), len(sets))
        self.objects = max(predicates_of, default=0) + 1
        self.by_object = <uint32_t*>mem_calloc(self.objects, sizeof(uint32_t))
        self.sets = <uint8_t*>mem_calloc(len(sets), width)
        for value, numbers in predicates_of.items():
            self.by_object[value] = sets[tuple(sorted(numbers))]
        for numbers, place in sets.items():
            for number in numbers:
                self.sets[place * <size_t>width + number // 8] |= 1 << number % 8
        return 0
