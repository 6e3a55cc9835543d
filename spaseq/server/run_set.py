"""The runs of the server: the queries that share work.

Queries share a run if they are connected by streams and have equal options (entailment and limits).
A query with different options is in another run, which sees the same events. A query that shares no
stream with others is in another run with a time of its own (`spaseq.server.components`). A stream
that a query registers exists only within its run, so its readers must have the same options.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from spaseq.engine.changes import Joining
from spaseq.engine.instants import QueryRun
from spaseq.engine.regrouping import regrouped, separated
from spaseq.engine.run_queries import RunQueries
from spaseq.errors import QueryWarning, StateError
from spaseq.live.status import named_places
from spaseq.parser import ast
from spaseq.plan.logical import QueryPlan
from spaseq.plan.templates import LEAST
from spaseq.program import Program
from spaseq.rdf.native._framing import Minter
from spaseq.rdf.native._terms import Dictionary, EventBatch
from spaseq.rdf.reorder import BEFORE_ALL
from spaseq.results import Match
from spaseq.runs import Run
from spaseq.server.inputs import InputStream
from spaseq.server.kb_graphs import KbGraphs
from spaseq.server.problems import Problem
from spaseq.server.releasing import match_up_to
from spaseq.server.run_options import RunOptions, RunSettings, limits_of, may_share
from spaseq.server.standing import Definition, Standing
from spaseq.server.waiting import Released

MAX_RUNS = 1024
"""The most runs; each takes about half a megabyte before its first event."""
EVENTS_AT_ONCE = 4096
"""The most events in a batch for a run."""
_SIZE_BYTES = 8


@dataclass(slots=True)
class ServerRun:
    """A run with the events of the server.

    Args:
        serial: Its number, which no other run has had.
        options: The options of its queries.
        run: The run.
        minters: IRI of a stream → what numbers its events in this run.
        shares: Whether queries can be evaluated as one (`spaseq.engine.regrouping`).
        tried: The number of queries evaluated alone from which on templates are looked for.
        left: What templates still evaluate of queries that have left them, by the names there.
        uses: IRI of a stream → how many of the queries read it.
        registers: IRI of a stream → how many of the queries register it.
        published: The time that subscribers were told last, in microseconds.
    """

    serial: int
    options: RunOptions
    run: Run
    minters: dict[str, Minter] = field(default_factory=dict)
    shares: bool = False
    tried: int = 0
    left: dict[str, Definition] = field(default_factory=dict)
    uses: Counter[str] = field(default_factory=Counter)
    registers: Counter[str] = field(default_factory=Counter)
    published: int | None = None
    _places: WeakKeyDictionary[QueryRun, Sequence[tuple[int, str]]] = field(
        default_factory=WeakKeyDictionary, repr=False
    )

    @property
    def dictionary(self) -> Dictionary:
        return self.run.relevance.dictionary

    @property
    def names(self) -> Sequence[str]:
        """The names of the queries in the run."""
        return [query.name for query in self._listed.texts if query.name not in self.left]

    @property
    def _listed(self) -> RunQueries:
        return self.run.evaluation.listed

    @property
    def streams(self) -> list[str]:
        """The IRIs of the input streams that queries read, in the order of the run."""
        return [iri for iri in self.run.clock.streams if self.uses[iri] and not self.registers[iri]]

    @property
    def connects(self) -> set[str]:
        """The IRIs of the streams that the queries read or register."""
        return {*+self.uses, *+self.registers}

    def fits(self, streams: Mapping[str, int]) -> bool:
        """Whether a query can be in the run without missing events, or making them late.

        Args:
            streams: IRI of a stream that it reads → the least time of its next event.
        """
        closed, known = self.run.clock.closed, self.connects
        return closed is None or all(
            iri in known or bound >= closed for iri, bound in streams.items()
        )

    def count(self, standing: Standing, by: int) -> bool:
        """Count the streams of a query; returns whether others are read or registered now.

        Args:
            standing: The query.
            by: 1 if it is in the run, -1 if it is no longer there.
        """
        before = self.connects
        for iri in standing.streams.values():
            self.uses[iri] += by
        if standing.registers:
            self.registers[standing.registers] += by
        return before != self.connects

    @property
    def has_begun(self) -> bool:
        """Whether an event has arrived, so that a query can have partial matches."""
        return self.run.clock.closed is not None

    def number(self, name: str) -> int | None:
        """The number of the query with a name in the run; None if it is no longer there."""
        query = self._listed.by_name.get(name)
        return None if query is None else self._listed.queries.index(query)

    def source(self, name: str) -> ast.Query:
        """The query of a name."""
        return self._listed.by_name[name].source

    @property
    def plans(self) -> list[QueryPlan]:
        """The plans of the queries."""
        plans = [query.plan for query in self._listed.queries]
        return [plan for plan in plans if plan.name not in self.left]

    # ------------------------------------------------------------ templates

    def group(self) -> None:
        """Let queries join templates, if so many are evaluated alone that it pays.

        Their number has to grow between two times, so that registering queries one by one costs
        what registering them together costs, but for a factor. No match depends on when it is done.
        """
        self._forget_left()  # a query that registers a stream has ended all templates
        evaluation = self.run.evaluation
        alone = len(evaluation.queries) - len(evaluation.listed.divisions)
        if not self.shares or alone < max(LEAST, self.tried):
            return
        self.run.begin_change()
        change = regrouped(evaluation, Program)
        if change is not None:
            self.run.change(change)
            self._forget_left()
        alone = len(evaluation.queries) - len(evaluation.listed.divisions)
        self.tried = alone + max(LEAST, len(self.names) // 2)

    def leave_template(self, definition: Definition, keeps: bool = True) -> None:
        """Evaluate a query alone, since it will be replaced, drain or be removed.

        Args:
            definition: The query.
            keeps: Whether it keeps its partial matches.
        """
        self.run.begin_change()
        found = separated(self.run.evaluation, definition.name, keeps)
        if found is None:
            return
        change, left = found
        self.run.change(change)
        self._forget_left()
        if left is not None:
            self.left[left] = definition
            self._listed.silence([left])

    @property
    def suspects(self) -> Sequence[str]:
        """The queries to blame where no single one is known: those of a template, or all."""
        failing = self.run.evaluation.failing
        if failing is None or failing.template is None:
            return self.names
        return [query.name for query in failing.queries if query.name not in self.left]

    @property
    def states(self) -> Iterator[tuple[str, QueryRun]]:
        """Name → state of the queries, equal ones that share it too; of a template, the first."""
        for executor in self._listed.executors:
            names = [query.plan.name for query in executor.queries]
            names = [name for name in names if name not in self.left]
            for name in names if executor.template is None else names[:1]:
                yield name, executor.state

    def separate(self) -> None:
        """Evaluate each query alone; `group` makes templates again."""
        self.run.divide()
        self.left.clear()
        self.tried = 0

    def retain(self, names: Collection[str]) -> None:
        """Remove all other queries, which have become a run of their own."""
        # The run ends drained versions before any other change.
        self.run.finish(close=False)
        for query in reversed(self._listed.texts):  # readers before writers
            if (name := query.name) not in names and name in self._listed.by_name:
                self.run.remove(name)
        self.group()

    def places_of(self, query: QueryRun) -> Sequence[tuple[int, str]]:
        """The places of a query in which partial matches wait, with their titles."""
        known = self._places.get(query)
        if known is None:
            known = self._places[query] = named_places(query.compiled)
        return known

    def restore_left(self, left: Mapping[str, Definition]) -> None:
        """What `left` was when the run was saved."""
        if self.run.evaluation.listed.divisions:
            self.left = dict(left)
            self._listed.silence(left)
            return
        for name in left:  # the server has got limits, with which there are no templates
            self.run.remove(name)

    def _forget_left(self) -> None:
        names = self._listed.by_name
        self.left = {name: one for name, one in self.left.items() if name in names}

    def matches(
        self,
        streams: Mapping[str, InputStream],
        released: Mapping[str, Sequence[Released]],
        bound: int,
    ) -> Iterator[Match]:
        """Match the events that were released up to a time, and close the time before it."""
        queues = [self._batches(streams[iri], released[iri]) for iri in self.streams]
        frontiers = ((iri, streams[iri].frontier) for iri in self.streams)
        reached = {iri: time for iri, time in frontiers if time is not None}
        return match_up_to(self.run, queues, bound, reached)

    def _batches(self, stream: InputStream, released: Sequence[Released]) -> Iterator[EventBatch]:
        """The events of a stream, with the terms and the numbers of this run."""
        if not released:
            return
        dictionary = self.dictionary
        minter = self.minters.get(stream.iri)
        if minter is None:
            minter = self.minters[stream.iri] = Minter(stream.number)
            # Blank nodes of an earlier run must not have the labels of those of this run.
            count = sum(end - start for _, start, end in released)
            minter.restore(stream.released - count, BEFORE_ALL, 0)
        copy, ready, count, closed = minter.copy, None, 0, self.run.clock.closed
        for batch, start, end in released:
            # A run that a query joined may be ahead of events that have waited for another run.
            first = start
            while closed is not None and start < end and batch.micros(start) < closed:
                start += 1
            if start > first:
                made, last, ordinal = minter.state()
                minter.restore(made + start - first, last, ordinal)
            for index in range(start, end):
                if ready is None or count >= EVENTS_AT_ONCE:
                    if ready is not None:
                        yield ready
                    ready, count = EventBatch(dictionary, stream.iri, batch.file), 0
                copy(batch, index, ready)
                count += 1
        if ready is not None:
            yield ready


class RunSet:
    """All runs; there is none without a query.

    Args:
        settings: What holds for all queries.
        kb: The knowledge base.
    """

    def __init__(self, settings: RunSettings, kb: KbGraphs):
        self._settings = settings
        self._kb = kb
        self._runs: dict[int, ServerRun] = {}
        self._next = 0
        """The serial number of the next run."""

    def __iter__(self) -> Iterator[ServerRun]:
        return iter(list(self._runs.values()))

    def __len__(self) -> int:
        return len(self._runs)

    def of(self, serial: int) -> ServerRun | None:
        """The run with a serial number."""
        return self._runs.get(serial)

    @property
    def all(self) -> list[Run]:
        return [one.run for one in self]

    # ------------------------------------------------------------ changes

    def start(self, options: RunOptions, program: Program) -> ServerRun:
        """Start the run of some queries.

        Raises:
            KbError, LimitExceeded: if it cannot be.
            Problem: if there are too many runs.
        """
        if len(self._runs) >= MAX_RUNS:
            raise Problem(
                403, f"the server has {MAX_RUNS} runs already: queries with limits or entailment "
                "of their own, or without a stream in common, need one each", "limit",
            )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QueryWarning)
            run = program.start(
                kb=self._kb.sources(self.all), entail=options.entail, prune=False,
                **limits_of(options, self._settings),
            )  # fmt: skip
        return self._added(options, run, self._next)

    def _added(self, options: RunOptions, run: Run, serial: int) -> ServerRun:
        limits = limits_of(options, self._settings)
        shares = options.entail is None and may_share(limits)
        one = self._runs[serial] = ServerRun(serial, options, run, shares=shares)
        self._next = max(self._next, serial + 1)
        return one

    def end(self, serial: int) -> None:
        """End a run, whose last query is removed."""
        self._runs.pop(serial).run.close()

    def home(self, options: RunOptions, streams: Mapping[str, int]) -> ServerRun | None:
        """The run that a query joins, which reads one of its streams; None: a new one.

        Args:
            options: The options of the query.
            streams: IRI of a stream that it reads → the least time of its next event.
        """
        for one in self:
            is_near = one.options == options and not one.connects.isdisjoint(streams)
            if is_near and one.fits(streams):
                return one
        return None

    def bound_to(
        self, options: RunOptions, streams: Iterable[str], registers: str | None
    ) -> list[ServerRun]:
        """The runs with some options of which a query needs streams that exist only there.

        Args:
            options: The options of the query.
            streams: The streams that it reads.
            registers: The stream that it registers.
        """
        read = set(streams)
        return [
            one
            for one in self
            if one.options == options
            and (
                not read.isdisjoint(+one.registers)
                or (registers is not None and registers in one.connects)
            )
        ]

    def divide(
        self, one: ServerRun, groups: Sequence[Collection[str]], numbers: Mapping[str, int]
    ) -> list[ServerRun]:
        """Divide a run whose queries are no longer connected; each part goes on with its state.

        Args:
            one: The run, which retains the first group.
            groups: The names of the queries in the run.
            numbers: IRI of a stream → its number among the streams of the server.

        Returns:
            The runs of the groups.
        """
        one.separate()
        blob, program = one.run.save(), one.run.program
        assert isinstance(program, Program)
        parts = [one]
        for _ in groups[1:]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", QueryWarning)
                run = program.resume(
                    blob, self._kb.sources(self.all), prune=False,
                    **limits_of(one.options, self._settings),
                )  # fmt: skip
            part = self._added(one.options, run, self._next)
            for iri, minter in one.minters.items():
                part.minters[iri] = Minter(numbers[iri])
                part.minters[iri].restore(*minter.state())
            part.published = one.published
            parts.append(part)
        for part, names in zip(parts, groups, strict=True):
            part.retain(names)
        return parts

    def join(self, main: ServerRun, other: ServerRun) -> None:
        """Continue the queries of a run in another one, which has come to the same time.

        Raises:
            KbError, LimitExceeded, ChangeError: if it cannot be.
        """
        main.separate()
        other.separate()
        for run in (main.run, other.run):
            run.begin_change()
            run.evaluation.sync()
        main.run.change(Joining(main.run.evaluation, other.run.evaluation))
        for iri, minter in other.minters.items():
            main.minters.setdefault(iri, minter)
        self.end(other.serial)

    def check_registered(self, program: Program, options: RunOptions, name: str) -> None:
        """Refuse a query that shares a registered stream with queries of other options.

        Args:
            program: The program of the query.
            options: Its options.
            name: Its name; it may be in another run until now.

        Raises:
            Problem: with the stream and the other query.
        """
        (own,) = program.queries
        for one in self:
            if one.options == options:
                continue
            for other in one.plans:
                if other.shown == name:
                    continue
                registered = {own.plan.registers_stream, other.registers_stream} - {None}
                for stream in registered & {*own.plan.streams} | registered & {*other.streams}:
                    raise Problem(
                        409, f"the stream <{stream}> connects the query with the query "
                        f"{other.shown}, which has other limits or entailment: give both the "
                        "same", "conflict",
                    )  # fmt: skip

    def close(self) -> None:
        """Release the connections of the runs."""
        for run in self.all:
            run.close()

    # ------------------------------------------------------------ checkpoints

    def state(self) -> list[Any]:
        """Everything except the states of the runs, as data for `restore`."""
        return [
            [
                one.options.to_list(),
                [query.name for query in one.run.evaluation.listed.texts],
                {iri: list(minter.state()) for iri, minter in one.minters.items()},
                {name: definition.to_dict() for name, definition in one.left.items()},
                one.serial,
            ]
            for one in self
        ]

    def save(self) -> bytes:
        """The states of the runs, each preceded by its size."""
        parts = []
        for run in self.all:
            blob = run.save()
            parts += [len(blob).to_bytes(_SIZE_BYTES, "big"), blob]
        return b"".join(parts)

    def restore(
        self,
        saved: Iterable[Sequence[Any]],
        blob: bytes,
        programs: Iterable[Program],
        numbers: Mapping[str, int],
    ) -> None:
        """Return to a checkpoint.

        Args:
            saved: What `state` returned.
            blob: What `save` returned.
            programs: The programs of the runs.
            numbers: IRI of a stream → its number among the streams of the server.

        Raises:
            StateError: if they do not fit.
        """
        start = 0
        for (data, _, minters, left, serial), program in zip(saved, programs, strict=True):
            size = int.from_bytes(blob[start : start + _SIZE_BYTES], "big")
            start += _SIZE_BYTES + size
            if not size or start > len(blob):
                raise StateError("the checkpoint has not the states of all runs")
            options = RunOptions.of_list(data)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", QueryWarning)
                run = program.resume(
                    blob[start - size : start], self._kb.sources(self.all), prune=False,
                    **limits_of(options, self._settings),
                )  # fmt: skip
            one = self._added(options, run, serial)
            one.restore_left(_definitions(left))
            for iri, state in minters.items():
                one.minters[iri] = Minter(numbers[iri])
                one.minters[iri].restore(*state)


def names_of(
    saved: Iterable[Sequence[Any]],
) -> Iterator[tuple[int, Collection[str], dict[str, Definition]]]:
    """Of each run, from what `RunSet.state` returned: the serial, the names, what is left."""
    for _, names, _, left, serial in saved:
        yield serial, names, _definitions(left)


def _definitions(left: Mapping[str, Mapping[str, Any]]) -> dict[str, Definition]:
    return {name: Definition.from_dict(one) for name, one in left.items()}
