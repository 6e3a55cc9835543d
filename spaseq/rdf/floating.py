"""Binary floating point → the shortest decimal text that reads back as the same number.

Texts have no exponent (`1e21` is `1000000000000000000000`), as in pyoxigraph. Of two shortest
texts at the same distance from the number, the one of greater magnitude is chosen; Python's
`repr` chooses the even one and does not support 32-bit numbers. Invariant: `float(text)`, rounded
to the width, is the number. Cost: a few conversions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal, localcontext

_PACK = struct.Struct("f")


def double_text(real: float) -> str:
    """The text of a finite 64-bit number."""
    text = repr(real)
    # Shorter texts cannot be ties: a tie's exact expansion is one digit longer than its text.
    if len(text) > 16:
        text = _farther(Decimal(text), Decimal(real), float)
    elif "e" in text:
        text = format(Decimal(text), "f")
    return text[:-2] if text.endswith(".0") else text


def float_text(real: float) -> str:
    """The text of a finite 32-bit number, given as the 64-bit number of the same value."""
    exact = Decimal(abs(real))
    with localcontext() as context:
        for digits in range(1, 10):
            context.prec = digits
            near = +exact
            # Rounding to even may miss the only neighbour that reads back as the number.
            other = near.next_minus() if near > exact else near.next_plus()
            if _single(near) != exact:
                near = other
            if _single(near) == exact:
                break
    text = _farther(near, exact, _single)
    text = text[:-2] if text.endswith(".0") else text
    return "-" + text if real < 0 else text


def _farther(near: Decimal, exact: Decimal, read: Callable[[Decimal], float]) -> str:
    """`near`, or its neighbour away from zero if both are equally close to `exact`."""
    if abs(near) < abs(exact):
        near = near.normalize()
        with localcontext() as context:
            context.prec = 800
            other = near.copy_abs() + Decimal((0, (1,), int(near.as_tuple().exponent)))
            other = other.copy_sign(near)
            tie = other - exact == exact - near
        if tie and read(other) == exact:
            near = other
    return format(near, "f")


def _single(number: Decimal) -> float:
    try:
        narrow: float = _PACK.unpack(_PACK.pack(float(number)))[0]
    except OverflowError:
        return float("inf")
    return narrow
