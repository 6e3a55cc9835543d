"""The built-in functions that have a native form; see _functions.pyx."""

from spaseq.gpm.native._operand cimport Operand
from spaseq.rdf._memory cimport Arena

# Each member except the first is the `opcode` of an entry of `spaseq.sparql.builtins`. The entries
# are compared with this list when `_functions` is imported; the order has no meaning.
cpdef enum NativeFunction:
    NO_NATIVE_FORM
    STR
    IRI
    STRDT
    ENCODE_FOR_URI
    LANG
    LANGMATCHES
    LANGDIR
    HASLANG
    HASLANGDIR
    TRIPLE
    SUBJECT
    PREDICATE
    OBJECT
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
    REPLACE
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
    MATH_PI
    MATH_EXP
    MATH_EXP10
    MATH_LOG
    MATH_LOG10
    MATH_POW
    MATH_SQRT
    MATH_SIN
    MATH_COS
    MATH_TAN
    MATH_ASIN
    MATH_ACOS
    MATH_ATAN
    MATH_ATAN2

cdef NativeFunction native_of(str name) except *
cdef int call_native(
    NativeFunction function, Operand* a, int count, Arena* scratch
) except -2 nogil
