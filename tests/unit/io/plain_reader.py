"""The readers' meaning in plain Python: what the compiled reader must give, event by event.

Statements come from spaseq/io/statements.py and stay pyoxigraph terms to the end; nothing is
encoded, nothing is left out. Slow and simple, it is the model the tests compare with.
"""

from __future__ import annotations

import heapq
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias, cast

import pyoxigraph as ox

from spaseq.errors import EventError, InputError
from spaseq.io.formats import StreamSyntax
from spaseq.io.lines import Lines, announces_messages
from spaseq.io.messages import message_statements
from spaseq.io.read_options import Counters, ReadOptions, Troubles
from spaseq.io.recognition import recognised
from spaseq.io.source import Source
from spaseq.io.statements import (
    Malformed,
    RawFact,
    RawTerm,
    Statement,
    document_statements,
    line_statements,
)
from spaseq.io.time_path import GENERATED_AT
from spaseq.rdf import time
from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Fact, Term, Timestamp, n_triples, with_nodes

REMEMBERED_GRAPHS = 1 << 16

_BEGUN = re.compile(rb"\s*(<[^>]*>|_:\S+)\s+(<\S*)")
"""The prefix of a statement: its subject, and the beginning of its predicate."""

Name: TypeAlias = ox.NamedNode | ox.BlankNode
Stamp: TypeAlias = tuple[RawTerm, int]
"""A term that is said to be the time, and the line that says so."""

_TOGETHER = (
    "; the statements of a graph and its timestamp must be consecutive (--events dataset reads all "
    "files first and collects graphs wherever they are)"
)
_AGAIN = " (--reuse-graph-names: a name that occurs again with a time is another event)"
_MESSAGES_HINT = (
    '; such a file begins with VERSION "1.1-messages", or is read with --events message'
)


@dataclass(slots=True)
class RawEvent:
    """One event as the file has it; `line` is that of its first statement."""

    line: int
    name: Name | None
    facts: list[RawFact]
    stamps: list[Stamp]


@dataclass(slots=True)
class ClosedGraphs:
    """The names of the graphs closed last, oldest forgotten first."""

    order: deque[Name] = field(default_factory=deque)
    names: dict[Name, tuple[str, int]] = field(default_factory=dict)
    """Where each of them began: the file and the line."""

    def add(self, name: Name, file: str, line: int) -> None:
        self.names[name] = (file, line)
        self.order.append(name)
        if len(self.order) > REMEMBERED_GRAPHS:
            self.names.pop(self.order.popleft(), None)

    def start_file(self) -> None:
        """Labels of blank nodes are scoped to their file."""
        self.order = deque(name for name in self.order if isinstance(name, ox.NamedNode))
        self.names = {name: self.names[name] for name in self.order}


