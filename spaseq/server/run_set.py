"""The runs of the server: one for each combination of entailment and limits.

Queries with equal options share a run, and so their work. A query with different options is in
another run, which sees the same events. A stream that a query registers exists only within its run,
so its readers must have the same options.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spaseq.errors import QueryWarning, StateError
from spaseq.program import Program
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._dictionary import Dictionary
from spaseq.rdf.native._minting import Minter
from spaseq.results import Match
from spaseq.runs import Run
from spaseq.server.inputs import BEFORE_ALL, InputStream
from spaseq.server.kb_graphs import KbGraphs
from spaseq.server.problems import Problem
from spaseq.server.releasing import match_up_to
from spaseq.server.run_options import RunOptions, RunSettings, limits_of
from spaseq.server.waiting import Released

MAX_RUNS = 64
"""The most runs; each has its own copy of the knowledge base."""
EVENTS_AT_ONCE = 4096
"""The most events in a batch for a run."""
_SIZE_BYTES = 8


@dataclass(slots=True)
class ServerRun:
    """A run with the events of the server.

    Args:
        options: The options of its queries.
        run: The run.
        minters: IRI of a stream → the minter that numbers its events in this run.
    """

    options: RunOptions
    run: Run
    minters: dict[str, Minter] = field(default_factory=dict)

    @property
    def dictionary(self) -> Dictionary:
        return self.run.relevance.dictionary

    @property
    def names(self) -> Sequence[str]:
        """The names of the queries in the run."""
        return self.run.program.names

    @property
    def streams(self) -> list[str]:
        """The IRIs of the streams that queries read, in the order of the run."""
        read = set(self.run.program.streams)
        return [iri for iri in self.run.clock.streams if iri in read]

    @property
    def has_begun(self) -> bool:
        """Whether an event has arrived, so that a query can have partial matches."""
        return self.run.clock.closed is not None

    def number(self, name: str) -> int | None:
        """The number of the query with a name in the run; None if it is no longer there."""
        names = [query.plan.name for query in self.run.program.queries]
        return names.index(name) if name in names else None

    def matches(
        self,
        streams: Mapping[str, InputStream],
        released: Mapping[str, Sequence[Released]],
        bound: int,
    ) -> Iterator[Match]:
        """Match the events that were released up to a time, and close the time before it."""
        queues = [self._batches(streams[iri], released[iri]) for iri in self.streams]
        return match_up_to(self.run, queues, bound)

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
        copy, ready, count = minter.copy, None, 0
        for batch, start, end in released:
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
        self._runs: dict[RunOptions, ServerRun] = {}

    def __iter__(self) -> Iterator[ServerRun]:
        return iter(list(self._runs.values()))

    def __len__(self) -> int:
        return len(self._runs)

    def of(self, options: RunOptions) -> ServerRun | None:
        """The run of the queries with some options."""
        return self._runs.get(options)

    @property
    def all(self) -> list[Run]:
        return [one.run for one in self]

    # ------------------------------------------------------------ changes

    def start(self, options: RunOptions, program: Program) -> ServerRun:
        """Start the run of some queries, which are the first ones with their options.

        Raises:
            KbError, LimitExceeded: if it cannot be.
            Problem: if there are too many runs.
        """
        if len(self._runs) >= MAX_RUNS:
            raise Problem(
                403, f"the server has {MAX_RUNS} combinations of entailment and limits already",
                "limit",
            )  # fmt: skip
        # Clients can inspect each query, so none is evaluated together with another.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QueryWarning)
            run = program.start(
                kb=self._kb.sources(), entail=options.entail, prune=False, share=False,
                **limits_of(options, self._settings),
            )  # fmt: skip
        self._runs[options] = ServerRun(options, run)
        return self._runs[options]

    def end(self, options: RunOptions) -> None:
        """End a run, whose last query is removed."""
        self._runs.pop(options).run.close()

    def check_registered(self, program: Program, options: RunOptions, name: str) -> None:
        """Refuse a query that shares a registered stream with queries of another run.

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
            for other in one.run.program.queries:
                if other.plan.shown == name:
                    continue
                registered = {own.plan.registers_stream, other.plan.registers_stream} - {None}
                for stream in registered & {*own.plan.streams} | registered & {*other.plan.streams}:
                    raise Problem(
                        409, f"the stream <{stream}> connects the query with the query "
                        f"{other.plan.shown}, which has other limits or entailment: give both the "
                        "same", "conflict",
                    )  # fmt: skip

    def close(self) -> None:
        """Release the connections of the runs."""
        for run in self.all:
            run.close()

    # ------------------------------------------------------------ time

    @property
    def streams(self) -> list[str]:
        """The IRIs of the streams that queries read, in the order of the runs."""
        return list(dict.fromkeys(iri for one in self for iri in one.streams))

    @property
    def closed(self) -> int | None:
        """The time before which no event is accepted, in microseconds."""
        reached = [one.run.clock.closed for one in self]
        return max((time for time in reached if time is not None), default=None)

    @property
    def domain(self) -> str | None:
        """The kind of time of the events; None before the first event."""
        return next((one.run.clock.domain for one in self if one.run.clock.domain), None)

    # ------------------------------------------------------------ checkpoints

    def state(self) -> list[Any]:
        """Everything except the states of the runs, as data for `restore`."""
        return [
            [
                one.options.to_list(),
                list(one.names),
                {iri: list(minter.state()) for iri, minter in one.minters.items()},
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
        for (data, _, minters), program in zip(saved, programs, strict=True):
            size = int.from_bytes(blob[start : start + _SIZE_BYTES], "big")
            start += _SIZE_BYTES + size
            if not size or start > len(blob):
                raise StateError("the checkpoint has not the states of all runs")
            options = RunOptions.of_list(data)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", QueryWarning)
                run = program.resume(
                    blob[start - size : start], self._kb.sources(), prune=False, share=False,
                    **limits_of(options, self._settings),
                )  # fmt: skip
            one = self._runs[options] = ServerRun(options, run)
            for iri, state in minters.items():
                one.minters[iri] = Minter(numbers[iri])
                one.minters[iri].restore(*state)


def names_of(saved: Iterable[Sequence[Any]]) -> Iterator[tuple[RunOptions, Collection[str]]]:
    """The options and the names of the queries of each run, from what `RunSet.state` returned."""
    for data, names, _ in saved:
        yield RunOptions.of_list(data), names
