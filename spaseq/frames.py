"""Queries as an operator over Arrow batches, for polars, DuckDB, Ray, Dask, Daft and the like.

`match` reads the events of one stream from a table and returns a table of matches. It is a function
from Arrow data to Arrow data, which these libraries call for each of their partitions or groups.
Each call is a separate run: matches across partitions are not found, so partition by a key that all
steps of a match share. Compiled code converts rows to events, and matches to rows.

A mapping (docs/rows.md) defines the events of the rows. Without a mapping, the table has the
columns `time`, `graph` (N-Triples) and optionally `name`, as on Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import pyarrow as pa

from spaseq.errors import ArgumentError, EventError, SpaseqError, kind_of
from spaseq.execute import run
from spaseq.inputs import ArrowArray, ArrowStream
from spaseq.io import time_column as times
from spaseq.io.rows.mapping import MappingLike
from spaseq.program import AnyQuery, Program, compile_queries
from spaseq.result import ROWS

EVENT_COLUMNS = ("time", "graph", "name")


def match(
    reader: ArrowStream | ArrowArray | Iterable[pa.RecordBatch | pa.Table],
    query: Program | AnyQuery | Sequence[AnyQuery],
    *,
    map: MappingLike | None = None,
    time_column: str | None = None,
    columns: Sequence[str] | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    size: int = ROWS,
    **options: Any,
) -> pa.RecordBatchReader:
    """The matches of queries over the rows of a table.

    Args:
        reader: The table: a reader or table of pyarrow, a frame of pandas or polars, a relation of
            DuckDB, anything else with the Arrow PyCapsule interface, or an iterable of record
            batches. Its rows are in time order, unless `lateness` is given.
        query: A compiled program, or one or several queries as for `spaseq.compile`, over one
            stream. A program is picklable, so that it can be sent to workers.
        map: The mapping from rows to events; without it, the table has the columns
            `time`, `graph` and optionally `name`.
        time_column: The column of times, for rows whose mapping leaves `?_time` unbound.
        columns: The columns of the result, as for `Result.to_arrow`.
        types: The types of columns, as for `Result.to_batches`. Give the types of variables if you
            concatenate several results: otherwise, a variable that no match of a partition binds is
            text.
        size: The number of rows of a batch of the result.
        options: Other arguments of `spaseq.run`, such as `kb`, `bind` and `lateness`.

    Returns:
        A reader over the batches of matches; `read_all()` is the table.

    Raises:
        ArgumentError: for an argument of a type that is not accepted.
        QueryError: if a query or the mapping is invalid.
        SpaseqError: if the queries read several streams, or the table has neither a mapping nor
            the columns of events. The errors of `spaseq.run` are raised immediately up to the first
            batch, and later by the reader.

    Example:
        >>> from spaseq.frames import match
        >>> pl.from_arrow(match(trades, query, map="trades.rq", time_column="time"))
    """
    program = query if isinstance(query, Program) else _compiled(_key(query))
    if len(program.streams) != 1:
        raise SpaseqError(
            f"a table has the events of one stream, and the queries read {len(program.streams)}: "
            "use spaseq.run"
        )
    (stream,) = program.streams
    table = _reader(reader)
    if map is not None:
        options |= {"map": {stream: map}, "time_column": time_column}
        result = run(program, {stream: table}, **options)
    else:
        if time_column is not None:
            raise ArgumentError("time_column: it is for rows with a mapping; name one in map")
        result = run(program, {stream: _events(table, stream)}, **options)
    return result.to_reader(size, columns=columns, types=types)


def _key(query: Any) -> Any:
    """The queries as a key of `_compiled`."""
    return query if isinstance(query, str) or not isinstance(query, Sequence) else tuple(query)


@lru_cache(maxsize=64)
def _compiled(query: Any) -> Program:
    """The program of a query, which a worker compiles once for all of its partitions."""
    return compile_queries(list(query) if isinstance(query, tuple) else query)


def _reader(given: Any) -> pa.RecordBatchReader:
    """A table as a reader.

    Raises:
        ArgumentError: for anything else.
    """
    if isinstance(given, pa.RecordBatchReader):
        return given
    if hasattr(given, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(given)
    if hasattr(given, "__arrow_c_array__"):
        batch = pa.record_batch(given)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        batches = _batches(given)
        first = next(batches, None)
        if first is None:
            raise SpaseqError("reader: an iterable without a batch has no columns")
        return pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
    raise ArgumentError(
        "reader: a reader, table or frame with the Arrow interface, or an iterable of record "
        f"batches is needed, not {kind_of(given)}"
    )


def _batches(given: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    for item in given:
        if isinstance(item, pa.Table):
            yield from item.to_batches()
        elif isinstance(item, pa.RecordBatch):
            yield item
        else:
            raise ArgumentError(
                f"reader: an iterable of record batches is needed, and {item!r} is none"
            )


def _events(table: pa.RecordBatchReader, stream: str) -> Iterator[tuple[Any, bytes, str | None]]:
    """The events in the columns of a table."""
    missing = [name for name in EVENT_COLUMNS[:2] if name not in table.schema.names]
    if missing:
        raise SpaseqError(
            f"the table has no column {missing[0]} (its columns are "
            f"{', '.join(table.schema.names)}): name a mapping in map, or give each event in the "
            "columns time and graph"
        )
    return _rows(table, stream)


def _rows(table: pa.RecordBatchReader, stream: str) -> Iterator[tuple[Any, bytes, str | None]]:
    named = "name" in table.schema.names
    for batch in table:
        graphs = batch.column("graph").to_pylist()
        names = batch.column("name").to_pylist() if named else [None] * len(graphs)
        for time, graph, name in zip(_times(batch), graphs, names, strict=True):
            if graph is None:
                raise EventError(f"an event of <{stream}> has no graph: the column holds a null")
            yield time, graph, name


def _times(batch: pa.RecordBatch) -> Iterator[Any]:
    """The times of the events, by the rules of Spark's column `time`."""
    column = batch.column("time")
    micros, stamps, dated = times.read(column)
    for value, stamp, is_date in zip(
        micros.to_pylist(), stamps.to_pylist(), dated.to_pylist(), strict=True
    ):
        row = {"micros": value, "stamp": stamp, "dated": is_date}
        yield times.timestamp_of(row)