class GraphFraming:
    """The `graph` framing of one file; `closed` outlives it when a stream has several files."""

    def __init__(
        self,
        options: ReadOptions,
        file: str,
        troubles: Troubles,
        counters: Counters,
        closed: ClosedGraphs,
    ):
        self._about = ox.NamedNode(options.time_predicate or GENERATED_AT)
        self._inside = options.time_predicate is not None
        self._timed = not options.arrival_time
        self._file = file
        self._troubles = troubles
        self._counters = counters
        self._closed = closed
        # The event being read; without facts it is a timestamp that waits for its graph.
        self._open: RawEvent | None = None
        self._refused: Name | None = None  # a closed graph whose quads are being skipped

    def events(self, statements: Iterable[Statement]) -> Iterator[RawEvent]:
        """The events of the file, each as soon as nothing can be added to it.

        An error ends them, and with it the event at hand, which may not be whole: only
        where the malformed line is plainly not the event's own does it still come out.
        """
        try:
            yield from self._events(statements)
        except InputError:
            malformed = self._troubles.malformed
            if malformed is not None and self._is_whole_before(malformed):
                yield from self._close()
            raise

    def _is_whole_before(self, malformed: Malformed) -> bool:
        event = self._open
        if event is None or not event.facts or (self._timed and not event.stamps):
            return False
        own = str(event.name).encode()
        begun = _BEGUN.match(malformed.text)
        if begun is not None:
            # Only the timestamp of another event shows where it belongs before it is whole.
            predicate = begun[2].rstrip(b">")
            known = len(predicate) > len("<http://")
            return begun[1] != own and known and str(self._about).encode().startswith(predicate)
        # A file that breaks off may have broken off anywhere in its last event.
        return not malformed.last and own not in malformed.following

    def _events(self, statements: Iterable[Statement]) -> Iterator[RawEvent]:
        current: Name | None = None  # the graph of `_open` once it has facts
        facts: list[RawFact] = []
        for quad, line in statements:
            if quad is None:
                self._report(line, f"a message delimiter among named graphs{_MESSAGES_HINT}")
                continue
            subject, predicate, value, graph = quad
            if graph == current:
                facts.append((subject, predicate, value))
                continue
            if type(graph) is not ox.DefaultGraph:
                yield from self._enter(graph, line)
                if self._open is not None:
                    self._open.facts.append((subject, predicate, value))
            elif predicate == self._about:
                yield from self._time(subject, value, line)
            else:
                self._counters.unused += 1
                continue
            current, facts = None, []
            if self._open is not None and self._open.facts:
                current, facts = self._open.name, self._open.facts
        yield from self._close()

    def _enter(self, name: Name, line: int) -> Iterator[RawEvent]:
        """A quad of a graph that the quad before was not of."""
        if name == self._refused or (self._open is not None and self._open.name == name):
            return
        yield from self._close()
        if name in self._closed.names:
            self._refused = name
            self._report(line, f"a quad of the graph {name}{self._complete(name)}")
        else:
            self._open = RawEvent(line, name, [], [])

    def _time(self, name: Name, value: RawTerm, line: int) -> Iterator[RawEvent]:
        """A default-graph triple that gives the graph `name` its timestamp."""
        if self._open is not None and self._open.name == name:
            self._open.stamps.append((value, line))
            if self._open.facts:
                yield from self._close()
            return
        yield from self._close()
        if name in self._closed.names:
            self._report(line, f"a timestamp of {name}{self._complete(name)}{_AGAIN}")
        else:
            self._open = RawEvent(line, name, [], [(value, line)])

    def _complete(self, name: Name) -> str:
        file, line = self._closed.names[name]
        where = f"line {line}" if file == self._file else f"{file}:{line}"
        return f", which began at {where} and is already complete{_TOGETHER}"

    def _close(self) -> Iterator[RawEvent]:
        event, self._open, self._refused = self._open, None, None
        if event is None or event.name is None:
            return
        self._closed.add(event.name, self._file, event.line)
        if self._timed and not event.stamps:
            if self._inside:
                event.stamps += stamps_inside(event.facts, (self._about,), event.line)
            if not event.stamps:
                self._report(event.line, self._untimed(event))
                return
        yield event

    def _untimed(self, event: RawEvent) -> str:
        text = f"the graph {event.name} has no timestamp: no triple <graph> {self._about} <time>"
        if self._inside:
            return (
                f"{text} in the default graph beside it, and none among its statements here"
                f"{_TOGETHER}"
            )
        if any(predicate == self._about for _, predicate, _ in event.facts):
            return (
                f"{text} in the default graph beside it; there is one inside the graph: "
                f"--time-predicate {GENERATED_AT} finds it"
            )
        return (
            f"{text} immediately before its first quad or after its last "
            "(--time-predicate names another one, --arrival-time uses the clock, "
            "--events dataset collects graphs and timestamps wherever they are)"
        )

    def _report(self, line: int, message: str) -> None:
        self._troubles.report(message, self._file, line)


def message_events(
    statements: Iterable[Statement], options: ReadOptions, file: str, troubles: Troubles
) -> Iterator[RawEvent]:
    """The messages of one file, each at its delimiter; those without statements need a clock."""
    predicates = tuple(map(ox.NamedNode, options.time_predicates()))
    first = 0
    facts: list[RawFact] = []
    for quad, line in chain(statements, ((None, 0),)):
        if quad is not None:
            first = first or line
            facts.append((quad.subject, quad.predicate, quad.object))
        elif facts:
            event = RawEvent(first, None, facts, stamps_inside(facts, predicates, first))
            first, facts = 0, []
            if event.stamps or options.arrival_time:
                yield event
            else:
                named = " or ".join(map(str, predicates))
                troubles.report(
                    f"a message without a timestamp: no {named} in it", file, event.line
                )
        elif line and options.arrival_time:
            yield RawEvent(line, None, [], [])
        elif line:
            troubles.counters.empty += 1


