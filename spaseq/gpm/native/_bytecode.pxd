"""The declarations of _bytecode.pyx that other modules use."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t, uint8_t

from spaseq.gpm.native._functions cimport NativeFunction, Operand
from spaseq.rdf.native._literals cimport Box, Datatype, Interval
from spaseq.rdf.native._terms cimport Arena, Dictionary, EventBatch, TermRecord, term_t

# bytecode/numeric_filter.pxi

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

# bytecode/bytecode.pxi

# Decides the EXISTS `number` of an expression for a row: 1 or 0, or -2 with a Python exception set.
# It may intern terms in the batch. The code negates NOT EXISTS.
cdef struct Existence:
    int (*holds)(void* context, int number, const term_t* row) noexcept nogil
    void* context

cdef struct Instruction:
    uint8_t operation           # an Operation of _functions.pxd
    int32_t operand

# A function that the code calls.
cdef struct Callee:
    NativeFunction native
    const Datatype* datatype    # the target of a cast, else NULL
    int arguments


cdef class Expression:
    cdef readonly object code       # the ExpressionCode it was linked from
    cdef readonly int columns       # the least length of a row
    cdef readonly int exists        # the number of EXISTS
    cdef Instruction* program
    cdef int length
    cdef int comparing              # LESS or LESS_EQUAL if the code compares two terms only; else 0
    cdef NumericCondition numeric   # the numeric filter; None if the code has none
    cdef Operand* constants
    cdef Operand* stack             # stack[0] is unused, stack[1] has the result
    cdef Callee* callees
    cdef list functions             # the Python function of each callee
    cdef term_t* row                # the argument of `evaluate`, `test` and so on
    cdef Dictionary dictionary
    cdef Arena scratch              # the texts that one evaluation computes
    cdef uint64_t error_count       # evaluations without a value
    cdef bint has_value             # whether some evaluation had one
    cdef object example             # column -> term of the first row without a value

    # The effective boolean value for a row of `columns` terms of the batch, 0 where unbound: 1
    # true, 0 false, -1 an error of SPARQL, -2 a Python exception. `exists` may be NULL for code
    # without EXISTS.
    cdef int truth(
        self, EventBatch batch, const term_t* row, Existence* exists
    ) except -2 nogil
    # Whether it may be true for some row whose unbound columns lie in the box.
    cdef bint may_hold(self, EventBatch batch, const term_t* row, const Box* box) noexcept nogil
    # The value as a term of the batch, interned if it is new; 0: an error, or unbound.
    cdef int value(
        self, EventBatch batch, const term_t* row, Existence* exists, term_t* result
    ) except -2 nogil
    cdef const TermRecord* _number(
        self, EventBatch batch, const term_t* row, int place, TermRecord* numerals
    ) noexcept nogil
    cdef int _compare(self, EventBatch batch, const term_t* row) noexcept nogil
    cdef int _run(self, EventBatch batch, const term_t* row, Existence* exists) except -2 nogil
    cdef int count_error(self, EventBatch batch, const term_t* row) except -1 nogil
    cdef int _keep_example(self, EventBatch batch, const term_t* row) except -1 with gil
    cdef int _call(self, int number, Operand* arguments) except -2 nogil
    cdef int _call_python(self, int number, Operand* arguments) except -2 with gil
    cdef int _link(self, object code, object calls) except -1
    cdef int _fill(self, EventBatch batch, object row) except -1
