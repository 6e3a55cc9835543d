"""Running aggregates as numbers; see _aggregates.pyx."""

from libc.stdint cimport uint32_t

from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._memory cimport Arena
from spaseq.rdf._terms cimport term_t
from spaseq.rdf._window_terms cimport WindowTerms

cdef enum Fold:
    COUNTED
    SUMMED
    AVERAGED
    LEAST
    GREATEST
    SAMPLED
    JOINED

cdef struct Aggregate:
    Fold fold
    bint distinct           # repeated values are ignored
    const char* separator   # JOINED: the text between two values
    uint32_t separator_size


cdef class NativeAggregates:
    cdef WindowTerms window
    cdef Dictionary dictionary
    cdef Arena scratch          # texts of one step
    cdef Aggregate* aggregates  # per register; zero if it is no aggregate
    cdef list separators        # owns the bytes of `Aggregate.separator`
    cdef term_t zero, empty

    # `state` after one more value, which is a term of the window or a permanent term.
    cdef term_t add(
        self, EventBatch batch, uint32_t register, term_t state, term_t value
    ) except 0 nogil
    # The value of a state for expressions; 0: unbound.
    cdef int finish(
        self, EventBatch batch, uint32_t register, term_t state, term_t* value
    ) except -1 nogil
    cdef term_t number(self, uint32_t count) except 0 nogil
    cdef term_t known(self, const char* text, uint32_t size) except 0 nogil
    cdef term_t _fold(
        self, EventBatch batch, const Aggregate* how, term_t state, term_t value
    ) except 0 nogil
    cdef term_t _sum(self, EventBatch batch, term_t total, term_t value) except 0 nogil
    cdef term_t _better(
        self, EventBatch batch, term_t best, term_t value, int wanted
    ) except 0 nogil
    cdef term_t _joined(
        self, EventBatch batch, const Aggregate* how, term_t state, term_t value
    ) except 0 nogil
    cdef int _mean(self, EventBatch batch, term_t state, term_t* value) except -1 nogil
