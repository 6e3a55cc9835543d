"""What graph patterns need of a knowledge base, and what they see of events beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Protocol, TypeAlias

import pyoxigraph as ox

from spaseq.errors import KbError, Span
from spaseq.parser import ast
from spaseq.rdf.entailment import Rules
from spaseq.rdf.event import Event, Fact, Term
from spaseq.rdf.graph import Graph, graph_of

KbRow: TypeAlias = "tuple[Term | None, ...]"
KbKey: TypeAlias = "tuple[Term, ...]"


class Relation(Protocol):
    """The solutions of a pattern that somebody else evaluates."""

    @property
    def skips(self) -> bool:
        """Whether an event that needs what could not be had is skipped; else the run stops."""

    def all(self) -> Sequence[KbRow] | None:
        """Every solution; None where they have to be asked for by key."""

    def complete(self, needed_by: str) -> Sequence[KbRow]:
        """Every solution; an error where they have to be asked for by key."""

    def of(
        self,
        names: tuple[str, ...],
        keys: Sequence[KbKey],
        ahead: Callable[[], Iterable[KbKey]],
    ) -> tuple[Mapping[KbKey, Sequence[KbRow]], Mapping[KbKey, KbError]]:
        """The solutions for each key (values of `names`), and why there are none to be had.

        `ahead` gives keys that may be needed soon, each once, for a request that has room.
        """


class NamedGraphs(Protocol):
    """The named graphs that `GRAPH` ranges over; unchanging while an event is matched."""

    @property
    def snapshot(self) -> object:
        """An object that stays the same for as long as the graphs do."""

    @property
    def names(self) -> tuple[ox.NamedNode, ...]:
        """The graphs there are, in a fixed order."""

    def graph(self, name: ox.NamedNode) -> Graph:
        """One that is held here; an empty one for a name that is not."""

    def asked(self, name: ox.NamedNode) -> bool:
        """Whether a graph is not held here, but asked for by `relation`."""

    def relation(
        self, name: ox.NamedNode, group: ast.GroupGraphPattern, variables: tuple[str, ...]
    ) -> Relation:
        """The solutions of a pattern over a graph that is asked for."""

    def service(
        self, iri: str, group: ast.GroupGraphPattern, variables: tuple[str, ...], silent: bool
    ) -> Relation:
        """The solutions of a pattern at an endpoint."""


class CurrentGraphs(NamedGraphs, Protocol):
    """The named graphs of a run, which has versions of them."""

    @property
    def version(self) -> int:
        """Of the graphs in force."""


class EntailedGraphs:
    """The graphs of a run closed under entailment, and events seen through its rules.

    `rules` must have a target for whatever is asked of events. All graphs in sight are held: what
    somebody else holds cannot be closed (`SERVICE` is answered as it is there).
    """

    def __init__(self, current: CurrentGraphs, closed: NamedGraphs, rules: Rules):
        self._current = current
        self.take(closed, rules)

    def take(self, closed: NamedGraphs, rules: Rules) -> None:
        """Go on with another closure and its rules."""
        self.closed = closed
        self.rules = rules
        # As in `graph_of`: the event seen last, replaced as a whole.
        self._last: tuple[Sequence[Fact] | None, Graph] = (None, Graph(()))

    @property
    def version(self) -> int:
        """Of the graphs in force."""
        return self._current.version

    @property
    def snapshot(self) -> object:
        """What stays the same for as long as the graphs do."""
        return self.closed

    @property
    def names(self) -> tuple[ox.NamedNode, ...]:
        """The graphs in sight."""
        return self.closed.names

    def graph(self, name: ox.NamedNode) -> Graph:
        """One of them, closed; an empty one for a name that is not there."""
        return self.closed.graph(name)

    def asked(self, name: ox.NamedNode) -> bool:
        """Whether a graph in sight is not held here."""
        return self.closed.asked(name)

    def relation(
        self, name: ox.NamedNode, group: ast.GroupGraphPattern, variables: tuple[str, ...]
    ) -> Relation:
        """The solutions of a pattern over a graph that is asked for."""
        return self.closed.relation(name, group, variables)

    def service(
        self, iri: str, group: ast.GroupGraphPattern, variables: tuple[str, ...], silent: bool
    ) -> Relation:
        """The solutions of a pattern at an endpoint, which knows of no entailment here."""
        return self._current.service(iri, group, variables, silent)

    def seen(self, event: Event) -> Graph:
        """What follows from an event, of what its patterns ask for."""
        facts, graph = self._last
        if facts is not event.facts:
            facts = event.facts
            graph = Graph(self.rules.derive(facts))
            self._last = (facts, graph)
        return graph


def seen(event: Event, kb: NamedGraphs | None) -> Graph:
    """The graph of an event as patterns over this KB see it."""
    return kb.seen(event) if isinstance(kb, EntailedGraphs) else graph_of(event)


def kb_parts(node: object, kb: NamedGraphs | None) -> Iterator[ast.Graph | ast.Service]:
    """The parts of a pattern or an expression that somebody else evaluates, at least in part."""
    if isinstance(node, ast.Service):
        yield node
        return
    if isinstance(node, ast.Graph):
        name = node.name
        asked = kb is not None and (
            any(map(kb.asked, kb.names))
            if isinstance(name, ast.Var)
            else kb.asked(ox.NamedNode(name.value))
        )
        if asked:
            yield node
            return
    if isinstance(node, tuple):
        for item in node:
            yield from kb_parts(item, kb)
    elif is_dataclass(node) and not isinstance(node, type | Span):
        for part in fields(node):
            yield from kb_parts(getattr(node, part.name), kb)
