"""One stream, from its files to its events, in the order of time.

Invariant of what comes out: instants strictly increase, the ordinal counts the earlier
events of the same timestamp, facts are distinct, and no two events of a run share a blank
node (labels are minted from the numbers of the source and of the event). Memory is that of
one event, or of the events within the allowed lateness.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import pyoxigraph as ox

from spaseq.errors import EventError, InputError
from spaseq.io.framing import (
    ClosedGraphs,
    GraphFraming,
    Name,
    RawEvent,
    message_events,
    triples_events,
)
from spaseq.io.lines import STDIN, Lines, announces_messages, syntax_of, syntax_of_content
from spaseq.io.messages import message_statements
from spaseq.io.options import Counters, ReadOptions, Syntax, Troubles, log_warning
from spaseq.io.statements import (
    RawTerm,
    Statement,
    document_statements,
    line_statements,
)
from spaseq.rdf import time
from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Fact, Term, Timestamp


@dataclass(slots=True)
class TimeDomain:
    """The one domain of time of all sources of a run: that of the first event read."""

    kind: str = ""
    origin: str = ""

    def conflict(self, stamp: Timestamp, origin: str) -> str:
        """What is wrong with this timestamp; empty where it is of the domain."""
        if not self.kind:
            self.kind, self.origin = stamp.domain, origin
        if stamp.domain == self.kind:
            return ""
        shown = {NUMBER: "a number", DATE_TIME: "a date"}
        return (
            f"the timestamp is {shown[stamp.domain]}, but that at {self.origin} is "
            f"{shown[self.kind]}; all streams of a run must use one or the other"
        )


@dataclass(slots=True)
class Source:
    """A stream read from files, one after the other. `number` is its place in the run."""

    stream: str
    files: Sequence[str]
    options: ReadOptions = field(default_factory=ReadOptions)
    number: int = 0
    domain: TimeDomain = field(default_factory=TimeDomain)
    log: Callable[[str], None] = log_warning
    counters: Counters = field(default_factory=Counters)
    lines: Lines | None = None
    """The file being read: for progress."""

    def __iter__(self) -> Iterator[Event]:
        """The events in order; an `InputError` ends them when all before it have come out."""
        troubles = Troubles(self.options.on_error, self.counters, self.log)
        timed = _Reading(self, troubles).timed_events()
        if self.options.lateness is None:
            ordered = _in_order(timed, troubles)
        else:
            ordered = _reordered(timed, self.options.lateness, troubles)
        return _Minting(self).events(ordered)

    @property
    def live(self) -> bool:
        """Whether somebody may still be writing what is read here."""
        return STDIN in self.files or self.options.arrival_time


@dataclass(frozen=True, slots=True)
class _Timed:
    """A raw event with its timestamp, and where it was read."""

    raw: RawEvent
    time: Timestamp
    file: str


class _Reading:
    """The state of one pass over the files of a source."""

    def __init__(self, source: Source, troubles: Troubles):
        self._source = source
        self._options = source.options
        self._troubles = troubles
        self._closed = ClosedGraphs()
        self._file: Lines
        self._clock: int | None = None
        self._parsed: tuple[RawTerm, Timestamp] | None = None  # equal stamps come in runs

    def timed_events(self) -> Iterator[_Timed]:
        """The events of all files, in the order they are read."""
        place = 0
        for path in self._source.files:
            syntax = self._options.syntax or syntax_of(path)
            self._file = self._source.lines = Lines(path)
            try:
                for raw in self._raw_events(syntax or syntax_of_content(self._file.head())):
                    stamp = self._stamp(raw, place)
                    place += 1
                    if stamp is not None and self._is_usable(raw, stamp):
                        yield _Timed(raw, stamp, self._file.name)
            finally:
                self._file.close()

    def _raw_events(self, syntax: Syntax) -> Iterator[RawEvent]:
        file, options, troubles = self._file, self._options, self._troubles
        kind = options.framing.kind
        if kind == "auto":
            kind = "message" if announces_messages(file.head()) else "graph"
        statements: Iterator[Statement]
        if syntax in ("nq", "nt"):
            statements = line_statements(file, syntax, troubles)
        elif kind == "message":
            statements = message_statements(file, syntax, troubles)
        else:
            statements = document_statements(file, syntax, troubles)
        if kind == "message":
            return message_events(statements, options, file.name, troubles)
        if kind == "triples":
            return triples_events(statements, options, file.name, troubles)
        return self._graph_events(statements)

    def _graph_events(self, statements: Iterator[Statement]) -> Iterator[RawEvent]:
        counters = self._source.counters
        unused, found = counters.unused, False
        framing = GraphFraming(
            self._options, self._file.name, self._troubles, counters, self._closed
        )
        for event in framing.events(statements):
            found = True
            yield event
        if not found and counters.unused > unused:
            self._report(
                self._file.number,
                "no event in this file: it has no named graphs; --events triples:N or "
                "--events message cut triples into events",
            )

    def _stamp(self, raw: RawEvent, place: int) -> Timestamp | None:
        """The timestamp of an event; None where it has none and was reported."""
        if self._options.arrival_time:
            now = self._options.clock()
            self._clock = now if self._clock is None else max(now, self._clock)
            return time.from_micros(self._clock, DATE_TIME)
        if not raw.stamps:
            return time.from_micros(place * 1_000_000, NUMBER)
        stamp: Timestamp | None = None
        for term, line in raw.stamps:
            try:
                other = self._parse(term)
            except EventError as error:
                self._report(line, str(error))
                return None
            if stamp is not None and (other.micros, other.domain) != (stamp.micros, stamp.domain):
                self._report(line, f"an event with two timestamps: {stamp.term} and {other.term}")
                return None
            stamp = other
        return stamp

    def _parse(self, term: RawTerm) -> Timestamp:
        if self._parsed is None or self._parsed[0] != term:
            if not isinstance(term, ox.Literal):
                raise EventError(f"{term} is not a timestamp: it is not a literal")
            self._parsed = (term, time.from_literal(term, self._options.unit))
        return self._parsed[1]

    def _is_usable(self, raw: RawEvent, stamp: Timestamp) -> bool:
        conflict = self._source.domain.conflict(stamp, f"{self._file.name}:{raw.line}")
        if not conflict and ox.Triple in {type(value) for _, _, value in raw.facts}:
            conflict = "a triple term (<<( )>>): RDF 1.2 triple terms are not supported"
        if conflict:
            self._report(raw.line, conflict)
        return not conflict

    def _report(self, line: int, message: str) -> None:
        self._troubles.report(message, self._file.name, line)


def _in_order(arrivals: Iterator[_Timed], troubles: Troubles) -> Iterator[_Timed]:
    """The events that do not go back in time; one that does is an error."""
    last: Timestamp | None = None
    for timed in arrivals:
        if last is not None and timed.time.micros < last.micros:
            troubles.report(
                f"time runs backwards: {timed.time.term.value} after {last.term.value} in the "
                "same stream (--lateness DURATION puts events in order that come late)",
                timed.file,
                timed.raw.line,
            )
            continue
        last = timed.time
        yield timed


def _reordered(arrivals: Iterator[_Timed], lateness: int, troubles: Troubles) -> Iterator[_Timed]:
    """The events in order, over a heap of those the watermark has not reached.

    The watermark is the greatest timestamp less the lateness. An event at the watermark is in
    time: it follows those of its timestamp that were already released.
    """
    waiting: list[tuple[int, int, _Timed]] = []
    watermark: int | None = None
    arrived = 0
    failure: InputError | None = None
    while True:
        try:
            timed = next(arrivals, None)
        except InputError as error:
            timed, failure = None, error
        if timed is None:
            break
        micros = timed.time.micros
        if watermark is not None and micros < watermark:
            closed = time.from_micros(watermark, timed.time.domain).term.value
            troubles.late(
                f"its time is {timed.time.term.value}, and all before {closed} is closed",
                timed.file,
                timed.raw.line,
            )
            continue
        arrived += 1
        heapq.heappush(waiting, (micros, arrived, timed))
        watermark = micros - lateness if watermark is None else max(watermark, micros - lateness)
        while waiting and waiting[0][0] <= watermark:
            yield heapq.heappop(waiting)[2]
    while waiting:
        yield heapq.heappop(waiting)[2]
    if failure is not None:
        raise failure


class _Minting:
    """Ordered raw events to events: ordinals, distinct facts, blank nodes of their own."""

    def __init__(self, source: Source):
        self._source = source
        self._made = 0

    def events(self, ordered: Iterator[_Timed]) -> Iterator[Event]:
        stream, counters = self._source.stream, self._source.counters
        last: int | None = None
        ordinal = 0
        for timed in ordered:
            raw = timed.raw
            ordinal = ordinal + 1 if timed.time.micros == last else 0
            last = timed.time.micros
            facts, name = self._own(raw)
            counters.events += 1
            counters.statements += len(raw.facts)
            yield Event(stream, timed.time, ordinal, facts, name, f"{timed.file}:{raw.line}")

    def _own(self, raw: RawEvent) -> tuple[tuple[Fact, ...], Name | None]:
        """The distinct facts and the name, blank nodes renamed in the order they occur."""
        self._made += 1
        facts, name = cast(tuple[Fact, ...], tuple(dict.fromkeys(raw.facts))), raw.name
        kinds = {type(subject) for subject, _, _ in facts}
        kinds.update(type(value) for _, _, value in facts)
        if type(name) is not ox.BlankNode and ox.BlankNode not in kinds:
            return facts, name
        prefix = f"s{self._source.number}e{self._made}b"
        own: dict[Term, ox.BlankNode] = {}

        def renamed(term: Term) -> Term:
            if type(term) is not ox.BlankNode:
                return term
            if term not in own:
                own[term] = ox.BlankNode(f"{prefix}{len(own)}")
            return own[term]

        facts = tuple((renamed(s), p, renamed(o)) for s, p, o in facts)
        if isinstance(name, ox.BlankNode):
            name = own.get(name) or ox.BlankNode(f"{prefix}{len(own)}")
        return facts, name
