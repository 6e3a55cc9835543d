"""Exact arithmetic on numbers of any size, as `decimal.Decimal`: the lane beside the 64-bit one.

An integer beyond 64 bits, or a decimal beyond 128 bits or with more than 18 digits behind its
point, is a `Decimal` here. Sums, differences, products and comparisons are exact. A quotient is
cut towards zero, see `quotient`. Conversions from and to text are linear in the digits, products
and quotients quasi-linear (`decimal` multiplies by number-theoretic transforms).

Invariant: every function is exact but `quotient`, `nearest_double` and `nearest_float`, which
round once. A result of more than `MOST_DIGITS` digits is None: memory must have an end.
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

MOST_DIGITS: Final = 1 << 26
"""Of a result; the literals that readers accept have fewer."""
PLACES: Final = 18
"""Least digits behind the point of a quotient, and most of a decimal of the 64-bit lane."""

_EXACT = Context(
    prec=MAX_PREC, rounding=ROUND_DOWN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation]
)
# A number halfway between two doubles has 767 significant digits at most.
_ENOUGH = Context(prec=800, rounding=ROUND_DOWN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_SINGLE = struct.Struct("f")
_MIDDLING = 40
"""More digits in front of the point than any number of the 64-bit lane has."""
_HALF = Decimal("0.5")


def scaled(number: int) -> Decimal:
    """number / 10**18."""
    return _EXACT.scaleb(Decimal(number), -PLACES)


def scaled_int(number: Decimal) -> int | None:
    """number * 10**18 where that is whole and of a middling size; None: it is not."""
    number = _EXACT.normalize(number)
    if number.adjusted() >= _MIDDLING or _places(number) > PLACES:
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
    """a / b, cut towards zero; b is not zero.

    Behind the point are 18 digits; as many as an operand has where that is more; and as many as
    18 significant digits take where the quotient is small.
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
    """The nearest integer; halves go towards positive infinity."""
    low = floor(number)
    return _EXACT.add(low, 1) if _EXACT.subtract(number, low) >= _HALF else low


def cut(number: Decimal) -> Decimal:
    """The integer part."""
    return number.to_integral_value(ROUND_DOWN, _EXACT)


def _places(number: Decimal) -> int:
    """Digits behind the point."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return max(-exponent, 0)


def _size(number: Decimal) -> int:
    """How many digits the number has when it is written out."""
    return max(number.adjusted(), 0) + 1 + _places(number)


def _span(a: Decimal, b: Decimal) -> int:
    """How many digits hold either number, at the same places."""
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
        # Rounded to odd, the double rounds to the float that the number itself rounds to.
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
    # One more digit, further from zero than the cut: it is neither a tie nor a double.
    sign, digits, exponent = short.as_tuple()
    assert isinstance(exponent, int)
    return Decimal((sign, (*digits, 1), exponent - 1))
