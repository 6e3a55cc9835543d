"""Built-in functions on operands, by number; see _functions.pyx."""

from spaseq.gpm.native._operators cimport Operand
from spaseq.rdf._memory cimport Arena

# Each name but the first is the function's.
cpdef enum Native:
    PYTHON          # the function is known in Python only
    STR
    LANG
    LANGMATCHES
    DATATYPE
    STRLEN
    SUBSTR
    UCASE
    LCASE
    CONTAINS
    STRSTARTS
    STRENDS
    STRBEFORE
    STRAFTER
    CONCAT
    ABS
    CEIL
    FLOOR
    ROUND
    YEAR
    MONTH
    DAY
    HOURS
    MINUTES
    SECONDS

cdef Native native_of(str name) except *
cdef int call_native(Native native, Operand* a, int count, Arena* scratch) except -2 nogil
