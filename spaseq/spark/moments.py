"""The `time` column of a DataFrame ↔ timestamps.

Three kinds of time come out of a match as they went in: `timestamp` (dates), `decimal`
(numbers of seconds; any numeric column) and `string` (the literal, or its lexical form alone;
dates or numbers, which keeps numbers as they were written). Cost: constant per value; values
that come again are remembered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyoxigraph as ox

from spaseq.errors import EventError
from spaseq.rdf.event import DATE_TIME, NUMBER, Timestamp
from spaseq.rdf.time import canonical_literal, from_literal, from_value

TimeKind: TypeAlias = Literal["timestamp", "decimal", "string"]

DECIMAL = (38, 6)
"""Precision and scale of numeric times."""
_XSD = "http://www.w3.org/2001/XMLSchema#"
_LITERAL = re.compile(r'"(?P<form>[^"\\]*)"\^\^<(?P<type>[^>]*)>')
_DATE = re.compile(r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}")
_DAY = 86_400_000_000


def arrow_type(kind: TimeKind) -> pa.DataType:
    """What a time is in results."""
    if kind == "timestamp":
        return pa.timestamp("us", tz="UTC")
    return pa.decimal128(*DECIMAL) if kind == "decimal" else pa.string()


def sql_type(kind: TimeKind) -> str:
    """The same in Spark's words."""
    return {"timestamp": "timestamp", "decimal": f"decimal{DECIMAL}", "string": "string"}[kind]


def written(time: Timestamp, kind: TimeKind) -> Any:
    """A time as a value of a result."""
    if kind == "timestamp":
        return time.micros  # as Arrow takes it
    if kind == "decimal":
        return Decimal(time.micros).scaleb(-6)
    return canonical_literal(time).value


@lru_cache(maxsize=1 << 14)
def moment_of_text(text: str) -> Timestamp:
    """The timestamp that a value of a `string` column stands for."""
    found = _LITERAL.fullmatch(text)
    if found is not None:
        return from_literal(ox.Literal(found["form"], datatype=ox.NamedNode(found["type"])))
    plain = text.strip()
    if _DATE.match(plain):
        name = "dateTime" if "T" in plain else "date"
    elif "e" in plain.lower():
        name = "double"
    else:
        name = "decimal" if "." in plain else "integer"
    return from_literal(ox.Literal(plain, datatype=ox.NamedNode(_XSD + name)))


def reader(column: pa.Array) -> Callable[[int], tuple[int, str | None, bool]]:
    """(microseconds, the literal where it is to be kept, whether it is a date) by position.

    Raises:
        EventError: for a column of another type, and for a time that is missing.
    """
    kind = column.type
    if column.null_count:
        raise EventError("an event has no time: the time column holds nulls")
    if pa.types.is_timestamp(kind):
        micros = column.cast(pa.timestamp("us", tz=kind.tz)).cast(pa.int64()).to_pylist()
        return lambda place: (micros[place], None, True)
    if pa.types.is_date32(kind):
        days = column.cast(pa.int32()).to_pylist()
        return lambda place: (days[place] * _DAY, None, True)
    values = column.to_pylist()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda place: _parts(moment_of_text(values[place]))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return lambda place: _parts(from_value(values[place]))
    raise EventError(f"the time column is {kind}: a timestamp, a number or a string is needed")


def _parts(time: Timestamp) -> tuple[int, str | None, bool]:
    if time.domain == DATE_TIME:
        return time.micros, None, True
    return time.micros, str(time.term), False


def timestamp_of(row: Mapping[str, Any]) -> Timestamp:
    """The time of an event of a chunk."""
    stamp = None if row["stamp"] is None else stamp_of(row["stamp"])
    return Timestamp(row["micros"], DATE_TIME if row["dated"] else NUMBER, stamp)


@lru_cache(maxsize=1 << 14)
def stamp_of(text: str) -> ox.Literal:
    """The literal that `reader` kept."""
    found = _LITERAL.fullmatch(text)
    assert found is not None
    return ox.Literal(found["form"], datatype=ox.NamedNode(found["type"]))
