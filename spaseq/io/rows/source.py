"""The tables of one stream → its events: a `Source` whose files are read by a mapping.

A row that no filter of the mapping drops is an event. Its time is `?_time`, or else the value of
the time column, and obeys the rules of all sources: one domain of time per run, order within the
stream or within the lateness. A time that is a string is read as an xsd:dateTime (with a `T` or a
space before the time of day), as an xsd:date, or as a number of time units.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from spaseq.errors import InputError
from spaseq.io.framing_errors import Questions
from spaseq.io.lines import STDIN
from spaseq.io.native._row_events import RowReader, is_of_use
from spaseq.io.read_options import Troubles
from spaseq.io.rows.columns import array_at, buffers_of, columns_of
from spaseq.io.rows.formats import ROW_FORMATS
from spaseq.io.rows.mapping import TIME, RowMapping
from spaseq.io.rows.plan import RowPlan, bind_mapping
from spaseq.io.rows.tables import Table, open_table
from spaseq.io.source import Source
from spaseq.rdf import time
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._relevance import Relevance
from spaseq.rdf.ahead import Ahead, Lane
from spaseq.rdf.event import Term
from spaseq.rdf.native._framing import EventReader
from spaseq.rdf.native._minting import Minter

if TYPE_CHECKING:
    import pyarrow as pa

_LONG_BYTES = 1 << 20
_Rows: TypeAlias = "tuple[int, pa.RecordBatch | str]"
"""A row number with the rows from there on, or with the error in that row."""
EVENTS_AT_ONCE = 1024
"""The most events in a batch: as many as fit in the processor's cache."""


@dataclass(slots=True)
class RowSource(Source):
    """A stream read from successive tables: paths, or tables in memory.

    `mapping` makes events of the rows.
    """

    files: Sequence[Any]
    mapping: RowMapping | None = None

    def _read(
        self, relevance: Relevance, troubles: Troubles, minter: Minter | None
    ) -> Iterator[EventBatch]:
        questions = _RowQuestions(self.options, self.domain, troubles)
        troubles.unit = "row"
        factor = time.MICROS_PER_UNIT[self.options.unit]
        events = EventReader(relevance, questions, self.stream, minter, factor)
        named = self.options.syntax if self.options.syntax in ROW_FORMATS else None
        for content in self.files:
            table = open_table(content, named, questions.malformed_row)
            self.lines = table
            ahead = self.options.workers > 1 and not self.live and _is_long_file(content)
            try:
                yield from self._table_batches(table, events, relevance, questions, ahead)
            finally:
                table.close()

    @property
    def live(self) -> bool:
        """Whether the input may still be growing."""
        piped = any(isinstance(content, str) and content == STDIN for content in self.files)
        return piped or self.options.arrival_time

    @property
    def reads_ahead(self) -> bool:
        """False: a thread only reads rows, since making events enters terms in the dictionary."""
        return False

    def _table_batches(
        self,
        table: Table,
        events: EventReader,
        relevance: Relevance,
        questions: _RowQuestions,
        ahead: bool,
    ) -> Iterator[EventBatch]:
        """The events of one table, including those before the error that ends it.

        With `ahead`, another thread reads its rows ahead.
        """
        if table.schema is None:
            return
        plan = self._plan(table, relevance)
        rows = RowReader(events, relevance, plan, questions)
        questions.file = table.name
        events.start_file(table.name, "message", 0, (), not self.options.arrival_time, False)
        events.refresh()
        steps = _read_rows_ahead if ahead else _read_rows
        reading = steps(table, plan, rows, questions)
        more = True
        try:
            while more:
                failure: InputError | None = None
                try:
                    more = next(reading, False)
                except InputError as error:
                    failure = error
                if len(events.batch):
                    yield events.fresh()
                if failure is not None:
                    raise failure
                events.refresh()
        finally:
            reading.close()

    def _plan(self, table: Table, relevance: Relevance) -> RowPlan:
        assert self.mapping is not None
        columns = columns_of(table.schema or ())
        try:
            plan = bind_mapping(
                self.mapping,
                columns,
                self.options.time_column,
                lambda predicate, value: is_of_use(relevance, predicate, value),
            )
        except LookupError as error:
            raise InputError(str(error.args[0]), table.name) from error
        has_time = plan.time_slot >= 0 or plan.column_time_slot >= 0
        if not has_time and not self.options.arrival_time:
            raise InputError(
                f"its rows have no time: BIND ?{TIME} in the mapping, name a column by "
                "--time-column NAME (time_column= in Python), or use --arrival-time",
                table.name,
            )
        return plan


def _is_long_file(content: Any) -> bool:
    """Whether a table is a regular file that is large enough for a thread."""
    try:
        found = os.stat(content)
    except (OSError, TypeError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > _LONG_BYTES


def _read_rows(
    table: Table, plan: RowPlan, rows: RowReader, questions: _RowQuestions
) -> Generator[bool, None, None]:
    """Read a table into events; True each time that a batch of events may be yielded."""
    for first, batch in table.batches(_names(plan)):
        yield from _batch_rows(table, plan, rows, first, batch)


def _read_rows_ahead(
    table: Table, plan: RowPlan, rows: RowReader, questions: _RowQuestions
) -> Generator[bool, None, None]:
    """The same as `_read`, with a thread that reads the rows ahead."""

    def batches(lane: Lane[_Rows]) -> Iterator[_Rows]:
        questions.lane = lane
        return table.batches(_names(plan))

    ahead = Ahead(batches)
    try:
        for first, found in ahead:
            if isinstance(found, str):
                questions.malformed_row(found, first)
            else:
                yield from _batch_rows(table, plan, rows, first, found)
    finally:
        ahead.stop()
        questions.lane = None


def _names(plan: RowPlan) -> list[str]:
    """The columns that a plan reads, each once."""
    return list(dict.fromkeys(column.path[0] for column in plan.columns))


def _batch_rows(
    table: Table, plan: RowPlan, rows: RowReader, first: int, batch: pa.RecordBatch
) -> Iterator[bool]:
    rows.start([_buffers(batch, column.path, table, first) for column in plan.columns], first)
    for start in range(0, batch.num_rows, EVENTS_AT_ONCE):
        rows.read(start, min(start + EVENTS_AT_ONCE, batch.num_rows))
        yield True


def _buffers(batch: pa.RecordBatch, path: tuple[str, ...], table: Table, first: int) -> Any:
    try:
        return buffers_of(array_at(batch, path))
    except (ValueError, NotImplementedError) as error:
        raise InputError(
            f"the column {'.'.join(path)} cannot be read: {error}", table.name, first, "row"
        ) from error


class _RowQuestions(Questions):
    """Takes the reports of the compiled reader of rows, and malformed rows."""

    lane: Lane[_Rows] | None = None
    """The list in which the thread that reads ahead puts its reports, between the rows."""

    def malformed_row(self, text: str, row: int) -> None:
        if self.lane is not None and self.lane.is_own and self._options.on_error == "skip":
            self.lane.put((row, text))
        else:
            self.report(f"malformed: {text}", row)

    def untimed_row(self, row: int) -> None:
        self.report(f"a row without a time: ?{TIME} is unbound, or the time column is empty", row)

    def no_name(self, term: Term, row: int) -> None:
        self.report(f"?_graph is {term}; the name of an event is an IRI", row)
