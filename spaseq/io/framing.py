"""Statements to raw events: which statements belong together, and what tells their time.

Three framings, each a generator over the statements of one file:

* `graph`: a named graph is an event; its timestamp is a default-graph triple about it that
  stands immediately before its first quad or after its last (else, under a predicate of the
  user's choice, a triple inside it). A timestamp without a graph is an event without facts.
* `message`: what stands between two delimiters is an event, whatever its graphs.
* `triples:N`: N triples are an event, one more where a timestamp predicate is named.

A raw event still has the blank nodes and the time literals of the file. A graph that comes
back after it was closed is an error; to find that out, the names of the last 65,536 closed
graphs are kept and no more, since memory must not grow with the stream.

Source: RSP-QL data model and RDF Messages, W3C RDF Stream Processing Community Group.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias

import pyoxigraph as ox

from spaseq.errors import InputError
from spaseq.io.options import GENERATED_AT, Counters, Malformed, ReadOptions, Troubles
from spaseq.io.statements import RawFact, RawTerm, Statement

REMEMBERED_GRAPHS = 1 << 16

_BEGUN = re.compile(rb"\s*(<[^>]*>|_:\S+)\s+(<\S*)")
"""A statement as far as it goes: its subject, and the beginning of its predicate."""

Name: TypeAlias = ox.NamedNode | ox.BlankNode
Stamp: TypeAlias = tuple[RawTerm, int]
"""A term that is said to be the time, and the line that says so."""

_TOGETHER = "; the statements of a graph and its timestamp stand together"
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
    names: set[Name] = field(default_factory=set)

    def add(self, name: Name) -> None:
        self.names.add(name)
        self.order.append(name)
        if len(self.order) > REMEMBERED_GRAPHS:
            self.names.discard(self.order.popleft())


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
            self._report(line, f"a quad of the graph {name}, which is already complete{_TOGETHER}")
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
            self._report(line, f"a timestamp of {name}, which is already complete{_TOGETHER}")
        else:
            self._open = RawEvent(line, name, [], [(value, line)])

    def _close(self) -> Iterator[RawEvent]:
        event, self._open, self._refused = self._open, None, None
        if event is None or event.name is None:
            return
        self._closed.add(event.name)
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
            return f"{text} in the default graph beside it, and none inside it"
        if any(predicate == self._about for _, predicate, _ in event.facts):
            return (
                f"{text} in the default graph beside it; there is one inside the graph: "
                f"--time-predicate {GENERATED_AT} finds it"
            )
        return (
            f"{text} immediately before its first quad or after its last "
            "(--time-predicate names another one, --arrival-time takes the clock)"
        )

    def _report(self, line: int, message: str) -> None:
        self._troubles.report(message, self._file, line)


def message_events(
    statements: Iterable[Statement], options: ReadOptions, file: str, troubles: Troubles
) -> Iterator[RawEvent]:
    """The messages of one file that have any statement, each at its delimiter."""
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
