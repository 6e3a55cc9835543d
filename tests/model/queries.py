"""Queries on the automaton in plain Python, which the compiled core is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

from model.acceptor import Acceptor
from model.contiguity import Contiguity
from model.registers import Registers
from model.run import AutomatonRun
from model.window import WindowClock
from spaseq.engine.aggregates import RunningAggregates
from spaseq.engine.instants import QueryRun
from spaseq.engine.limit_errors import exceeded
from spaseq.engine.native._matches import Matches
from spaseq.engine.native.query_run import NativeRun
from spaseq.engine.pattern_rows import EventRows
from spaseq.engine.place_names import Notation
from spaseq.engine.residual_filters import linked
from spaseq.errors import LimitExceeded
from spaseq.gpm.matchers import Matchers
from spaseq.kb.knowledge import Knowledge
from spaseq.nfa.counters import AutomatonCounters, MemoryUse
from spaseq.nfa.ended_starts import EndedStarts
from spaseq.nfa.match_path import Path, Row
from spaseq.rdf.error_count import ErrorCount
from spaseq.rdf.event import Event
from spaseq.rdf.limits import NO_LIMITS, LimitReached, Limits
from spaseq.rdf.native._terms import EventBatch
from spaseq.results import Match
from spaseq.runs import Run


def run_plainly(run: Run, limits: Limits = NO_LIMITS) -> Run:
    """Make a new run work without the compiled core."""
    for executor in run.evaluation.listed.executors:
        executor.state = PlainQueryRun(executor.state, run, limits)
    run.evaluation.listed.relist()
    return run


class PlainQueryRun(QueryRun):
    """One query: events reach its automaton one by one, as terms."""

    on_core = False

    def __init__(self, query: QueryRun, run: Run, limits: Limits):
        super().__init__(query.compiled, query._kb, run.rows.matchers, limits)
        registers = Registers(self.plan, RunningAggregates())
        calls = run.rows.matchers.calls
        acceptors = linked(self.plan, registers, query._kb, calls, Acceptor)
        automaton = self.compiled.automaton
        self.automaton = AutomatonRun(self.plan, automaton, registers, acceptors, limits)
        if self.output.groups is not None:
            self.group_in_python()
        self.native = cast(NativeRun, _Automaton(self, run.rows.matchers))
        self.constructs = None

    @property
    def shed(self) -> int:
        plain = self.automaton
        dropped = plain.shed_matches + plain.lists_cut
        return self.shed_before + dropped + sum(s.shed for s in plain.places)

    def counters(self) -> AutomatonCounters:
        plain = self.automaton
        return AutomatonCounters(
            places=[state.counters() for state in plain.places],
            waiting=len(plain.waiting),
            waited=plain.waited,
            forbidden=plain.forbidden,
            disagreed=[acceptor.disagreed for acceptor in plain.acceptors],
            untrue=[acceptor.untrue for acceptor in plain.acceptors],
            # The model does not count errors.
            errors=[
                [ErrorCount() for _ in occurrence.conditions]
                for occurrence in self.plan.occurrences
            ],
        )

    def held(self) -> MemoryUse:
        """Zeros, since only figures that are comparable with the core's are counted."""
        return MemoryUse(nodes=0, rows=0, bytes=0)

    def groups(self) -> Iterator[tuple[int, Sequence[Any]]]:
        for state in self.automaton.places:
            if not state.place.start:
                yield from ((state.number, values) for values in state.groups)

    def renew(self, matchers: Matchers) -> None:
        pass

    def arrived(
        self, place: int, registers: Sequence[int], since: int, most: int
    ) -> tuple[int, list[tuple[object, ...]]]:
        state = self.automaton.places[place]
        live = [state.place.live.index(register) for register in registers]
        some = state.arrived(since, most)
        return state.made, [tuple([values[c] for c in live]) for values in some]

    def exceeded(self, reached: LimitReached) -> LimitExceeded:
        held = self.groups(), len(self.automaton.waiting)
        return exceeded(reached, self.limits, Notation(self.compiled), held, self.time)

    def run(self, batch: EventBatch, first: int, position: int) -> tuple[int, Iterable[Match]]:
        return first, ()

    def stream(self, batch: EventBatch, first: int, position: int, kb: Knowledge) -> Matches | None:
        return None

    def reached(self, first: int) -> int:
        return first

    def _close_timestamp(self, rows: EventRows, found: list[Match]) -> None:
        super()._close_timestamp(rows, found)
        self.automaton.close_timestamp()


class _Automaton:
    """The interface that a query expects of its automaton, for an automaton in plain Python.

    Events are processed one by one only.
    """

    matches = best = None
    core = SimpleNamespace(
        lazy_join=SimpleNamespace(lazy=False, switches=0, searched=0, sampled=0),
        window=SimpleNamespace(bound=0),
        next_deadline=lambda ending: None,
    )
    """The automaton joins rows as they arrive, and does not run queries with deadlines."""
    step = SimpleNamespace(tumbles=False, wake_at=lambda due: None)
    """The automaton does not run ahead, so it need not be stopped at the end of a window."""

    def __init__(self, query: PlainQueryRun, matchers: Matchers):
        assert not query.compiled.automaton.timed
        self._query = query
        self._matchers = matchers
        skip_to = query.plan.skip_to
        self.ended = None if skip_to is None else EndedStarts(skip_to)

    def pushing(self, *_: object) -> None:
        return None

    def open_instant(self, micros: int) -> None:
        self._query.automaton.open_instant(micros)

    def feed(self, event: Event) -> None:
        query = self._query
        unfiltered: dict[int, Sequence[Row]] = {}
        filtered: dict[int, list[Row]] = {}
        for number, gpm in enumerate(query.plan.gpms):
            if event.stream in gpm.streams and query.automaton.waits_for(number):
                found = self._matchers.rows(event, query.compiled.tasks[number])
                unfiltered[number], filtered[number] = found
        query.automaton.feed(event, unfiltered, filtered)

    def close_instant(self) -> None:
        self._query.automaton.close_instant()

    def take(self, *, one: bool = False) -> Iterator[Path]:
        return self._query.automaton.take(one=one)

    def due(self, before: int | None) -> Iterator[tuple[int, bool, list[Path]]]:
        early = self._query.plan.window.kind == "tumbling"
        for closing, paths in self._query.automaton.due(before):
            yield closing, early, paths

    def skip(self, path: Path) -> None:
        self._query.automaton.skip(path)

    @property
    def clock(self) -> WindowClock:
        return self._query.automaton.clock

    @property
    def contiguity(self) -> Contiguity:
        return self._query.automaton.contiguity
