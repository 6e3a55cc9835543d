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
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from spaseq.errors import InputError
from spaseq.io.framing_errors import Questions
from spaseq.io.lines import STDIN
from spaseq.io.losses import Loss, merged_losses
from spaseq.io.native._json_rows import JsonBlock
from spaseq.io.native._row_events import RowReader, is_of_use
from spaseq.io.read_options import Troubles
from spaseq.io.rows.columns import variable_of
from spaseq.io.rows.formats import ROW_FORMATS
from spaseq.io.rows.losses import TableLosses
from spaseq.io.rows.mapping import TIME, RowMapping, column_variables
from spaseq.io.rows.plan import RowPlan, bind_mapping
from spaseq.io.rows.tables import Rows, Table, buffers_at, open_table
from spaseq.io.source import Source
from spaseq.rdf import time
from spaseq.rdf.ahead import Ahead, Lane
from spaseq.rdf.event import Term
from spaseq.rdf.native._framing import EventReader, Minter
from spaseq.rdf.native._terms import EventBatch, Relevance

_LONG_BYTES = 1 << 20
_Rows: TypeAlias = "tuple[int, Rows | str]"
"""A row number with the rows from there on, or with the error in that row."""
EVENTS_AT_ONCE = 1024
"""The most events in a batch: as many as fit in the processor's cache."""


@dataclass(slots=True)
class RowSource(Source):
    """A stream read from successive tables: paths, or tables in memory.

    `mapping` makes events of the rows. With `ordered`, `reader` knows the `?_ordinal` of each row.
    """

    files: Sequence[Any]
    mapping: RowMapping | None = None
    ordered: bool = False
    reader: RowReader | None = None
    """The reader of the rows of the last table."""
    _table: TableLosses | None = field(init=False, default=None)
    """The losses of the table that is being read."""
    _lost: list[Loss] = field(init=False, default_factory=list)
    """Those of the tables that have been read."""

    def _losses(self) -> list[Loss]:
        """What the rows so far have lost."""
        current = () if self._table is None else self._table.losses()
        return merged_losses([*self._lost, *current])

    def _read(
        self, relevance: Relevance, troubles: Troubles, minter: Minter | None
    ) -> Iterator[EventBatch]:
        questions = _RowQuestions(self.options, self.domain, troubles)
        self.counters.losses = self._losses
        factor = time.MICROS_PER_UNIT[self.options.unit]
        events = EventReader(relevance, questions, self.stream, minter, factor)
        named = self.options.syntax if self.options.syntax in ROW_FORMATS else None
        for content in self.files:
            table = open_table(content, named, questions.malformed_row)
            self.lines = table
            troubles.unit = table.unit
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
        plan = self._plan(table, relevance)
        if plan is None:
            return
        assert self.mapping is not None
        rows = self.reader = RowReader(events, relevance, plan, questions)
        losses = TableLosses(self.mapping, plan, rows, table.name, table.unit)
        self._table = losses
        questions.file = table.name
        events.start_file(table.name, "message", 0, (), not self.options.arrival_time, False)
        events.refresh()
        steps = _read_rows_ahead if ahead else _read_rows
        reading = steps(table, plan, rows, losses, questions)
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
            self._lost, self._table = self._losses(), None

    def _plan(self, table: Table, relevance: Relevance) -> RowPlan | None:
        """The mapping for the columns of a table; None: the table is empty."""
        assert self.mapping is not None
        required, optional = column_variables(self.mapping.tree)
        if self.options.time_column is not None:
            required |= {variable_of((self.options.time_column,))}
        columns = table.columns(required, optional)
        if columns is None:
            return None
        try:
            plan = bind_mapping(
                self.mapping,
                columns,
                self.options.time_column,
                lambda predicate, value: is_of_use(relevance, predicate, value),
                self.ordered,
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
    table: Table, plan: RowPlan, rows: RowReader, losses: TableLosses, questions: _RowQuestions
) -> Generator[bool, None, None]:
    """Read a table into events; True each time that a batch of events may be yielded."""
    for first, batch in table.batches(plan.columns):
        yield from _batch_rows(table, plan, rows, losses, first, batch)


def _read_rows_ahead(
    table: Table, plan: RowPlan, rows: RowReader, losses: TableLosses, questions: _RowQuestions
) -> Generator[bool, None, None]:
    """The same as `_read`, with a thread that reads the rows ahead."""

    def batches(lane: Lane[_Rows]) -> Iterator[_Rows]:
        questions.lane = lane
        return table.batches(plan.columns)

    ahead = Ahead(batches)
    try:
        for first, found in ahead:
            if isinstance(found, str):
                questions.malformed_row(found, first)
            else:
                yield from _batch_rows(table, plan, rows, losses, first, found)
    finally:
        ahead.stop()
        questions.lane = None


def _batch_rows(
    table: Table, plan: RowPlan, rows: RowReader, losses: TableLosses, first: int, batch: Rows
) -> Iterator[bool]:
    lines = 0
    if isinstance(batch, JsonBlock):
        lines = batch.lines
        losses.add_misfits(batch.misfits)
    rows.start(
        [
            buffers_at(batch, i, plan.columns[i], table.name, first)
            for i in range(len(plan.columns))
        ],
        first,
        lines,
    )
    for start in range(0, batch.num_rows, EVENTS_AT_ONCE):
        rows.read(start, min(start + EVENTS_AT_ONCE, batch.num_rows))
        yield True


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

    def no_ordinal(self, term: Term, row: int) -> None:
        self.report(f"?_ordinal is {term}; an ordinal is an xsd:integer of 64 bits", row)

    def no_name(self, term: Term, row: int) -> None:
        self.report(f"?_graph is {term}; the name of an event is an IRI", row)
