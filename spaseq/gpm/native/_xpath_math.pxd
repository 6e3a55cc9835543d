"""The functions of XPath's namespace `math:`; see _xpath_math.pyx."""

from spaseq.gpm.native._functions cimport NativeFunction
from spaseq.gpm.native._operand cimport Operand

# Replace the first argument of a `MATH_…` function with the result, or with an ERROR if some
# argument is not a number.
cdef int call_math(NativeFunction function, Operand* a, int count) except -2 nogil
