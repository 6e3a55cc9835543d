"""The functions of XPath's namespace `math:`; see _xpath_math.pyx."""

from spaseq.gpm.native._functions cimport NativeFunction
from spaseq.gpm.native._operand cimport Operand

# Replace the first argument of a `MATH_…` function by the result, an ERROR if an argument is no
# number.
cdef int call_math(NativeFunction function, Operand* a, int count) except -2 nogil
