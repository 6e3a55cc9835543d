"""Hash keys for SPARQL's `=`: if `a = b` is true, the keys of a and b are equal.

The converse does not hold (the key of any number is its single-precision value), so a look-up by
key must compare the terms too. Cost: that of decoding a term, cached.
"""

from __future__ import annotations

from collections.abc import Hashable

from spaseq.rdf.event import Term
from spaseq.rdf.native._values import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    POINT,
    SPAN,
    WIDE,
    decode,
    to_float,
)

_NUMERIC = (INTEGER, DECIMAL, WIDE, FLOAT, DOUBLE)


def equality_key(term: Term) -> Hashable:
    """A key that is equal for any two terms for which `=` is true."""
    value = decode(term)
    if value.kind in _NUMERIC:
        # Promotion compares at the coarser type, and single precision is the coarsest.
        return to_float(value) + 0.0
    if value.kind == POINT:
        return (value.form, value.number)
    if value.kind == SPAN:
        return (value.number, value.extra)
    return value
