"""The functions of XPath's namespace `math:`, on doubles.

Arguments of any numeric datatype are promoted to `xs:double`, and results are doubles. Invalid
operations have IEEE 754's results, NaN and the infinities, as XPath requires; they are not errors.
Cost: that of the C library.

Source: XPath and XQuery Functions and Operators 3.1, section 4.8.
"""

from libc.math cimport acos, asin, atan, atan2, cos, exp, log, log10, pow, sin, sqrt, tan

cdef double PI = 3.14159265358979323846


cdef double _value(NativeFunction function, double x, double y) except? -1.0 nogil:
    if function == NativeFunction.MATH_PI:
        return PI
    elif function == NativeFunction.MATH_EXP:
        return exp(x)
    elif function == NativeFunction.MATH_EXP10:
        return pow(10.0, x)
    elif function == NativeFunction.MATH_LOG:
        return log(x)
    elif function == NativeFunction.MATH_LOG10:
        return log10(x)
    elif function == NativeFunction.MATH_POW:
        return pow(x, y)
    elif function == NativeFunction.MATH_SQRT:
        return sqrt(x)
    elif function == NativeFunction.MATH_SIN:
        return sin(x)
    elif function == NativeFunction.MATH_COS:
        return cos(x)
    elif function == NativeFunction.MATH_TAN:
        return tan(x)
    elif function == NativeFunction.MATH_ASIN:
        return asin(x)
    elif function == NativeFunction.MATH_ACOS:
        return acos(x)
    elif function == NativeFunction.MATH_ATAN:
        return atan(x)
    elif function == NativeFunction.MATH_ATAN2:
        return atan2(x, y)
    with gil:
        raise SystemError(f"native function {<int>function} has no implementation")


cdef int call_math(NativeFunction function, Operand* a, int count) except -2 nogil:
    cdef double x = 0.0, y = 0.0
    cdef int i
    for i in range(count):
        if not is_number(&a[i]):
            a.kind = ERROR
            return 1
    if count > 0:
        x = to_double(a)
    if count > 1:
        y = to_double(a + 1)
    set_real(a, Kind.DOUBLE, _value(function, x, y))
    return 1


def math_value(str opcode, double x = 0.0, double y = 0.0) -> float:
    """The value of a function, by its name in `NativeFunction`.

    Raises:
        KeyError: for an unknown name.
    """
    # Imported here, because `_functions` needs this module when it is initialized.
    from spaseq.gpm.native import _functions

    return _value(<NativeFunction><int>_functions.NativeFunction[opcode], x, y)
