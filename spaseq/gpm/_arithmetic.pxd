"""Sums, products, rounding and casts of operands; see _arithmetic.pyx."""

from spaseq.gpm._operand cimport Operand
from spaseq.rdf._literals cimport Datatype
from spaseq.rdf._memory cimport Arena

# Each puts its result in the place of its first operand: ERROR where there is none.
cdef int add(Operand* a, const Operand* b) except -2 nogil
cdef int subtract(Operand* a, const Operand* b) except -2 nogil
cdef void multiply(Operand* a, const Operand* b) noexcept nogil
cdef void divide(Operand* a, const Operand* b) noexcept nogil
cdef void negate(Operand* a) noexcept nogil
cdef void plus(Operand* a) noexcept nogil
cdef void absolute(Operand* a) noexcept nogil
cdef void ceiling(Operand* a) noexcept nogil
cdef void floored(Operand* a) noexcept nogil
cdef void rounded(Operand* a) noexcept nogil
cdef int cast(Operand* a, const Datatype* datatype, Arena* scratch) except -2 nogil
