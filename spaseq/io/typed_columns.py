"""Columns of texts with their native values → columns of Arrow types.

The type of a variable's column is determined by all of its bound values:

| all values are | type |
|---|---|
| `xsd:integer` or a type derived from it, within 64 bits | int64 |
| these and `xsd:decimal` | decimal128(38, s) with the fewest fractional digits s |
| these and `xsd:double` or `xsd:float` | float64 |
| `xsd:boolean` | bool |
| `xsd:dateTime` with a zone | timestamp[us, UTC] |
| `xsd:dateTime` without one | timestamp[us] |
| `xsd:date` without a zone | date32 |
| `xsd:dayTimeDuration` | duration[us] |
| anything else, other mixtures, and values that the type cannot represent exactly | string |

A string is the IRI, the lexical form, or `_:` and the label of a blank node.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from spaseq.errors import SpaseqError
from spaseq.io.native._columns import Native, NativeColumn

_EXACT = Native.INTEGER | Native.DECIMAL
_NUMBERS = _EXACT | Native.DOUBLE
_MOST_SCALE = 18
"""The fractional digits of the exact decimals of a run."""


def common_native(columns: Iterable[NativeColumn]) -> tuple[int, int]:
    """The native kind that represents all values of some parts of a column, and its scale."""
    seen = scale = 0
    for column in columns:
        seen |= column.seen
        scale = max(scale, column.scale)
    return _joined(seen), scale


def _joined(seen: int) -> int:
    if seen and seen & (seen - 1) == 0:
        return seen
    if seen and not seen & ~_EXACT:
        return Native.DECIMAL
    if seen and not seen & ~_NUMBERS:
        return Native.DOUBLE
    return Native.TEXT


def as_type(column: NativeColumn, wanted: pa.DataType, name: str) -> pa.Array:
    """A part of a column in a type that is known.

    Raises:
        SpaseqError: if a value has another type, or cannot be represented exactly.
    """
    types = pa.types
    if types.is_string(wanted) or types.is_large_string(wanted) or types.is_string_view(wanted):
        return column.texts.cast(wanted)
    if not column.seen:
        return pa.nulls(len(column), wanted)
    native = _joined(column.seen)
    if native & _NUMBERS and types.is_float64(wanted):
        return column.array(Native.DOUBLE)
    scale = column.scale
    if native & _EXACT and types.is_decimal(wanted):
        native, scale = Native.DECIMAL, max(scale, min(wanted.scale, _MOST_SCALE))
    found = column.array(native, scale)
    try:
        if native == Native.TEXT:
            raise pa.ArrowInvalid("some are texts")
        return found.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SpaseqError(
            f"the column {name} has values that are not {wanted} ({error}): name a type that "
            f"represents all values, as in types={{{name!r}: pyarrow.string()}}; without one, "
            "batches have the types of the first batch"
        ) from error
