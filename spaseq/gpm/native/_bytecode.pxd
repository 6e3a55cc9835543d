"""SPARQL expressions over rows of term numbers; see _bytecode.pyx."""

from libc.stdint cimport uint32_t, uint64_t

from spaseq.gpm.native._code cimport Instruction
from spaseq.gpm.native._functions cimport Native
from spaseq.gpm.native._numeric_filter cimport NumericCondition
from spaseq.gpm.native._operators cimport Operand
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._intervals cimport Box
from spaseq.rdf._literals cimport Datatype
from spaseq.rdf._memory cimport Arena
from spaseq.rdf._terms cimport TermRecord, term_t

# Who decides the EXISTS number `number` of an expression for a row: 1 or 0, or -2 with a
# Python exception set. It may intern terms in the batch. Whether the EXISTS is negated is
# not its business.
cdef struct Existence:
    int (*holds)(void* context, int number, const term_t* row) noexcept nogil
    void* context

# A function that the code calls.
cdef struct Callee:
    Native native
    const Datatype* datatype    # of a cast, else NULL
    int arguments


cdef class Expression:
    cdef readonly object code       # the ExpressionCode it was linked from
    cdef readonly int columns       # how long a row must be
    cdef readonly int exists        # how many EXISTS there are
    cdef Instruction* program
    cdef int length
    cdef int comparing              # LESS or LESS_EQUAL, where that of two terms is all; else 0
    cdef NumericCondition numeric   # the same, where it is a condition over numbers; else None
    cdef Operand* constants
    cdef Operand* stack             # stack[0] is unused, stack[1] has the result
    cdef Callee* callees
    cdef list functions             # the same in Python
    cdef term_t* row                # what `evaluate` and `test` were given
    cdef Dictionary dictionary
    cdef Arena scratch              # texts of one evaluation

    # `row`: `columns` terms of the batch, 0 is unbound. `exists` may be NULL where there is
    # none. 1 true, 0 false, -1 SPARQL's error, -2 a Python exception is set.
    cdef int truth(
        self, EventBatch batch, const term_t* row, Existence* exists
    ) except -2 nogil
    # Whether it may be true for any row whose columns that are unbound lie in the box.
    cdef bint may_hold(self, EventBatch batch, const term_t* row, const Box* box) noexcept nogil
    # The value as a term of the batch, interned where it is new; 0: an error, or unbound.
    cdef int value(
        self, EventBatch batch, const term_t* row, Existence* exists, term_t* result
    ) except -2 nogil
    cdef const TermRecord* _number(
        self, EventBatch batch, const term_t* row, int place, TermRecord* numerals
    ) noexcept nogil
    cdef int _compare(self, EventBatch batch, const term_t* row) noexcept nogil
    cdef int _run(self, EventBatch batch, const term_t* row, Existence* exists) except -2 nogil
    cdef int _call(self, int number, Operand* arguments) except -2 nogil
    cdef int _call_slowly(self, int number, Operand* arguments) except -2 with gil
    cdef int _link(self, object code) except -1
    cdef int _fill(self, EventBatch batch, object row) except -1
