"""XPath's arithmetic and order on numbers of any size, by fractions: an independent reference.

pyoxigraph, the reference for everything else, has integers of 64 bits and decimals of 128. Here an
xsd:integer or xsd:decimal is a `Fraction`, and promotion to a double or float rounds it once.
"""

from __future__ import annotations

import math
import re
import struct
from fractions import Fraction
from typing import Literal, TypeAlias

import pyoxigraph as ox

from tests.unit.rdf.literals import XSD

Name: TypeAlias = Literal["integer", "decimal", "float", "double"]
Number: TypeAlias = tuple[Name, Fraction | float]

RANK: dict[Name, int] = {"integer": 0, "decimal": 1, "float": 2, "double": 3}
RANGES = {
    "byte": (-(2**7), 2**7 - 1),
    "short": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "long": (-(2**63), 2**63 - 1),
    "unsignedByte": (0, 2**8 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedLong": (0, 2**64 - 1),
    "nonNegativeInteger": (0, math.inf),
    "positiveInteger": (1, math.inf),
    "nonPositiveInteger": (-math.inf, 0),
    "negativeInteger": (-math.inf, -1),
}
"""The least and the greatest number of each datatype derived from xsd:integer."""
_FORM = {
    "integer": re.compile(r"[+-]?[0-9]+"),
    "decimal": re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"),
}


def number_of(term: object) -> Number | None:
    """The number of a literal; None: it is none."""
    if not isinstance(term, ox.Literal):
        return None
    name = term.datatype.value.removeprefix(XSD)
    if name in ("float", "double"):
        if re.fullmatch(r"[+-]?inf(inity)?|nan", term.value, re.IGNORECASE):
            return name, float(term.value)  # type: ignore[return-value]
        if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", term.value):
            return None
        real = float(term.value)
        return ("float", _single(real)) if name == "float" else ("double", real)
    least, most = RANGES.get(name, (-math.inf, math.inf))
    name = "integer" if name in RANGES else name
    if name not in _FORM or not _FORM[name].fullmatch(term.value):
        return None
    number = Fraction(term.value)
    return (name, number) if least <= number <= most else None  # type: ignore[return-value]


def _single(real: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", real))[0])
    except OverflowError:
        return math.copysign(math.inf, real)


def to_double(value: Fraction | float) -> float:
    """The nearest double."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def to_float(value: Fraction | float) -> float:
    """The nearest 32-bit number; a tie goes to the even one."""
    if isinstance(value, float):
        return _single(value)
    near = _single(to_double(value))
    if math.isinf(near):
        return near
    bits = struct.unpack("i", struct.pack("f", near))[0]
    around = [bits - 1, bits, bits + 1]
    reals = [struct.unpack("f", struct.pack("i", max(b, 0) if bits >= 0 else b))[0] for b in around]
    finite = [(r, b) for r, b in zip(reals, around, strict=True) if math.isfinite(r)]
    return float(min(finite, key=lambda rb: (abs(Fraction(rb[0]) - value), rb[1] & 1))[0])


def promoted(a: Number, b: Number) -> tuple[Name, Fraction | float, Fraction | float]:
    """Both numbers in the datatype of the operation."""
    name = max(a[0], b[0], key=RANK.__getitem__)
    if name == "double":
        return name, to_double(a[1]), to_double(b[1])
    if name == "float":
        return name, to_float(a[1]), to_float(b[1])
    return name, a[1], b[1]


def agrees(operator: str, a: Number, b: Number, found: ox.Literal | None) -> bool:
    """Whether the result of an operation on two numbers is right; None stands for an error.

    NaN has no order here: it is not for the comparisons.
    """
    name, x, y = promoted(a, b)
    if operator in ("=", "<", "<=", ">"):
        if found is None:
            return False
        truth = {"=": x == y, "<": x < y, "<=": x <= y, ">": x > y}[operator]
        return found.value == str(truth).lower()
    if operator == "/" and isinstance(x, Fraction):
        if y == 0:
            return found is None
        name = "decimal"
    if found is None or found.datatype.value != XSD + name:
        return False
    if operator == "/" and isinstance(x, Fraction):
        # Cut towards zero behind the 18th place, or behind so many digits of a small quotient.
        true, result = abs(x / y), abs(Fraction(found.value))
        return result <= true and true - result < max(Fraction(1, 10**18), true / 10**17)
    if isinstance(x, Fraction):
        result = {"+": x + y, "-": x - y, "*": x * y}[operator]
        return Fraction(found.value) == result
    real = _real(operator, float(x), float(y))
    real = _single(real) if name == "float" else real
    shown = number_of(found)
    assert shown is not None
    return shown[1] == real or (math.isnan(real) and math.isnan(shown[1]))


def _real(operator: str, x: float, y: float) -> float:
    if operator == "/":
        if y == 0:
            sign = math.copysign(1, x) * math.copysign(1, y)
            return math.nan if x == 0 or math.isnan(x) else sign * math.inf
        return x / y
    return {"+": x + y, "-": x - y, "*": x * y}[operator]
