"""Exact arithmetic on numbers of any size, as `decimal.Decimal`: the slow path beside 64 bits.

Integers beyond 64 bits, and decimals beyond 128 bits or with more than 18 fractional digits, are
`Decimal`s. Sums, differences, products and comparisons are exact; see `quotient` for division.
Conversions from and to text are linear in the digits, products and quotients quasi-linear
(`decimal` multiplies by number-theoretic transforms).

Invariant: every function is exact except `quotient`, `nearest_double` and `nearest_float`, which
round once. A result of more than `MOST_DIGITS` digits is None, which bounds memory.
"""

from __future__ import annotations

import math
import struct
from decimal import (
    MAX_EMAX,
    MAX_PREC,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    Context,
    Decimal,
    InvalidOperation,
)
from typing import Final

MOST_DIGITS: Final = 1 << 20
"""The maximum number of digits of a result: a product of two such numbers takes some 50 ms."""
PLACES: Final = 18
"""The minimum number of fractional digits of a quotient, and the maximum on the fast path."""

_EXACT = Context(
    prec=MAX_PREC, rounding=ROUND_DOWN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation]
)
# A number halfway between two doubles has 767 significant digits at most.
_ENOUGH = Context(prec=800, rounding=ROUND_DOWN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_SINGLE = struct.Struct("f")
_SCALED_MAX_DIGITS = 40
"""More integer digits than any number of the fast path has."""
_HALF = Decimal("0.5")


def scaled(number: int) -> Decimal:
    """number / 10**18."""
    return _EXACT.scaleb(Decimal(number), -PLACES)


def scaled_int(number: Decimal) -> int | None:
    """number * 10**18; None if not an integer, or above `_SCALED_MAX_DIGITS` digits."""
    number = _EXACT.normalize(number)
    if number.adjusted() >= _SCALED_MAX_DIGITS or _places(number) > PLACES:
        return None
    return int(_EXACT.scaleb(number, PLACES))


def text_of(number: Decimal, whole: bool) -> str:
    """The canonical lexical form of an xsd:integer (`whole`) or xsd:decimal."""
    return format(number if whole else _EXACT.normalize(number), "f")


# ------------------------------------------------------------------ arithmetic


def total(a: Decimal, b: Decimal) -> Decimal | None:
    return _bounded(_EXACT.add(a, b)) if _span(a, b) <= MOST_DIGITS else None


def difference(a: Decimal, b: Decimal) -> Decimal | None:
    return total(a, b.copy_negate())


def product(a: Decimal, b: Decimal) -> Decimal | None:
    if _size(a) + _size(b) > MOST_DIGITS:
        return None
    return _bounded(_EXACT.multiply(a, b))


def quotient(a: Decimal, b: Decimal) -> Decimal | None:
    """a / b, truncated towards zero; b must not be zero.

    The number of fractional digits is the maximum of 18, the fractional digits of the operands,
    and the number that gives a small quotient 18 significant digits.
    """
    if not a:
        return a
    a, b = _EXACT.normalize(a), _EXACT.normalize(b)
    places = max(PLACES, _places(a), _places(b), b.adjusted() - a.adjusted() + PLACES)
    if places + max(a.adjusted() - b.adjusted(), 0) > MOST_DIGITS:
        return None
    whole = _EXACT.divide_int(_EXACT.scaleb(a, places), b)
    return _bounded(_EXACT.scaleb(whole, -places))


def ceiling(number: Decimal) -> Decimal:
    return number.to_integral_value(ROUND_CEILING, _EXACT)


def floor(number: Decimal) -> Decimal:
    return number.to_integral_value(ROUND_FLOOR, _EXACT)


def half_up(number: Decimal) -> Decimal:
    """The nearest integer; halves are rounded towards positive infinity."""
    low = floor(number)
    return _EXACT.add(low, 1) if _EXACT.subtract(number, low) >= _HALF else low


def cut(number: Decimal) -> Decimal:
    """The integer part."""
    return number.to_integral_value(ROUND_DOWN, _EXACT)


def _places(number: Decimal) -> int:
    """The number of fractional digits."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return max(-exponent, 0)


def _size(number: Decimal) -> int:
    """The number of digits when written without an exponent."""
    return max(number.adjusted(), 0) + 1 + _places(number)


def _span(a: Decimal, b: Decimal) -> int:
    """The number of digits that represent both numbers with a common point."""
    return max(a.adjusted(), b.adjusted(), 0) + 1 + max(_places(a), _places(b))


def _bounded(number: Decimal) -> Decimal | None:
    return number if _size(number) <= MOST_DIGITS else None


# ------------------------------------------------------------------ binary floating point


def nearest_double(number: Decimal) -> float:
    """The nearest double; an infinity beyond the greatest."""
    return float(_shortened(number))


def nearest_float(number: Decimal) -> float:
    """The nearest 32-bit number, as the double of its value."""
    number = _shortened(number)
    double = float(number)
    exact = Decimal(double) if math.isfinite(double) else None
    odd = struct.unpack("q", struct.pack("d", double))[0] & 1
    if exact is not None and exact != number and not odd:
        # Round to odd: the double then rounds to the same float as the number itself.
        double = math.nextafter(double, math.inf if number > exact else -math.inf)
    try:
        narrow: float = _SINGLE.unpack(_SINGLE.pack(double))[0]
    except OverflowError:
        return math.copysign(math.inf, double)
    return narrow


def _shortened(number: Decimal) -> Decimal:
    """A number of few digits that rounds to the same double."""
    short = _ENOUGH.plus(number)
    if short == number:
        return short
    # Append a digit, away from zero: the result is neither a tie nor a double.
    sign, digits, exponent = short.as_tuple()
    assert isinstance(exponent, int)
    return Decimal((sign, (*digits, 1), exponent - 1))