def triples_events(
    statements: Iterable[Statement], options: ReadOptions, file: str, troubles: Troubles
) -> Iterator[RawEvent]:
    """Events of `size` triples each; an event without stamps is timed by its place."""
    predicate = None if options.time_predicate is None else ox.NamedNode(options.time_predicate)
    size = options.framing.size + (predicate is not None)
    first = 0
    facts: list[RawFact] = []
    for quad, line in statements:
        if quad is None or type(quad.graph_name) is not ox.DefaultGraph:
            what = "a message delimiter" if quad is None else "a graph name"
            troubles.report(f"{what} among the triples of --events triples:N", file, line)
            continue
        first = first or line
        facts.append((quad.subject, quad.predicate, quad.object))
        if len(facts) == size:
            stamps = [] if predicate is None else stamps_inside(facts, (predicate,), first)
            if stamps or predicate is None or options.arrival_time:
                yield RawEvent(first, None, facts, stamps)
            else:
                troubles.report(f"{size} triples without a timestamp ({predicate})", file, first)
            first, facts = 0, []
    if facts:
        troubles.report(
            f"the last event is incomplete: {len(facts)} of its {size} triples", file, first
        )


def stamps_inside(
    facts: Iterable[RawFact], predicates: Iterable[ox.NamedNode], line: int
) -> list[Stamp]:
    """What the first of the predicates that occurs says, said to be on `line`."""
    for predicate in predicates:
        stamps = [(value, line) for _, used, value in facts if used == predicate]
        if stamps:
            return stamps
    return []


def plain_events(source: Source) -> Iterator[Event]:
    """The events of a source, with its counters, log and errors."""
    troubles = Troubles(source.options.on_error, source.counters, source.log)
    timed = _Reading(source, troubles).timed_events()
    if source.options.lateness is None:
        ordered = _in_order(timed, troubles)
    else:
        ordered = _reordered(timed, source.options.lateness, troubles)
    return _Minting(source).events(ordered)


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
            said = self._options.syntax
            self._file = self._source.lines = Lines(path)
            known = recognised(self._file, path, said)
            self._closed.start_file()
            try:
                for raw in self._raw_events(known.syntax):
                    stamp = self._stamp(raw, place)
                    place += 1
                    if stamp is not None and self._is_usable(raw, stamp):
                        yield _Timed(raw, stamp, self._file.name)
            finally:
                self._file.close()

    def _raw_events(self, known: StreamSyntax) -> Iterator[RawEvent]:
        file, options, troubles = self._file, self._options, self._troubles
        kind = options.framing.kind
        if kind == "auto":
            kind = "message" if announces_messages(file.head()) else "graph"
        statements: Iterator[Statement]
        syntax = known.syntax
        if syntax.line_based:
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
            found |= bool(event.facts)
            yield event
        if not found and counters.unused > unused:
            self._report(
                self._file.number,
                "no event in this file: it has no named graphs; --events subject, "
                "--events message or --events triples:N cut triples into events",
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
                raise EventError(f"{n_triples(term)} is not a timestamp: it is not a literal")
            self._parsed = (term, time.from_literal(term, self._options.unit))
        return self._parsed[1]

    def _is_usable(self, raw: RawEvent, stamp: Timestamp) -> bool:
        conflict = self._source.domain.conflict(stamp.domain, f"{self._file.name}:{raw.line}")
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
                "same stream (--lateness DURATION reorders late events)",
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
                f"its time is {timed.time.term.value}, but all times before {closed} are closed",
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
        prefix = f"s{self._source.number}e{self._made}b"
        own: dict[Term, ox.BlankNode] = {}

        def renamed(node: ox.BlankNode) -> ox.BlankNode:
            if node not in own:
                own[node] = ox.BlankNode(f"{prefix}{len(own)}")
            return own[node]

        facts = tuple((with_nodes(s, renamed), p, with_nodes(o, renamed)) for s, p, o in facts)
        if isinstance(name, ox.BlankNode):
            name = own.get(name) or ox.BlankNode(f"{prefix}{len(own)}")
        return facts, name
