"""The result of `spaseq.run`: matches one by one, or as tables with typed columns.

A result is read once, from the start: each match is either yielded or becomes part of a table. No
input is read before the first match is requested. Where compiled code can build the rows of a table
(spaseq/io/typed_rows.py), no match becomes an object. pyarrow, pandas and polars are imported when
they are used.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from spaseq.engine.compiled import in_short
from spaseq.errors import ArgumentError, SpaseqError
from spaseq.io.python_words import python_words
from spaseq.keyed_runs import KeyedRuns
from spaseq.pipeline import answered, shapes
from spaseq.rdf.ahead import close_generator
from spaseq.rdf.event import Event
from spaseq.results import Match
from spaseq.results.values import cells_of, time_text
from spaseq.runs import Run

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from spaseq.explain.diagnosis import Sample
    from spaseq.explain.timeline import Picture
    from spaseq.io.typed_rows import Part, TypedRows

ROWS = 1 << 16
"""The default number of rows of a batch."""
SHOWN = 10
"""The number of matches that a notebook shows."""
_NOT_BY_DEFAULT = ("id", "bindings", "events")


class Result:
    """The matches of one call of `spaseq.run`.

    Iterating yields each `Match` as soon as it is certain. `to_arrow`, `to_pandas`, `to_polars` and
    `to_batches` return the matches that have not been read as tables; iterating over the result
    after that is an error. A result is also an Arrow stream, which polars, DuckDB and others read
    directly. Use it in a `with` block, or call
    `close`, if you do not read it to the end.

    In a table, a match is a row. Its columns are `query` (if there are several queries), `start`
    and `end`; a column for each variable of the SELECT; `graph` (N-Triples) for a CONSTRUCT,
    `boolean` for an ASK, and `results` for a query with GROUP. `columns` selects among these and
    `id`, `events` and `bindings`. A variable with the name of another column gets an underscore at
    the end. docs/python.md shows the types.

    Example:
        >>> with spaseq.run(query, streams={"trades": "trades.nq"}) as result:
        ...     table = result.to_polars()
    """

    def __init__(
        self,
        run: Run,
        events: Iterable[Event],
        batch: int,
        close: bool,
        several: Callable[[], KeyedRuns | None] = lambda: None,
        sources: Sequence[Iterable[Event]] = (),
    ):
        self._run = run
        self._several = several
        """Returns the runs that divide the events, if matches are read one by one."""
        self._divided: KeyedRuns | None = None
        self._is_table = False
        """Whether compiled code builds the rows of a table, which one run does."""
        self._is_taken = False
        """Whether a table takes the matches that had not been read."""
        self._events = events
        self._sources = sources
        """The sources of the events; `why_not` reads files again."""
        self._batch = batch
        self._close = close
        self._answers: Iterator[Any] | None = None
        self._matches: Iterator[Match | None] = iter(())
        self._peeked: deque[Match] = deque()
        self._read = 0
        self._is_finished = False

    # ------------------------------------------------------------------ one by one

    def __iter__(self) -> Result:
        if self._is_taken:
            raise self._already_read()
        return self

    def __next__(self) -> Match:
        if self._peeked:
            self._read += 1
            return self._peeked.popleft()
        match = self._following()
        self._read += 1
        return match

    def _already_read(self) -> SpaseqError:
        return SpaseqError(
            "the matches of this result have been read: call spaseq.run again, or keep the "
            "table that was made first"
        )

    def _following(self) -> Match:
        """The next match of the run.

        Raises:
            StopIteration: at the end.
        """
        if self._is_finished:
            raise StopIteration
        try:
            for match in self._all():
                if match is not None:
                    return match
        except BaseException:
            self._end()
            raise
        self._end()
        raise StopIteration

    def _all(self) -> Iterator[Match | None]:
        """The matches of the run, and None after each batch of events.

        The next call continues where this one stopped.
        """
        if self._answers is None:
            parts = None if self._is_table else self._several()
            self._divided = parts
            self._answers = answered(parts or self._run, self._events, self._batch, self._close)
            self._matches = _marked(self._answers)
            _begun.add(self)
        return self._matches

    def _refuse(self) -> None:
        """Refuse further matches: this process is a fork of the process that reads them.

        Nothing is closed, for the parent still reads.
        """
        _kept.extend((self._answers, self._matches))
        self._answers = self._matches = _refused()
        self._peeked.clear()

    def close(self) -> None:
        """Stop reading: close the sources, and the connections of the run.

        A result that is read to the end is closed. Closing it again does nothing.

        Example:
            >>> result.close()
        """
        self._peeked.clear()
        self._end()
        self._run.close()

    def _end(self) -> None:
        """Close the sources. The run remains as it is, so that it can be saved."""
        self._is_finished = True
        _begun.discard(self)
        if self._answers is not None:
            close_generator(self._matches)
            close_generator(self._answers)

    def __enter__(self) -> Result:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    # ------------------------------------------------------------------ reports

    @property
    def run(self) -> Run:
        """The run that finds the matches.

        Raises:
            SpaseqError: if several threads divide the events among separate runs.
        """
        if self._divided is not None:
            raise SpaseqError(
                "the events are divided among several threads: with workers=1 there is one run"
            )
        return self._run

    @property
    def stats(self) -> dict[str, Any]:
        """The counters of the run so far; see `Run.stats`.

        For streams of rows, `mapping_errors` has by stream what their mapping lost: expressions
        that erred, values that are no terms, and rows without triples, each with its count and the
        first example.

        Raises:
            SpaseqError: if several threads divide the events, and not all matches have been read.
        """
        from spaseq.io.source import Source

        errors = {
            source.stream: [loss.as_data() for loss in losses]
            for source in self._sources
            if isinstance(source, Source) and (losses := source.counters.losses())
        }
        return self._counted().stats | ({"mapping_errors": errors} if errors else {})

    def _counted(self) -> Run:
        """The run, which has the counters of all threads."""
        if self._divided is not None and not self._divided.is_counted:
            raise SpaseqError(
                "the events are divided among several threads, whose counters are added at the "
                "end: read all matches first, or use workers=1"
            )
        return self._run

    def why_not(self, query: str | None = None, events: Iterable[Any] = ()) -> str:
        """How far each pattern got so far, and why places did not advance; see `Run.why_not`.

        Args:
            query: The name of a query; None for all.
            events: Some events with all their triples, each as (stream, timestamp, graph), for
                examples of what patterns were missing. By default the first 2,000 events of each
                stream of files, which are read again.

        Raises:
            EventError: for an item of `events` that is not an event.
            ValueError: if no query has the name.
            SpaseqError: as for `stats`.

        Example:
            >>> print(result.why_not())
        """
        run = self._counted()
        return run.why_not(query, events or self._first_events())

    def _first_obstacle(self) -> str:
        """The first thing that a match needs and that never happened, in one line."""
        from spaseq.explain.why_not import first_obstacle

        return first_obstacle(self._counted().evaluation, self._first_events()) or "unknown"

    def _first_events(self) -> Sample:
        """The first events of the files, with all their triples."""
        from spaseq.explain.diagnosis import Sample
        from spaseq.io.first_events import first_events
        from spaseq.io.source import Source

        files = [source for source in self._sources if isinstance(source, Source)]
        events, is_whole = first_events(files)
        return Sample(events, is_whole and len(files) == len(self._sources))

    def __repr__(self) -> str:
        count = f"{self._read} match{'' if self._read == 1 else 'es'}"
        state = "not read yet" if self._answers is None else f"{count} read"
        end = ", finished" if self._is_finished and not self._peeked else ""
        if end and not self._read:
            end += "; why_not() says why"
        return f"<Result of {in_short(self._run.program)}; {state}{end}>"

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_")]

    def _repr_html_(self) -> str:
        """The next matches as a table, for notebooks; they can still be read afterwards."""
        while len(self._peeked) <= SHOWN:
            try:
                self._peeked.append(self._following())
            except StopIteration:
                break
        shown = list(self._peeked)[:SHOWN]
        more = len(self._peeked) > SHOWN
        several = len(self._run.program.queries) > 1
        names = dict.fromkeys(name for match in shown for name in cells_of(match))
        heads = [*(["query"] if several else []), "start", "end", *names]
        rows = []
        for match in shown:
            cells = cells_of(match)
            start = [match.query] if several else []
            texts = [*start, time_text(match.start), time_text(match.end)]
            texts += [cells.get(name, "") for name in names]
            rows.append("".join(f"<td>{escape(text)}</td>" for text in texts))
        head = "".join(f"<th>{escape(name)}</th>" for name in heads)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        count = f"{len(shown)} match{'' if len(shown) == 1 else 'es'}"
        caption = f"the next {count}; there are more" if more else count
        if not shown:
            found = f"{self._read} match{'' if self._read == 1 else 'es'} read, none left"
            caption = found if self._read else f"no match: {self._first_obstacle()}"
        return (
            f"<table><caption>{escape(in_short(self._run.program))}: {escape(caption)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    def plot(self, most: int = 500) -> Picture:
        """A time line of the matches that have not been read, as SVG.

        Each match is a bar from its first to its last event. A notebook shows the picture; `save`
        writes it to a file, and `str` returns its text. The result is read to its end.

        Args:
            most: The number of matches to show; a note counts the others.

        Raises:
            InputError: if some times are dates and others numbers.
            SpaseqError: all errors of iterating over the matches.

        Example:
            >>> spaseq.run(query, streams={"trades": "trades.nq"}).plot().save("matches.svg")
        """
        from spaseq.explain.timeline import plot

        return plot(self, most)

    # ------------------------------------------------------------------ tables

    def to_batches(
        self,
        size: int = ROWS,
        *,
        columns: Sequence[str] | None = None,
        types: Mapping[str, pa.DataType] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The matches as record batches of pyarrow, while they are found.

        The columns of variables have the types that fit the first batch, so that all batches have
        one schema. Memory: one batch.

        Args:
            size: The number of rows of a batch; only the last one has fewer.
            columns: The columns, in order; by default those that the class names.
            types: The types of some columns, instead of those of the first batch.

        Raises:
            ArgumentError: immediately, for a size that is not a positive number.
            SpaseqError: immediately, for an unknown column, without pyarrow, and if the result has
                been read; while iterating, for a value that its column cannot represent. Errors of
                iterating over the matches are raised after the rows before them.

        Example:
            >>> for batch in spaseq.run(query, streams).to_batches(10_000):
            ...     writer.write_batch(batch)
        """
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ArgumentError(f"size: a batch has a positive number of rows, not {size!r}")
        rows = self._rows(columns, types)
        return self._batches(rows, size, dict(types or {}))

    def _batches(
        self, rows: TypedRows, size: int, types: Mapping[str, pa.DataType]
    ) -> Iterator[pa.RecordBatch]:
        schema: pa.Schema | None = None
        held: list[pa.RecordBatch] = []
        failure: Exception | None = None
        taking = self._taking(rows, size)
        while failure is None:
            try:
                next(taking)
                ended = False
            except StopIteration:
                ended = True
            except Exception as error:
                failure, ended = error, True
            parts = rows.take()
            if schema is None and parts:
                schema = rows.schema(parts, types)
            held += [rows.typed(part, schema) for part in parts]
            count = sum(batch.num_rows for batch in held)
            while count >= size or (ended and count):
                batch, held = _cut(held, size)
                count -= batch.num_rows
                yield batch
            if ended:
                break
        if failure is not None:
            raise failure

    def _taking(self, rows: TypedRows, size: int) -> Iterator[None]:
        """Add all matches to rows; yields whenever `size` rows can be removed."""
        while self._peeked:
            rows.add(self._peeked.popleft())
        try:
            for match in self._all():
                rows.add(match)
                if len(rows) >= size:
                    self._read += len(rows)
                    yield
        finally:
            self._read += len(rows)
            self._end()

    def _rows(
        self, columns: Sequence[str] | None, types: Mapping[str, pa.DataType] | None
    ) -> TypedRows:
        """Where the rows of the rest of the matches are collected."""
        _imported("pyarrow")
        from spaseq.io.arrow_columns import columns_of_shapes, select_columns
        from spaseq.io.typed_rows import TypedRows

        if isinstance(columns, str):
            raise ArgumentError(f"columns: a sequence of names, as in [{columns!r}]")
        program = self._run.program
        whole = columns_of_shapes(shapes(program), "timestamp")
        if columns is None:
            left_out = {*_NOT_BY_DEFAULT, *(["query"] if len(program.queries) == 1 else [])}
            columns = [name for name in whole.names() if name not in left_out]
        try:
            (chosen,) = select_columns([whole], list(columns))
        except ValueError as error:
            raise SpaseqError(str(error)) from None
        for name in types or {}:
            if name not in (chosen.wanted or ()):
                raise SpaseqError(
                    f"types names {name}, but the columns are {', '.join(chosen.wanted or ())}"
                )
        if self._is_finished and not self._peeked:
            raise self._already_read()
        rows = TypedRows(chosen, self._run.evaluation)
        self._is_taken = True
        if self._answers is None:
            self._is_table = True
            rows.attach()
        return rows

    def to_arrow(
        self,
        *,
        columns: Sequence[str] | None = None,
        types: Mapping[str, pa.DataType] | None = None,
    ) -> pa.Table:
        """The matches as a pyarrow table, whose types fit all matches.

        Args:
            columns: The columns, in order; by default those that the class names.
            types: The types of some columns, instead of those that fit the values.

        Raises:
            SpaseqError: as for `to_batches`. A failure while the matches are found leaves no table.

        Cost: the memory of the table twice.

        Example:
            >>> spaseq.run(query, streams).to_arrow(columns=["end", "price"])
        """
        pa = _imported("pyarrow")
        rows = self._rows(columns, types)
        parts: list[Part] = []
        for _ in self._taking(rows, ROWS):
            parts += rows.take()
        parts += rows.take()
        schema = rows.schema(parts, dict(types or {}))
        return pa.Table.from_batches([rows.typed(part, schema) for part in parts], schema)

    def to_reader(
        self,
        size: int = ROWS,
        *,
        columns: Sequence[str] | None = None,
        types: Mapping[str, pa.DataType] | None = None,
    ) -> pa.RecordBatchReader:
        """The matches as a reader of pyarrow; the arguments are those of `to_batches`.

        The first batch is computed at once, since a reader has a schema.

        Args:
            size: The number of rows of a batch.
            columns: The columns, in order.
            types: The types of some columns.

        Raises:
            SpaseqError: as for `to_batches`.

        Example:
            >>> duckdb.from_arrow(spaseq.run(query, streams).to_reader())
        """
        pa = _imported("pyarrow")
        rows = self._rows(columns, types)
        given = dict(types or {})
        batches = self._batches(rows, size, given)
        first = next(batches, None)
        if first is None:
            return pa.RecordBatchReader.from_batches(rows.schema([], given), [])
        return pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The matches through the Arrow PyCapsule interface, as from `to_reader`."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_polars(
        self,
        *,
        columns: Sequence[str] | None = None,
        types: Mapping[str, pa.DataType] | None = None,
    ) -> pl.DataFrame:
        """The matches as a data frame of polars; the arguments are those of `to_arrow`.

        Raises:
            SpaseqError: as for `to_arrow`, and without polars.

        Example:
            >>> spaseq.run(query, streams).to_polars().group_by("room").len()
        """
        polars = _imported("polars")
        frame: pl.DataFrame = polars.from_arrow(self.to_arrow(columns=columns, types=types))
        return frame

    def to_pandas(
        self,
        *,
        columns: Sequence[str] | None = None,
        types: Mapping[str, pa.DataType] | None = None,
    ) -> pd.DataFrame:
        """The matches as a data frame of pandas; the arguments are those of `to_arrow`.

        Integers and booleans are pandas' `Int64` and `boolean`, so that unbound variables are `NA`
        and do not change the type.

        Raises:
            SpaseqError: as for `to_arrow`, and without pandas.

        Example:
            >>> spaseq.run(query, streams).to_pandas().set_index("end")
        """
        pa, pandas = _imported("pyarrow"), _imported("pandas")
        nullable = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
        table = self.to_arrow(columns=columns, types=types)
        frame: pd.DataFrame = table.to_pandas(types_mapper=nullable.get)
        return frame


