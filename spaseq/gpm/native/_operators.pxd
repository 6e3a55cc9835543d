"""The operators of expressions on operands; see _operators.pyx."""

from libc.math cimport isnan
from libc.stdint cimport int64_t, uint8_t

from spaseq.gpm.native._operand cimport Operand, set_computed
from spaseq.rdf._literals cimport Datatype
from spaseq.rdf._memory cimport Arena
from spaseq.rdf._terms cimport int128
from spaseq.rdf._values cimport Kind

# What an instruction does. `spaseq.gpm.native.bytecode` explains each and is compared with this
# list, name by name, when `_operators` is imported.
cpdef enum Operation:
    NOTHING
    CONSTANT
    VARIABLE
    BOUND
    EXISTS
    SAME_TERM
    EQUAL
    NOT_EQUAL
    LESS
    LESS_EQUAL
    ADD
    SUBTRACT
    MULTIPLY
    DIVIDE
    AND
    OR
    IS_TEXT
    NOT
    NEGATE
    PLUS
    TRUTH
    IS_IRI
    IS_BLANK
    IS_LITERAL
    IS_NUMERIC
    CAST
    CALL
    JUMP
    JUMP_IF_TRUE
    JUMP_IF_FALSE
    JUMP_IF_ERROR
    JUMP_UNLESS
    JUMP_IF_VALUE
    BEGIN_IN
    TRY_IN
    END_IN
    IS_TRIPLE

cdef extern from *:
    """
    static inline int spaseq_add(spaseq_int128 a, spaseq_int128 b, spaseq_int128 *to) {
        return __builtin_add_overflow(a, b, to);
    }
    static inline int spaseq_subtract(spaseq_int128 a, spaseq_int128 b, spaseq_int128 *to) {
        return __builtin_sub_overflow(a, b, to);
    }
    static inline int spaseq_multiply(spaseq_int128 a, spaseq_int128 b, spaseq_int128 *to) {
        return __builtin_mul_overflow(a, b, to);
    }
    """
    # The result in `to`; true if it does not fit in 128 bits.
    bint add_over "spaseq_add"(int128 a, int128 b, int128* to) noexcept nogil
    bint subtract_over "spaseq_subtract"(int128 a, int128 b, int128* to) noexcept nogil
    bint multiply_over "spaseq_multiply"(int128 a, int128 b, int128* to) noexcept nogil

# Operators write the result to their first operand, or an ERROR if there is none. The text of a
# WIDE result is in the scratch memory.
cdef int binary(int operation, Operand* a, Arena* scratch) except -2 nogil
cdef int unary(int operation, Operand* a, Arena* scratch) except -2 nogil
cdef int add(Operand* a, const Operand* b, Arena* scratch) except -2 nogil
cdef int divide(Operand* a, const Operand* b, Arena* scratch) except -2 nogil
cdef bint negate_exact(Operand* a) noexcept nogil
cdef int cast(Operand* a, const Datatype* datatype, Arena* scratch) except -2 nogil
cdef int equals(const Operand* a, const Operand* b) except -2 nogil
cdef int order(const Operand* a, const Operand* b) except -2 nogil

# A number (or a boolean's 0 or 1) as the nearest double.
cdef double to_double(const Operand* of) noexcept nogil


cdef inline bint is_number(const Operand* of) noexcept nogil:
    return Kind.INTEGER <= of.kind <= Kind.DOUBLE


cdef inline bint is_text(const Operand* of) noexcept nogil:
    return of.kind == Kind.STRING or of.kind == Kind.LANG


cdef inline int truth_of(const Operand* of) noexcept nogil:
    """The effective boolean value: 1, 0, or -1 for a type error."""
    cdef int kind = of.kind
    if Kind.BOOLEAN <= kind <= Kind.DECIMAL:
        return of.exact != 0
    if kind == Kind.WIDE:
        return True
    if kind == Kind.STRING:
        return of.size != 0
    if kind == Kind.DOUBLE or kind == Kind.FLOAT:
        return not (of.real == 0.0 or isnan(of.real))
    return -1


cdef inline bint set_integer(Operand* to, int128 number) noexcept nogil:
    """Set an INTEGER; False, with the operand unchanged, if it does not fit in 64 bits."""
    if number != <int64_t>number:
        return False
    set_computed(to, Kind.INTEGER)
    to.exact = number
    return True


cdef inline bint set_decimal(Operand* to, int128 number, bint over) noexcept nogil:
    """Set a DECIMAL; if its computation overflowed, the operand is unchanged."""
    if over:
        return False
    set_computed(to, Kind.DECIMAL)
    to.exact = number
    return True


cdef inline void set_real(Operand* to, uint8_t kind, double real) noexcept nogil:
    """Set a FLOAT or DOUBLE."""
    set_computed(to, kind)
    to.real = <float>real if kind == Kind.FLOAT else real
