"""How the events of a case arrive, drawn by chance, and what docs/language.md says about it.

Streams run ahead of each other, their events come late and in pieces of several, they fall silent,
promise times, end early, and the process stops or is killed. `Time` is section 7 of the language by
brute force: which events are late, and up to which time everything is over.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from strategies import EXAMPLE, Case, numbered

from spaseq.rdf.event import Event, n_triples
from spaseq.rdf.time import canonical_literal

GENERATED_AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
SECOND_MICROS = 1_000_000


@dataclass(frozen=True)
class Arrive:
    """Events of a stream, which arrive together."""

    stream: int
    events: tuple[tuple[int, Event], ...]
    """Each with its number among the arrivals of its stream."""

    def text(self) -> bytes:
        """The events in N-Quads."""
        return "".join(map(n_quads, *zip(*self.events, strict=True))).encode()


@dataclass(frozen=True)
class Promise:
    """A watermark of a stream, in microseconds."""

    stream: int
    micros: int


@dataclass(frozen=True)
class Silence:
    """A stream is silent for so long that the others do not wait for it."""

    stream: int


@dataclass(frozen=True)
class End:
    """A stream ends."""

    stream: int


@dataclass(frozen=True)
class Checkpoint:
    """The state is saved."""


@dataclass(frozen=True)
class Restart:
    """The process stops and starts again; `kills`: from the last checkpoint."""

    kills: bool


Action = Arrive | Promise | Silence | End | Checkpoint | Restart


def n_quads(number: int, event: Event) -> str:
    """An event of a stream in N-Quads."""
    graph = f"<{event.stream}/{number}>"
    lines = [f"{graph} {GENERATED_AT} {canonical_literal(event.time)} .\n"]
    for subject, predicate, object_ in event.facts:
        lines.append(f"{subject} {predicate} {n_triples(object_)} {graph} .\n")
    return "".join(lines)


@dataclass(frozen=True)
class Arrivals:
    """The events of a case as they arrive.

    Args:
        case: The query, the events in order, and the KB.
        lateness: That of all streams, in microseconds; None: each is in order.
        actions: What happens.
    """

    case: Case
    lateness: int | None
    actions: tuple[Action, ...]

    @property
    def iris(self) -> list[str]:
        """The streams, in the order of their numbers."""
        return list(self.case.streams)

    def arrived(self, stream: int) -> Iterator[tuple[int, Event]]:
        """The events of a stream in the order in which they arrive, late ones too."""
        for action in self.actions:
            if isinstance(action, Arrive) and action.stream == stream:
                yield from action.events

    def accepted(self, time: Time) -> Case:
        """The case of the events that were not late."""
        streams = {
            iri: numbered([event for _, event in stream.accepted])
            for iri, stream in zip(self.iris, time.streams, strict=True)
        }
        return replace(self.case, streams=streams)

    def __repr__(self) -> str:
        lateness = None if self.lateness is None else self.lateness / SECOND_MICROS
        return "\n".join([f"lateness {lateness}", *map(self._shown, self.actions)])

    def _shown(self, action: Action) -> str:
        match action:
            case Arrive():
                times = ", ".join(event.time.term.value for _, event in action.events)
                return f"{self.iris[action.stream].removeprefix(EXAMPLE)}: {times}"
            case Promise():
                return f"{self.iris[action.stream].removeprefix(EXAMPLE)}: from {action.micros} on"
            case Silence() | End():
                name = self.iris[action.stream].removeprefix(EXAMPLE)
                return f"{name}: {type(action).__name__.lower()}"
        return repr(action)


# ------------------------------------------------------------------ what the language says


@dataclass(slots=True)
class _StreamTime:
    accepted: list[tuple[int, Event]]
    """The events that were not late, in order, with their numbers."""
    greatest: int | None = None
    promised: int | None = None
    is_silent: bool = False
    has_ended: bool = False


class Time:
    """The time of some streams of one query."""

    def __init__(self, count: int, lateness: int | None):
        self._lateness = lateness or 0
        self.streams = [_StreamTime([]) for _ in range(count)]
        self.closed: int | None = None
        """The time before which everything is over."""
        self.late: set[tuple[int, int]] = set()
        """(Stream, number) of the events that were late."""

    @property
    def key(self) -> str:
        """Which events were not late."""
        return repr([[number for number, _ in stream.accepted] for stream in self.streams])

    def take(self, action: Action) -> None:
        match action:
            case Arrive(stream, events):
                for number, event in events:
                    self._arrive(stream, number, event)
            case Promise(stream, micros):
                known = self.streams[stream].promised
                self.streams[stream].promised = micros if known is None else max(known, micros)
                self.streams[stream].is_silent = False
            case Silence(stream):
                self.streams[stream].is_silent = True
            case End(stream):
                self.streams[stream].has_ended = True
        self._close()

    def speak(self) -> None:
        """Let no stream count as silent any more."""
        for stream in self.streams:
            stream.is_silent = False
        self._close()

    def _arrive(self, number: int, place: int, event: Event) -> None:
        stream, micros = self.streams[number], event.time.micros
        stream.is_silent = False
        own = None if stream.greatest is None else stream.greatest - self._lateness
        if any(time is not None and micros < time for time in (own, stream.promised, self.closed)):
            self.late.add((number, place))
            return
        stream.greatest = micros if stream.greatest is None else max(stream.greatest, micros)
        stream.accepted.append((place, event))
        stream.accepted.sort(key=lambda pair: pair[1].time.micros)

    def _frontier(self, stream: _StreamTime) -> int | None:
        """The time before which a stream has no further events."""
        own = None if stream.greatest is None else stream.greatest - self._lateness
        return max((time for time in (own, stream.promised) if time is not None), default=None)

    def _close(self) -> None:
        active = [stream for stream in self.streams if not stream.has_ended]
        speaking = [stream for stream in active if not stream.is_silent]
        frontiers = [self._frontier(stream) for stream in speaking or active]
        known = [frontier for frontier in frontiers if frontier is not None]
        if not known or (speaking and len(known) < len(speaking)):
            return
        bound = min(known) if speaking else max(known)
        begun = any(
            event.time.micros <= bound for stream in self.streams for _, event in stream.accepted
        )
        if begun and (self.closed is None or bound > self.closed):
            self.closed = bound


# ------------------------------------------------------------------ drawing


def drawn_arrivals(case: Case, seed: int) -> Arrivals:
    """The arrivals of a case, by the chance of a seed."""
    return _Drawing(case, random.Random(seed)).arrivals()


class _Drawing:
    def __init__(self, case: Case, chance: random.Random):
        self._case = case
        self._chance = chance
        self._lateness = chance.choice((None, None, 0, 1, 1, 2, 3))
        if self._lateness is not None:
            self._lateness *= SECOND_MICROS
        self._promises = chance.random() < 0.5
        self._silences = chance.random() < 0.3
        self._restarts = chance.random() < 0.6

    def arrivals(self) -> Arrivals:
        chance = self._chance
        queues = [list(enumerate(self._order(events))) for events in self._case.streams.values()]
        skewed = chance.random() < 0.5
        actions: list[Action] = []
        ended: set[int] = set()
        while any(queues):
            filled = [number for number, queue in enumerate(queues) if queue]
            if skewed:
                stream = chance.choice(filled)
            else:
                stream = min(filled, key=lambda one: (queues[one][0][1].time.micros, one))
            count = min(chance.choice((1, 1, 1, 2, 3)), len(queues[stream]))
            actions.append(Arrive(stream, tuple(queues[stream][:count])))
            del queues[stream][:count]
            if not queues[stream] and chance.random() < 0.3:
                actions.append(End(stream))
                ended.add(stream)
            actions += self._between(queues, ended)
        empty = [number for number in range(len(queues)) if number not in ended]
        chance.shuffle(empty)
        return Arrivals(self._case, self._lateness, (*actions, *map(End, empty)))

    def _order(self, events: Sequence[Event]) -> list[Event]:
        """Some events later than they should be: by the lateness exactly, by less, by more."""
        lateness = self._lateness
        if lateness is None:
            return list(events)
        late = lateness + SECOND_MICROS
        delays = (0, 0, 0, lateness, lateness, lateness // 2, late, late)
        return sorted(events, key=lambda e: e.time.micros + self._chance.choice(delays))

    def _between(
        self, queues: Sequence[Sequence[tuple[int, Event]]], ended: set[int]
    ) -> Iterator[Action]:
        chance = self._chance
        open_ = [number for number in range(len(queues)) if number not in ended]
        if self._promises and open_ and chance.random() < 0.3:
            stream = chance.choice(open_)
            times = [event.time.micros for queue in queues for _, event in queue]
            own = [event.time.micros for _, event in queues[stream]]
            choices = [time for time in (min(own, default=None), *times) if time is not None]
            if choices:
                yield Promise(stream, chance.choice((choices[0], chance.choice(choices))))
        if self._silences and open_ and chance.random() < 0.25:
            yield Silence(chance.choice(open_))
        if self._restarts and chance.random() < 0.3:
            yield Checkpoint()
        if self._restarts and chance.random() < 0.3:
            yield Restart(chance.random() < 0.5)
