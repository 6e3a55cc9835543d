"""Truth, equality and order of operands; see _comparison.pyx."""

from libc.math cimport isnan

from spaseq.gpm.native._operators cimport ERROR, Operand
from spaseq.rdf._values cimport Kind

cdef int equals(const Operand* a, const Operand* b) except -2 nogil
cdef int order(const Operand* a, const Operand* b) except -2 nogil
cdef int same_term(const Operand* a, const Operand* b) noexcept nogil
cdef double to_double(const Operand* of) noexcept nogil
cdef double to_float(const Operand* of) except? -1 nogil


cdef inline bint is_number(const Operand* of) noexcept nogil:
    return Kind.INTEGER <= of.kind <= Kind.DOUBLE


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
