"""What graph patterns need of a knowledge base, and what they see of events beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyoxigraph as ox

from spaseq.rdf.entailment import Rules
from spaseq.rdf.event import Event, Fact
from spaseq.rdf.graph import Graph, graph_of


class NamedGraphs(Protocol):
    """The named graphs that `GRAPH` ranges over; an unchanging snapshot."""

    @property
    def names(self) -> tuple[ox.NamedNode, ...]:
        """The graphs there are, in a fixed order."""

    def graph(self, name: ox.NamedNode) -> Graph:
        """One of them; an empty one for a name that is not there."""


class EntailedGraphs:
    """Named graphs that are closed under entailment, and events seen through its rules.

    `rules` must have a target for whatever is asked of events.
    """

    def __init__(self, closed: NamedGraphs, rules: Rules):
        self._closed = closed
        self.rules = rules
        # As in `graph_of`: the event seen last, replaced as a whole.
        self._last: tuple[Sequence[Fact] | None, Graph] = (None, Graph(()))

    @property
    def names(self) -> tuple[ox.NamedNode, ...]:
        return self._closed.names

    def graph(self, name: ox.NamedNode) -> Graph:
        return self._closed.graph(name)

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
