"""The groups of a query's results, as far as compiled code reads the results.

The core reads the results of most queries and adds them to the groups
(`spaseq.engine.native._groups`). It makes the matches from the groups and from the steps of
their newest results (`spaseq.engine.native._groups`). If results depend on each other, or if
Python computes their keys or arguments, the results of an instant are gathered for sliding groups
(`spaseq.engine.native._groups`). Otherwise Python lists the results.
"""

from __future__ import annotations

from collections.abc import Callable

from spaseq.engine.compiled import CompiledQuery
from spaseq.engine.native._groups import (
    GatheredGroupMaker,
    GroupedMatches,
    GroupMaker,
    ResultReader,
)
from spaseq.engine.native._matches import Matches
from spaseq.engine.native.query_run import NativeRun
from spaseq.engine.native_groups import match_columns, read_in_python, result_reader
from spaseq.engine.output import OutputStage
from spaseq.engine.projection import listing
from spaseq.engine.result_groups import NEVER
from spaseq.gpm.named_graphs import CurrentGraphs
from spaseq.kb.knowledge import Knowledge
from spaseq.rdf.error_count import ErrorCount
from spaseq.rdf.event import Timestamp
from spaseq.rdf.native._terms import EventBatch
from spaseq.rdf.time import from_micros
from spaseq.results import Match


class CoreGroups:
    """The groups of one query.

    Args:
        compiled: The query, which has a GROUP.
        output: Its output stage.
        kb: The knowledge base.
    """

    def __init__(self, compiled: CompiledQuery, output: OutputStage, kb: CurrentGraphs):
        assert output.groups is not None
        self._compiled = compiled
        self._output = output
        self._groups = output.groups
        self._kb = kb
        self._native: NativeRun | None = None
        self._reader: ResultReader | None = None
        """Reads the results; None if Python lists them."""
        self._maker: GroupMaker | None = None
        """Makes the matches from what the reader has added."""
        self._gathered: GatheredGroupMaker | None = None
        """Gathers the results of an instant and makes the matches of their groups."""
        self._solutions: GroupedMatches | None = None
        """The last iterator over the solutions of a batch."""
        self._made = 0

    def read_from(self, native: NativeRun) -> None:
        """Read the results of an automaton from now on."""
        groups, self._native = self._groups, native
        columns = match_columns(self._compiled)
        self._output.errors.keep(self.errors())
        self._reader = self._maker = self._gathered = None
        self.set_deadline()
        if read_in_python(self._compiled) is not None:
            if self._can_gather:
                self._gathered = native.maker_of_groups(groups.native, columns, self._output)
        elif groups.native is not None:
            reader = result_reader(native, self._compiled, groups.native)
            groups.shown = lambda number: native.witnesses_of(reader.shown(number)) or None
            self._reader = reader
            self._maker = GroupMaker(reader, columns, self._output)

    def errors(self) -> list[ErrorCount | None]:
        """The errors of the keys and arguments that the reader evaluates; None for the others."""
        if self._reader is None:
            return []
        names = self._output.cell_names()
        return [None if each is None else each.named(names) for each in self._reader.errors]

    @property
    def gathers(self) -> bool:
        """Whether the results of an instant are gathered."""
        return self._gathered is not None

    @property
    def _can_gather(self) -> bool:
        # The newest results of tumbling groups outlive their instant.
        return not self._groups.tumbling and listing(self._compiled) is not None

    def leave_core(self, without: int = 0) -> None:
        """Let Python read the results and keep the groups, without the newest results."""
        self._groups.leave_core(without)
        self._made, self._solutions = self.made, None
        self._output.errors.keep(self.errors())
        self._reader = self._maker = self._gathered = None

    @property
    def made(self) -> int:
        """The number of matches so far, without those that `close` returned."""
        gathered = 0 if self._gathered is None else self._gathered.made
        return self._made + gathered + (0 if self._solutions is None else self._solutions.made)

    @property
    def due(self) -> int:
        """The end of the current tumbling window, if it has results; otherwise `NEVER`."""
        return self._groups.due

    def set_deadline(self) -> None:
        """Make the core stop at the end of the current window."""
        assert self._native is not None
        self._native.step.tumbles = self._groups.tumbling
        self._native.step.wake_at(self._groups.due)

    def begin(self, micros: int) -> None:
        """Begin a tumbling window if the results of an instant are the first ones."""
        if self.due == NEVER and self._groups.held_count:
            self._groups.begin(micros)
            self.set_deadline()

    def taken(self, end: Timestamp) -> list[Match] | None:
        """The matches of the complete results, which end at `end`; None if Python lists these."""
        if self._gathered is not None:
            assert self._native is not None
            if not self._native.core.complete:
                return []
            skips = self._compiled.plan.skip_past_last
            return list(self._gathered.take(skips, self._kb.version))
        if self._reader is None or self._maker is None:
            return None
        if self._reader.refused == 0:
            self._reader.read()
        if self._reader.refused:
            self.leave_core(without=self._reader.refused - 1)
            return None
        if self._groups.tumbling:
            self.begin(end.micros)
            return []
        matches = self._maker.made_now(self._kb.version)
        self._made += len(matches)
        return matches

    def taken_before(self, before: int | None, ending: bool) -> list[Match] | None:
        """The matches of the windows and deadlines before a time (None: all).

        None if Python lists the results. `ending`: the end of input closes them.
        """
        if self._gathered is None:
            return None
        found = list(self._gathered.take_due(before, self._kb.version, ending))
        if before is not None:
            self._groups.expire(before)
        return found

    def end_inputs(self, last: int) -> None:
        """Some input stream has ended with an event at a time, in microseconds."""
        if self._gathered is not None:
            self._gathered.ended_at = last

    @property
    def closed_by_end(self) -> int:
        """The number of matches whose windows the end of input closed."""
        return 0 if self._gathered is None else self._gathered.closed_by_end

    def close(self, domain: str) -> list[Match]:
        """The matches of the current tumbling window, which has ended."""
        end = from_micros(self.due, domain)
        if self._maker is None:
            matches = self._output.close_groups(end)
        else:
            matches = self._maker.made_at(end, self._output.shown_by, self._kb.version)
            self._groups.clear()
        self.set_deadline()
        return matches

    def stream(
        self,
        batch: EventBatch,
        first: int,
        numbers: tuple[int, int],
        position: int,
        kb: Knowledge,
        closed: Callable[[int], list[Match]],
    ) -> GroupedMatches | Matches | None:
        """An iterator over the matches of the events of a batch; None if Python lists results.

        Args:
            batch: The events.
            first: The index of the first event.
            numbers: The numbers of the stream and of the file.
            position: The number of events of the run before it.
            kb: The knowledge base.
            closed: The matches of the tumbling window that ends by a time in microseconds.
        """
        if self._gathered is not None:
            skips = self._compiled.plan.skip_past_last
            return self._gathered.run(batch, first, *numbers, position, skips, kb)
        if self._maker is None:
            return None
        self._made, self._solutions = self.made, None
        self._solutions = GroupedMatches(
            self._maker,
            self if self._groups.tumbling else None,
            closed,
            batch,
            first,
            *numbers,
            position,
            kb,
        )
        return self._solutions
