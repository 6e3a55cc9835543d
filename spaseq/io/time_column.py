"""The `time` column of a DataFrame ↔ timestamps.

The times of matches have the kind of the events' times: `timestamp` (dates), `decimal` (numbers of
seconds, from any numeric column) or `string` (the literal, or just its lexical form; dates or
numbers, whose lexical forms are preserved). This module needs pyarrow; what rows of every format
need of times is in `spaseq.io.identity`. Cost: constant per value; parsed texts are cached.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox

from spaseq.errors import EventError
from spaseq.io.identity import TimeKind
from spaseq.rdf.event import DATE_TIME, NUMBER, Timestamp
from spaseq.rdf.time import from_literal, from_value

DECIMAL = (38, 6)
"""Precision and scale of numeric times."""
_XSD = "http://www.w3.org/2001/XMLSchema#"
_LITERAL = re.compile(r'"(?P<form>[^"\\]*)"\^\^<(?P<type>[^>]*)>')
_DATE = re.compile(r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}")
_DAY = 86_400_000_000


def arrow_type(kind: TimeKind) -> pa.DataType:
    """The Arrow type of times in results."""
    if kind == "timestamp":
        return pa.timestamp("us", tz="UTC")
    return pa.decimal128(*DECIMAL) if kind == "decimal" else pa.string()


def sql_type(kind: TimeKind) -> str:
    """The type of times in results, in Spark's notation."""
    return {"timestamp": "timestamp", "decimal": f"decimal{DECIMAL}", "string": "string"}[kind]


def column(micros: pa.Array, kind: TimeKind) -> pa.Array:
    """Times in microseconds as a column of a result, of a kind other than `string`."""
    if kind == "timestamp":
        return micros.cast(arrow_type(kind))
    whole = micros.cast(pa.decimal128(DECIMAL[0], 0))
    return pa.Array.from_buffers(arrow_type(kind), len(whole), whole.buffers(), -1, whole.offset)


@lru_cache(maxsize=1 << 14)
def timestamp_of_text(text: str) -> Timestamp:
    """The timestamp of a value of a `string` column."""
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


def read(column: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """A column of times as microseconds, literals (null for dates), and whether each is a date.

    Raises:
        EventError: if the column has another type, or holds a null.
    """
    kind, count = column.type, len(column)
    if column.null_count:
        raise EventError("an event has no time: the time column holds nulls")
    if pa.types.is_timestamp(kind):
        micros = column.cast(pa.timestamp("us", tz=kind.tz)).cast(pa.int64())
        return micros, pa.nulls(count, pa.string()), pa.repeat(True, count)
    if pa.types.is_date32(kind):
        micros = pc.multiply(column.cast(pa.int32()).cast(pa.int64()), _DAY)
        return micros, pa.nulls(count, pa.string()), pa.repeat(True, count)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        times = [timestamp_of_text(text) for text in column.to_pylist()]
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        times = [from_value(value) for value in column.to_pylist()]
    else:
        raise EventError(f"the time column is {kind}: a timestamp, a number or a string is needed")
    dated = [time.domain == DATE_TIME for time in times]
    stamps = [
        None if is_date else str(time.term) for time, is_date in zip(times, dated, strict=True)
    ]
    return (
        pa.array([time.micros for time in times], pa.int64()),
        pa.array(stamps, pa.string()),
        pa.array(dated, pa.bool_()),
    )


def timestamp_of(row: Mapping[str, Any]) -> Timestamp:
    """The time of an event of a chunk."""
    stamp = None if row["stamp"] is None else stamp_of(row["stamp"])
    return Timestamp(row["micros"], DATE_TIME if row["dated"] else NUMBER, stamp)


@lru_cache(maxsize=1 << 14)
def stamp_of(text: str) -> ox.Literal:
    """The literal of a text in the second column of `read`."""
    found = _LITERAL.fullmatch(text)
    assert found is not None
    return ox.Literal(found["form"], datatype=ox.NamedNode(found["type"]))
