"""The numeric filter: conditions over numbers; see _numeric_filter.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t

from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._intervals cimport Box, Interval
from spaseq.rdf._terms cimport term_t

# An exact number, a double, or a truth, which is 0 or 1 in `digits`.
cdef struct Number:
    int64_t digits
    double real
    int places      # the number of decimal places of `digits`; IS_DOUBLE: `real` counts

# An operation on two numbers, or on `left` alone.
cdef struct NumericStep:
    uint8_t operation
    uint16_t left
    uint16_t right


@cython.internal
@cython.final
cdef class NumericCondition:
    cdef int first              # the number of the first variable; constants have lower numbers
    cdef int variable_count
    cdef int step_count
    cdef int* columns           # of the variables
    cdef NumericStep* steps
    cdef Number* numbers        # constants, variables, and the results of the steps
    cdef Interval* intervals    # the same for the rows of a box

    cdef int decide(self, EventBatch batch, const term_t* row) noexcept nogil
    cdef bint may_hold(self, EventBatch batch, const term_t* row, const Box* box) noexcept nogil
    cdef bint _interval_of(
        self, Interval* to, EventBatch batch, const term_t* row, int column, const Box* box
    ) noexcept nogil


cdef NumericCondition condition_of(object code, Dictionary dictionary)
