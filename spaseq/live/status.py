"""The status of a live run in numbers, taken by the coordinator and read by any thread.

A `Status` is immutable. The coordinator takes one between two batches, at most every
`INTERVAL_SECONDS`, so reading one never waits for the run or disturbs it. Cost: linear in the
places of the queries and the streams, not in the state.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from spaseq.engine.place_names import Notation
from spaseq.live.protocols import ReportingSource
from spaseq.live.waiting import Waiting
from spaseq.rdf.event import DATE_TIME
from spaseq.rdf.time import from_micros
from spaseq.records import dataclass

if TYPE_CHECKING:
    from spaseq.engine.compiled import CompiledQuery
    from spaseq.engine.run_query import RunQuery
    from spaseq.live.coordinator import Coordinator, Input

INTERVAL_SECONDS = 0.5
"""The least time between two statuses."""
OVERDUE_INTERVALS = 3
"""The number of intervals without a checkpoint after which the run is not ready."""


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """One stream.

    Args:
        iri: The stream.
        events: Events accepted: neither late nor ahead.
        late: Events that were too late.
        rejected: Errors that were skipped.
        watermark: The time before which no further events come, in seconds (since 1970, if times
            are dates); None if it is not known.
        shown: The watermark in the notation of the data.
        lag: Seconds of the watermark behind the clock; None if times are not dates.
        waiting: Events that wait for other streams or for late events.
        queued: Bytes in the queue between the source and the run.
        silent: Seconds since the source last had bytes.
        is_open: Whether the source has been opened.
        is_idle: Whether it no longer holds back the others.
        has_ended: Whether the source has ended.
        holds_back: Whether other streams wait for it.
        problem: The problem that prevents the source from reading, if it reports one.
        ahead: Events that were too far ahead of the clock.
    """

    iri: str
    events: int
    late: int
    rejected: int
    watermark: float | None
    shown: str | None
    lag: float | None
    waiting: int
    queued: int
    silent: float
    is_open: bool
    is_idle: bool
    has_ended: bool
    holds_back: bool
    problem: str | None
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """One query: matches found, groups dropped by a limit, and groups by title of their place."""

    name: str
    matches: int
    shed: int
    groups: Mapping[str, int]
    shares: bool = False
    """Whether its groups are those of an equal query before it."""


@dataclass(frozen=True, slots=True)
class CheckpointStatus:
    """The checkpoints: number, size in bytes and age in seconds of the last complete one.

    `age` counts from the start of this process until it has made one. `pause` and `longest_pause`
    are the seconds for which the last and the slowest one stopped the run; `failed` counts those
    that were not written.
    """

    number: int
    size: int
    age: float
    interval: float
    pause: float
    longest_pause: float
    failed: int


@dataclass(frozen=True, slots=True)
class Status:
    """The run at the moment `taken`, on the monotonic clock."""

    taken: float
    events: int
    written: int
    streams: Sequence[StreamStatus]
    queries: Sequence[QueryStatus]
    checkpoint: CheckpointStatus | None
    kb: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The counters of requests (`spaseq.kb.client.Counters`), by graph or service."""
    output: Waiting | None = None
    """Returns the current problem of the output, since the run takes no status while it waits."""

    @property
    def groups(self) -> int:
        """The number of groups of partial matches; equal queries share them."""
        return sum(sum(query.groups.values()) for query in self.queries if not query.shares)

    def obstacles(self) -> list[str]:
        """The reasons why the run is not ready, as texts."""
        found = []
        for stream in self.streams:
            if stream.has_ended:
                continue
            if stream.problem is not None:
                found.append(f"stream <{stream.iri}>: {stream.problem}")
            elif not stream.is_open:
                found.append(f"stream <{stream.iri}>: its source is not open yet")
            if stream.holds_back and stream.silent >= 1.0:
                found.append(
                    f"stream <{stream.iri}>: quiet for {stream.silent:.0f} s, holds others back"
                )
        if self.output is not None and self.output.problem is not None:
            found.append(f"output: it cannot be written: {self.output.problem}")
        made = self.checkpoint
        if made is not None and made.age > OVERDUE_INTERVALS * made.interval + 1.0:
            found.append(f"checkpoint: the last one is {made.age:.0f} s old")
        return found


def named_places(query: CompiledQuery) -> Sequence[tuple[int, str]]:
    """The places of a query in which partial matches wait, with their titles."""
    notation = Notation(query)
    return [
        (place, notation.title(place))
        for place in notation.order
        if not notation.automaton.places[place].start
    ]


class StatusTaker:
    """Takes statuses of one coordinator."""

    def __init__(self, coordinator: Coordinator):
        self._coordinator = coordinator
        self._queries: Sequence[RunQuery] = ()
        self._places: Sequence[tuple[RunQuery, Sequence[tuple[int, str]]]] = ()
        """The queries, and the places of each. Of the queries of a template, the first has them."""
        self._begun = time.monotonic()

    def _look_at_queries(self) -> None:
        """Name the places of the queries, which may change."""
        run = self._coordinator.run.evaluation
        if self._queries is run.listed.queries:
            return
        self._queries, entries = run.listed.queries, {*run.listed.entries}
        self._places = [
            (query, named_places(query.executor.compiled) if query in entries else ())
            for query in self._queries
        ]

    def take(self) -> Status:
        """The status now; call it from the thread of the coordinator, between two batches."""
        coordinator, now = self._coordinator, time.monotonic()
        self._look_at_queries()
        holder = coordinator.holder()
        made, checkpoint = coordinator.checkpoints, None
        if made is not None:
            checkpoint = CheckpointStatus(
                made.number, made.size, now - (made.made_at or self._begun), made.interval,
                made.pause, made.longest_pause, made.failed,
            )  # fmt: skip
        return Status(
            now,
            coordinator.events,
            coordinator.written,
            [
                self._stream(number, one, now, one.stream is holder)
                for number, one in enumerate(coordinator.inputs)
            ],
            [
                QueryStatus(
                    query.plan.name,
                    query.matched,
                    query.state.shed,
                    {title: query.state.native.parts.live_groups(n) for n, title in places},
                    query is not query.executor.first,
                )
                for query, places in self._places
            ],
            checkpoint,
            coordinator.run.kb.statistics,
            coordinator.output,
        )

    def _stream(self, number: int, one: Input, now: float, holds_back: bool) -> StreamStatus:
        stream, inbox = one.stream, self._coordinator.inbox
        counters = stream.source.counters
        frontier, domain = stream.frontier, stream.domain
        seconds = shown = lag = None
        if frontier is not None and domain:
            seconds, shown = frontier / 1e6, from_micros(frontier, domain).term.value
            if domain == DATE_TIME:
                lag = time.time() - seconds
        problem: Any = None
        if isinstance(one.source, ReportingSource):
            problem = one.source.problem
        return StreamStatus(
            stream.source.stream,
            counters.events - counters.late - counters.ahead,
            counters.late,
            counters.skipped,
            seconds,
            shown,
            lag,
            stream.pending,
            inbox.size(number),
            inbox.silence(number, now),
            inbox.is_open(number),
            stream.is_idle,
            stream.ended,
            holds_back,
            problem,
            counters.ahead,
        )
