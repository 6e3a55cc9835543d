"""What graph patterns need of a knowledge base."""

from __future__ import annotations

from typing import Protocol

import pyoxigraph as ox

from spaseq.rdf.graph import Graph


class NamedGraphs(Protocol):
    """The named graphs that `GRAPH` ranges over; an unchanging snapshot."""

    @property
    def names(self) -> tuple[ox.NamedNode, ...]:
        """The graphs there are, in a fixed order."""

    def graph(self, name: ox.NamedNode) -> Graph:
        """One of them; an empty one for a name that is not there."""
