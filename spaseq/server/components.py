"""Components: streams and runs that queries connect, with one time.

A query connects the streams that it reads, and the stream that it registers with its readers. Such
streams wait for each other and have the same kind of time, numbers or dates. Streams that nothing
connects have nothing to do with each other. The queries of a run are connected, so a component has
whole runs (`spaseq.server.run_set`).

When a query connects two components, their runs continue where they are, and the streams wait for
each other from then on. So nothing that was processed is contradicted: an event is late only for
the time that a run of its own stream has reached. If the queries must share a run, since one reads
the registered streams of others, the run has the later of the times (`Machine.join`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spaseq.rdf.event import DATE_TIME, NUMBER
from spaseq.rdf.reorder import connected, holder_of, released_up_to
from spaseq.rdf.time import from_micros, json_value
from spaseq.server.inputs import InputStream
from spaseq.server.problems import Problem
from spaseq.server.run_set import ServerRun

KINDS = {NUMBER: "numbers", DATE_TIME: "dates"}


@dataclass(frozen=True, slots=True)
class Component:
    """Connected streams and runs.

    Args:
        streams: The streams that the queries read, without registered ones.
        runs: The runs.
    """

    streams: Sequence[InputStream]
    runs: Sequence[ServerRun]

    @property
    def name(self) -> str:
        """Its first stream, which names it."""
        return self.streams[0].iri

    @property
    def kind(self) -> str:
        """The kind of its times; empty before the first event."""
        return next((stream.domain.kind for stream in self.streams if stream.domain.kind), "")

    @property
    def bound(self) -> int | None:
        """The time up to which its events can be released; None: not known yet."""
        return released_up_to(self.streams)

    @property
    def holder(self) -> InputStream | None:
        """The stream that holds back the others, if one does."""
        return holder_of(self.streams)

    @property
    def closed(self) -> int | None:
        """The time that its runs have reached, in microseconds."""
        reached = [one.run.clock.closed for one in self.runs]
        return max((time for time in reached if time is not None), default=None)

    @property
    def watermark(self) -> Any:
        """The time that its runs have reached, as in matches; None before the first event."""
        closed, kind = self.closed, self.kind
        return None if closed is None or not kind else json_value(from_micros(closed, kind))

    def share_kind(self, stream: InputStream) -> None:
        """Let a stream have the kind of time of the others, before its first event."""
        own = stream.domain
        if own.kind:
            return
        for other in self.streams:
            if other.domain.kind:
                own.kind, own.origin = other.domain.kind, other.domain.origin
                return

    def set_floors(self) -> None:
        """Let events be late that are before the time that a run of their stream has reached."""
        floors: dict[str, int] = {}
        for one in self.runs:
            closed = one.run.clock.closed
            if closed is not None:
                for iri in one.streams:
                    floors[iri] = max(closed, floors.get(iri, closed))
        for stream in self.streams:
            stream.floor = floors.get(stream.iri)


@dataclass(frozen=True, slots=True)
class Holding:
    """A stream that holds back others.

    Args:
        stream: The stream.
        heard: The time of its last push, on the monotonic clock.
        others: The others.
    """

    stream: str
    heard: float
    others: Sequence[str]


def components_of(
    runs: Iterable[ServerRun], streams: dict[str, InputStream]
) -> dict[str, Component]:
    """IRI of a stream → its component. Streams that no run reads are not there."""
    listed = list(runs)
    found: dict[str, Component] = {}
    for numbers in connected([one.connects for one in listed]):
        some = [listed[number] for number in numbers]
        iris = dict.fromkeys(iri for one in some for iri in one.streams)
        component = Component([streams[iri] for iri in iris], some)
        found |= dict.fromkeys(iris, component)
    return found


def check_kinds(found: Iterable[Component]) -> None:
    """Refuse a query that would connect components with different kinds of time.

    Raises:
        Problem: with a stream of each kind.
    """
    known: dict[str, str] = {}
    for component in found:
        if component.kind:
            known.setdefault(component.kind, component.name)
    if len(known) > 1:
        (first, one), (second, other), *_ = known.items()
        raise Problem(
            409, f"the query connects <{one}>, whose times are {KINDS[first]}, with <{other}>, "
            f"whose times are {KINDS[second]}", "time",
        )  # fmt: skip
