"""Sums, products, rounding and casts of operands; see _arithmetic.pyx."""

from spaseq.gpm.native._operators cimport Operand
from spaseq.rdf._literals cimport Datatype
from spaseq.rdf._memory cimport Arena

# Each puts its result in the place of its first operand: ERROR where there is none. The text of a
# WIDE result lies in the scratch memory.
cdef int add(Operand* a, const Operand* b, Arena* scratch) except -2 nogil
cdef int subtract(Operand* a, const Operand* b, Arena* scratch) except -2 nogil
cdef int multiply(Operand* a, const Operand* b, Arena* scratch) except -2 nogil
cdef int divide(Operand* a, const Operand* b, Arena* scratch) except -2 nogil
cdef int negate(Operand* a, Arena* scratch) except -2 nogil
cdef int plus(Operand* a, Arena* scratch) except -2 nogil
cdef int absolute(Operand* a, Arena* scratch) except -2 nogil
cdef int ceiling(Operand* a, Arena* scratch) except -2 nogil
cdef int floored(Operand* a, Arena* scratch) except -2 nogil
cdef int rounded(Operand* a, Arena* scratch) except -2 nogil
cdef int cast(Operand* a, const Datatype* datatype, Arena* scratch) except -2 nogil
