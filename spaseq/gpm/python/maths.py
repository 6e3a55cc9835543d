"""The functions of XPath's namespace `math:`, over decoded values.

`spaseq.gpm.native._functions` computes them; this module decodes arguments for the operators that
run in Python. Source: XPath and XQuery Functions and Operators 3.1, section 4.8.
"""

from __future__ import annotations

from collections.abc import Callable

from spaseq.gpm.native._functions import math_value
from spaseq.rdf.native._values import INTEGER, POINT, Value, double, to_double

_NUMBERS = range(INTEGER, POINT)


def _function(opcode: str) -> Callable[..., Value | None]:
    def compute(*arguments: Value) -> Value | None:
        if not all(argument.kind in _NUMBERS for argument in arguments):
            return None
        return double(math_value(opcode, *map(to_double, arguments)))

    return compute


pi = _function("MATH_PI")
exp = _function("MATH_EXP")
exp10 = _function("MATH_EXP10")
log = _function("MATH_LOG")
log10 = _function("MATH_LOG10")
pow = _function("MATH_POW")
sqrt = _function("MATH_SQRT")
sin = _function("MATH_SIN")
cos = _function("MATH_COS")
tan = _function("MATH_TAN")
asin = _function("MATH_ASIN")
acos = _function("MATH_ACOS")
atan = _function("MATH_ATAN")
atan2 = _function("MATH_ATAN2")
