"""The instructions of compiled expressions."""

from libc.stdint cimport int32_t, uint8_t

# The same list as Operation in spaseq/gpm/native/bytecode.py, where it is explained.
cdef enum Operation:
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

cdef struct Instruction:
    uint8_t operation
    int32_t operand
