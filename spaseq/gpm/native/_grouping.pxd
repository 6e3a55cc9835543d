"""Aggregates of a sub-query over the rows of one event; see _grouping.pyx."""

from libc.stdint cimport uint8_t, uint32_t

cimport cython
from cpython.ref cimport PyObject

from spaseq.gpm.native._marks cimport Marks
from spaseq.gpm.native._rows cimport Rows
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._terms cimport term_t

# What a column of a GROUP computes. `spaseq.gpm.native.flatten` has the same list, and is compared
# with this one when `_grouping` is imported.
cpdef enum AggregateKind:
    COUNT_ROWS
    COUNT
    SUM
    AVG
    MIN
    MAX
    SAMPLE
    GROUP_CONCAT

# One aggregate; the Expressions are kept alive by the matcher, NULL where it has none.
cdef struct Column:
    AggregateKind kind
    uint32_t slot           # of the result, and of the value so far
    int argument_slot       # -1: the argument is an expression
    PyObject* argument
    PyObject* fold          # from the value so far and the next one
    PyObject* other         # MIN, MAX: the opposite test; GROUP_CONCAT: the first value
    PyObject* final         # AVG: from the sum and the number of values
    bint distinct
    Marks seen              # DISTINCT: (group, value)

# The state of one aggregate in one group, besides the value so far.
cdef struct Tally:
    uint32_t count
    bint failed


@cython.final
cdef class Grouping:
    """The operator GROUP of one graph pattern."""

    cdef uint32_t* keys
    cdef uint32_t key_count
    cdef Column* columns
    cdef uint32_t column_count
    cdef uint32_t value_slot    # of the next value, in `work`
    cdef term_t* work           # a row for `fold`, `other` and `final`
    cdef term_t empty_text
    cdef uint32_t* slots        # groups by the hash of their keys, + 1; 0: free
    cdef uint32_t slot_room     # a power of two
    cdef Tally* tallies         # per group and column
    cdef uint32_t tally_room    # groups

    cdef int group(self, EventBatch batch, const Rows* left, Rows* out) except -1 nogil
    cdef int _reserve(self, uint32_t rows) except -1 nogil
    cdef int _begin(self, Rows* out, const term_t* row) except -1 nogil
    cdef uint32_t _group_of(
        self, Rows* out, const term_t* row, uint32_t mask
    ) except? 0xFFFFFFFF nogil
    cdef int _fold(
        self, EventBatch batch, Column* column, Tally* tally, const term_t* row, uint32_t group,
        term_t* so_far,
    ) except -1 nogil
    cdef int _replaces(
        self, EventBatch batch, Column* column, term_t value, term_t so_far
    ) except -1 nogil
    cdef int _finish(
        self, EventBatch batch, Column* column, const Tally* tally, term_t* result
    ) except -1 nogil
    cdef term_t _applied(
        self, EventBatch batch, PyObject* expression, uint32_t slot, term_t so_far, term_t value
    ) except? 0 nogil
    cdef term_t _integer(self, EventBatch batch, uint32_t number) except 0 nogil
