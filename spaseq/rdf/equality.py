"""Hashing by SPARQL's `=`: a key such that `a = b` is true only where the keys are equal.

The converse does not hold (numbers meet in single precision, whatever their type), so who
looks terms up by key still compares. Cost: that of decoding a term, cached.
"""

from __future__ import annotations

from collections.abc import Hashable

from spaseq.rdf._values import (
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
from spaseq.rdf.event import Term

_NUMERIC = (INTEGER, DECIMAL, WIDE, FLOAT, DOUBLE)


def equality_key(term: Term) -> Hashable:
    """Equal for any two terms that `=` finds equal."""
    value = decode(term)
    if value.kind in _NUMERIC:
        # Promotion compares at the coarser type, and single precision is the coarsest.
        return to_float(value) + 0.0
    if value.kind == POINT:
        return (value.form, value.number)
    if value.kind == SPAN:
        return (value.number, value.extra)
    return value
