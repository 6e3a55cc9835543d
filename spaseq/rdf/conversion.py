"""XPath's casts between XSD datatypes, unary operators and rounding, on decoded values.

A function returns None where XPath has an error. Results equal pyoxigraph's, except that numbers
have any size, and that whole doubles are converted to decimals and integers exactly. Other doubles
become decimals truncated to 18 fractional digits or, if these are all zero, with 17 significant
digits. Cost: constant; for a WIDE number linear in its digits.

Source: XQuery and XPath Functions 3.1, sections 4.2, 4.4 and 19.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from spaseq.rdf import calendar, unbounded
from spaseq.rdf.native._values import (
    BLANK,
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    KINDS,
    POINT,
    SPAN,
    STRING,
    TRIPLE,
    WIDE,
    Value,
    boolean,
    canonical,
    decimal,
    double,
    ebv,
    exact,
    exact_of,
    float_,
    integer,
    parse,
    point,
    scaled,
    span,
    string,
    to_double,
    to_float,
)

ONE = 10**18
_CLOCK_DAY = calendar.days_before(1972, 12, 31) * calendar.DAY
"""The date of a `time` value, in attoseconds."""


def negate(value: Value) -> Value | None:
    """Unary `-`."""
    if value.kind == INTEGER:
        return integer(-value.number)
    if value.kind == DECIMAL:
        return decimal(-value.number)
    if value.kind == WIDE:
        return exact(value.form, exact_of(value).copy_negate())
    if value.kind == SPAN:
        opposite = calendar.checked_span(-(value.extra or 0), -value.number)
        return None if opposite is None else span(value.form, *opposite)
    return _real(value, lambda real: -real)


def plus(value: Value) -> Value | None:
    """Unary `+`: the value itself, of a plain numeric type."""
    if value.kind == INTEGER:
        return integer(value.number)
    if value.kind == WIDE:
        return exact(value.form, exact_of(value))
    return value if INTEGER <= value.kind <= DOUBLE or value.kind == SPAN else None


def absolute(value: Value) -> Value | None:
    """ABS."""
    if value.kind == INTEGER:
        return integer(abs(value.number))
    if value.kind == DECIMAL:
        return decimal(abs(value.number))
    if value.kind == WIDE:
        return exact(value.form, exact_of(value).copy_abs())
    return _real(value, abs)


def ceiling(value: Value) -> Value | None:
    """CEIL."""
    if value.kind == DECIMAL:
        return decimal(-(-value.number // ONE) * ONE)
    if value.kind == WIDE:
        return exact(value.form, unbounded.ceiling(exact_of(value)))
    return integer(value.number) if value.kind == INTEGER else _rounded_real(value, math.ceil)


def floored(value: Value) -> Value | None:
    """FLOOR."""
    if value.kind == DECIMAL:
        return decimal(value.number // ONE * ONE)
    if value.kind == WIDE:
        return exact(value.form, unbounded.floor(exact_of(value)))
    return integer(value.number) if value.kind == INTEGER else _rounded_real(value, math.floor)


def rounded(value: Value) -> Value | None:
    """ROUND: halves are rounded towards positive infinity."""
    if value.kind == DECIMAL:
        return decimal((value.number + ONE // 2) // ONE * ONE)
    if value.kind == WIDE:
        return exact(value.form, unbounded.half_up(exact_of(value)))
    return integer(value.number) if value.kind == INTEGER else _rounded_real(value, _half_up)


def _half_up(real: float) -> float:
    low = math.floor(real)
    # The difference is exact, while real + 0.5 may round.
    return low + 1 if real - low >= 0.5 else low


def _rounded_real(value: Value, function: Callable[[float], float]) -> Value | None:
    """Round a FLOAT or DOUBLE; infinities and NaN do not change, and zero preserves the sign."""
    if not math.isfinite(value.real):
        return _real(value, lambda real: real)
    return _real(value, lambda real: math.copysign(abs(function(real)), real))


def _real(value: Value, function: Callable[[float], float]) -> Value | None:
    if value.kind == DOUBLE:
        return double(function(value.real))
    return float_(function(value.real)) if value.kind == FLOAT else None


# ------------------------------------------------------------------ casts


def cast(name: str, value: Value) -> Value | None:
    """The cast to the XSD datatype with this local name."""
    kind = KINDS[name]
    if kind == STRING:
        if value.kind in (BLANK, TRIPLE):
            return None
        return string(canonical(value) if value.kind >= BOOLEAN else value.text)
    if value.kind == STRING:
        return parse(name, value.text)
    if kind == SPAN:
        return _cast_span(name, value)
    if kind == POINT:
        return _cast_point(name, value)
    if not BOOLEAN <= value.kind <= DOUBLE:
        return None
    if kind == BOOLEAN:
        return boolean(ebv(value) is True)
    if kind == DOUBLE:
        return double(to_double(value))
    if kind == FLOAT:
        return float_(to_float(value))
    if value.kind in (FLOAT, DOUBLE):
        if not math.isfinite(value.real):
            return None
        return integer(int(value.real)) if kind == INTEGER else _decimal_of(value.real)
    if value.kind == WIDE:
        number = exact_of(value)
        return exact(name, unbounded.cut(number) if kind == INTEGER else number)
    if kind == DECIMAL:
        return decimal(scaled(value))
    size = abs(scaled(value)) // ONE
    return integer(-size if value.number < 0 else size)


def _decimal_of(real: float) -> Value | None:
    """The decimal of a finite float or double."""
    if real.is_integer():
        return decimal(int(real) * ONE)
    cut = int(real * 1e18)
    return decimal(cut) if cut else exact("decimal", Decimal(repr(real)))


def _cast_span(name: str, value: Value) -> Value | None:
    if value.kind != SPAN or (value.form != name and "duration" not in (value.form, name)):
        return None
    months = value.extra or 0
    if (name == "yearMonthDuration" and value.number) or (name == "dayTimeDuration" and months):
        return None
    return span(name, months, value.number)


def _cast_point(name: str, value: Value) -> Value | None:
    if value.kind != POINT:
        return None
    instant, zone = value.number, value.extra
    if value.form == name or (value.form, name) == ("date", "dateTime"):
        return point(name, instant, zone)
    if value.form != "dateTime":
        return None
    shift = (zone or 0) * calendar.MINUTE
    clock = (instant + shift) % calendar.DAY
    if name == "date":
        return point(name, instant - clock, zone)
    return point(name, _CLOCK_DAY + clock - shift, zone) if name == "time" else None
