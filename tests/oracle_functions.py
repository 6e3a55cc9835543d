"""Functions called by IRI, for the reference: `math:`, `geof:distance`, and two registered ones.

pyoxigraph calls them while it evaluates an expression. They share no code with the package: `math:`
uses Python's functions, and the distance of two points Vincenty's inverse formula on WGS 84.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyoxigraph as ox

import spaseq

XSD = "http://www.w3.org/2001/XMLSchema#"
MATH = "http://www.w3.org/2005/xpath-functions/math#"
GEOF = "http://www.opengis.net/def/function/geosparql/"
OWN = "http://example.org/fn#"
INTEGERS = {
    XSD + name for name in ("integer", "int", "long", "short", "byte", "nonNegativeInteger")
}
_POINT = re.compile(r"(?:<[^>]*/CRS84>\s*)?POINT\s*\(\s*([-\d.eE+]+)\s+([-\d.eE+]+)\s*\)")


def number(term: Any) -> float | None:
    if not isinstance(term, ox.Literal):
        return None
    kind = term.datatype.value
    try:
        if kind in INTEGERS:
            return float(int(term.value))
        if kind == XSD + "decimal":
            return float(Decimal(term.value))
        if kind in (XSD + "double", XSD + "float"):
            return float(term.value.replace("INF", "inf"))
    except (ArithmeticError, ValueError):
        return None
    return None


def _log(function: Callable[[float], float], x: float) -> float:
    if x == 0:
        return -math.inf
    return function(x) if x > 0 else math.nan


def _pow(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:
        if x == 0:
            return math.copysign(math.inf, x) if y % 2 == 1 else math.inf
        return math.nan


def _guarded(function: Callable[[float], float]) -> Callable[[float], float]:
    def guarded(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return guarded


FUNCTIONS: dict[str, Callable[..., float]] = {
    "pi": lambda: math.pi,
    "exp": _guarded(math.exp),
    "exp10": lambda x: _pow(10.0, x),
    "log": lambda x: _log(math.log, x),
    "log10": lambda x: _log(math.log10, x),
    "pow": _pow,
    "sqrt": _guarded(math.sqrt),
    "sin": _guarded(math.sin),
    "cos": _guarded(math.cos),
    "tan": _guarded(math.tan),
    "asin": _guarded(math.asin),
    "acos": _guarded(math.acos),
    "atan": math.atan,
    "atan2": math.atan2,
}


def _on_numbers(function: Callable[..., float]) -> Callable[..., ox.Literal | None]:
    def call(*terms: Any) -> ox.Literal | None:
        values = [number(term) for term in terms]
        if any(value is None for value in values):
            return None
        return ox.Literal(function(*values))

    return call


def vincenty(first: tuple[float, float], second: tuple[float, float]) -> float:
    """The geodesic distance of two points (longitude, latitude) on WGS 84, in metres."""
    major, flattening = 6378137.0, 1 / 298.257223563
    minor = major * (1 - flattening)
    difference = math.radians(second[0] - first[0])
    u1 = math.atan((1 - flattening) * math.tan(math.radians(first[1])))
    u2 = math.atan((1 - flattening) * math.tan(math.radians(second[1])))
    wide = difference
    for _ in range(200):
        sine = math.hypot(
            math.cos(u2) * math.sin(wide),
            math.cos(u1) * math.sin(u2) - math.sin(u1) * math.cos(u2) * math.cos(wide),
        )
        if sine == 0:
            return 0.0
        cosine = math.sin(u1) * math.sin(u2) + math.cos(u1) * math.cos(u2) * math.cos(wide)
        angle = math.atan2(sine, cosine)
        alpha = math.cos(u1) * math.cos(u2) * math.sin(wide) / sine
        squared = 1 - alpha**2
        middle = cosine - 2 * math.sin(u1) * math.sin(u2) / squared if squared else 0.0
        c = flattening / 16 * squared * (4 + flattening * (4 - 3 * squared))
        before, wide = (
            wide,
            difference
            + (1 - c)
            * flattening
            * alpha
            * (angle + c * sine * (middle + c * cosine * (2 * middle**2 - 1))),
        )
        if abs(wide - before) < 1e-13:
            break
    u = squared * (major**2 - minor**2) / minor**2
    a = 1 + u / 16384 * (4096 + u * (-768 + u * (320 - 175 * u)))
    b = u / 1024 * (256 + u * (-128 + u * (74 - 47 * u)))
    delta = (
        b
        * sine
        * (
            middle
            + b / 4 * (cosine * (2 * middle**2 - 1))
            - b / 24 * middle * (4 * sine**2 - 3) * (4 * middle**2 - 3) * b
        )
    )
    return minor * a * (angle - delta)


UNITS = {
    "http://qudt.org/vocab/unit/M": 1.0,
    "http://qudt.org/vocab/unit/KiloM": 1000.0,
    "http://www.opengis.net/def/uom/OGC/1.0/metre": 1.0,
}


def distance(first: Any, second: Any, unit: Any) -> ox.Literal | None:
    found = [_POINT.fullmatch(term.value) for term in (first, second)]
    if None in found:
        return None
    points = [(float(each[1]), float(each[2])) for each in found if each is not None]
    return ox.Literal(vincenty(points[0], points[1]) / UNITS[unit.value])


# ------------------------------------------------------------------ registered functions


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


@spaseq.function(OWN + "sum")
def own_sum(a: Any, b: Any) -> Any:
    """The sum; raises for equal numbers, and for a term that is not a number."""
    if not (_is_number(a) and _is_number(b)) or a == b:
        raise ValueError(f"no result for {a} and {b}")
    return Decimal(a) + Decimal(b)


@spaseq.function(OWN + "twice", vectorized=True)
def twice(a: Any) -> Any:
    return [None if not _is_number(each) or each == 3 else each + each for each in a.to_pylist()]


def _exact(term: Any) -> Decimal | None:
    """A number as a decimal, a double by its exact value."""
    value = number(term)
    if value is None or not math.isfinite(value):
        return None
    kind = term.datatype.value
    return Decimal(value if kind in (XSD + "double", XSD + "float") else term.value)


def _decimal(value: Decimal) -> ox.Literal:
    return ox.Literal(format(value, "f"), datatype=ox.NamedNode(XSD + "decimal"))


def _sum(a: Any, b: Any) -> ox.Literal | None:
    first, second = _exact(a), _exact(b)
    if first is None or second is None or first == second:
        return None
    return _decimal(first + second)


def _twice(a: Any) -> ox.Literal | None:
    value = _exact(a)
    if value is None or value == 3:
        return None
    if a.datatype.value in INTEGERS:
        return ox.Literal(2 * int(value))
    if a.datatype.value == XSD + "decimal":
        return _decimal(2 * value)
    return ox.Literal(2 * float(value))


CUSTOM: dict[ox.NamedNode, Callable[..., Any]] = {
    **{ox.NamedNode(MATH + name): _on_numbers(f) for name, f in FUNCTIONS.items()},
    ox.NamedNode(GEOF + "distance"): distance,
    ox.NamedNode(OWN + "sum"): _sum,
    ox.NamedNode(OWN + "twice"): _twice,
}
