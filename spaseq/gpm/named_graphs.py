"""The interface of a knowledge base to graph patterns, and the graph of an event as they see it."""

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
    """The solutions of a pattern that an endpoint or a remote store evaluates."""

    @property
    def skips(self) -> bool:
        """Whether the run skips an event whose solutions are not available; otherwise it stops."""

    def all(self) -> Sequence[KbRow] | None:
        """Every solution; None if they must be requested by key."""

    def complete(self, needed_by: str) -> Sequence[KbRow]:
        """Every solution.

        Raises:
            KbError: if they must be requested by key; `needed_by` names what needs them all.
        """

    def of(
        self,
        names: tuple[str, ...],
        keys: Sequence[KbKey],
        ahead: Callable[[], Iterable[KbKey]],
    ) -> tuple[Mapping[KbKey, Sequence[KbRow]], Mapping[KbKey, KbError]]:
        """The solutions for each key (values of `names`), and the errors of failed keys.

        `ahead` returns distinct keys that later events may need, for a request that has room.
        """


class NamedGraphs(Protocol):
    """The named graphs that `GRAPH` ranges over; they do not change while an event is matched."""

    @property
    def snapshot(self) -> object:
        """An object that is the same as long as the graphs are."""

    @property
    def names(self) -> tuple[ox.NamedNode, ...]:
        """The names of the graphs, in a fixed order."""

    def graph(self, name: ox.NamedNode) -> Graph:
        """A local graph; an empty graph for a name that is not local."""

    def is_remote(self, name: ox.NamedNode) -> bool:
        """Whether a graph is remote, and its solutions are requested by `relation`."""

    def relation(
        self, name: ox.NamedNode, group: ast.GroupGraphPattern, variables: tuple[str, ...]
    ) -> Relation:
        """The solutions of a pattern over a remote graph."""

    def service(
        self, iri: str, group: ast.GroupGraphPattern, variables: tuple[str, ...], silent: bool
    ) -> Relation:
        """The solutions of a pattern at an endpoint."""


class CurrentGraphs(NamedGraphs, Protocol):
    """The named graphs of a run, which replaces them version by version."""

    @property
    def version(self) -> int:
        """The number of the current version."""


class EntailedGraphs:
    """The graphs of a run, closed under entailment, and events seen through its rules.

    `rules` must have a target for every triple pattern over events. All graphs that a query sees
    are local, since a remote graph cannot be closed; `SERVICE` returns what the endpoint answers.
    """

    def __init__(self, current: CurrentGraphs, closed: NamedGraphs, rules: Rules):
        self._current = current
        self.replace(closed, rules)

    def replace(self, closed: NamedGraphs, rules: Rules) -> None:
        """Replace the closure and its rules."""
        self.closed = closed
        self.rules = rules
        # The facts and the graph of the last event, replaced together, as in `graph_of`.
        self._last: tuple[Sequence[Fact] | None, Graph] = (None, Graph(()))

    @property
    def version(self) -> int:
        """The number of the current version."""
        return self._current.version

    @property
    def snapshot(self) -> object:
        """An object that is the same as long as the graphs are."""
        return self.closed

    @property
    def names(self) -> tuple[ox.NamedNode, ...]:
        """The names of the graphs, in a fixed order."""
        return self.closed.names

    def graph(self, name: ox.NamedNode) -> Graph:
        """A closed graph; an empty graph for an unknown name."""
        return self.closed.graph(name)

    def is_remote(self, name: ox.NamedNode) -> bool:
        """Whether a graph is remote."""
        return self.closed.is_remote(name)

    def relation(
        self, name: ox.NamedNode, group: ast.GroupGraphPattern, variables: tuple[str, ...]
    ) -> Relation:
        """The solutions of a pattern over a remote graph."""
        return self.closed.relation(name, group, variables)

    def service(
        self, iri: str, group: ast.GroupGraphPattern, variables: tuple[str, ...], silent: bool
    ) -> Relation:
        """The solutions of a pattern at an endpoint, without entailment."""
        return self._current.service(iri, group, variables, silent)

    def entailed_graph(self, event: Event) -> Graph:
        """The entailed triples of an event that some pattern matches."""
        facts, graph = self._last
        if facts is not event.facts:
            facts = event.facts
            graph = Graph(self.rules.derive(facts))
            self._last = (facts, graph)
        return graph


def event_graph(event: Event, kb: NamedGraphs | None) -> Graph:
    """The graph of an event as patterns over this KB see it."""
    return kb.entailed_graph(event) if isinstance(kb, EntailedGraphs) else graph_of(event)


def kb_parts(node: object, kb: NamedGraphs | None) -> Iterator[ast.Graph | ast.Service]:
    """The parts of a pattern or an expression that an endpoint or a remote store evaluates."""
    if isinstance(node, ast.Service):
        yield node
        return
    if isinstance(node, ast.Graph):
        name = node.name
        asked = kb is not None and (
            any(map(kb.is_remote, kb.names))
            if isinstance(name, ast.Var)
            else kb.is_remote(ox.NamedNode(name.value))
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