_begun: WeakSet[Result] = WeakSet()
"""The results that are being read."""
_kept: list[object] = []
"""What reads the results of the parent of a forked process; see `Result._refuse`."""


def _forked() -> SpaseqError:
    """A forked process has not the threads of its parent, and shares the place in open files."""
    return SpaseqError(
        "this process is a fork of the process that reads the events, without its threads: call "
        "spaseq.run in each process, or begin processes before the first match is read, or with "
        'multiprocessing.get_context("spawn")'
    )


def _refused() -> Iterator[Any]:
    raise _forked()
    yield


def _refuse_all() -> None:
    """In a forked process: refuse to read what its parent reads."""
    for result in list(_begun):
        result._refuse()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_refuse_all)


def _marked(answers: Iterable[tuple[Iterable[Match | None], object]]) -> Iterator[Match | None]:
    """The matches of all batches of events, and None after each batch."""
    process = os.getpid()
    with python_words():
        for found, _ in answers:
            yield from found
            yield None
            if os.getpid() != process:
                raise _forked()


_INSTALL = {
    "pyarrow": "'spaseq[arrow]'",
    "polars": "'spaseq[frames]'",
    "pandas": "'spaseq[arrow]' pandas",
}
"""What `pip install` needs for each library of tables."""


def _imported(name: str) -> Any:
    """A library of tables.

    Raises:
        SpaseqError: if it is not installed.
    """
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise SpaseqError(
            f"tables need the package {name}: pip install {_INSTALL[name]} ({error})"
        ) from error


def _cut(batches: list[pa.RecordBatch], size: int) -> tuple[pa.RecordBatch, list[pa.RecordBatch]]:
    """The first rows of some batches as one batch, at most `size`, and the rest."""
    import pyarrow as pa

    first, missing = list[pa.RecordBatch](), size
    rest = deque(batches)
    while missing and rest:
        batch = rest.popleft()
        first.append(batch.slice(0, missing))
        if batch.num_rows > missing:
            rest.appendleft(batch.slice(missing))
        missing -= first[-1].num_rows
    joined = first[0] if len(first) == 1 else pa.concat_batches(first)
    return joined, list(rest)
