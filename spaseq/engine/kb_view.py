"""`FROM` and `FROM NAMED`: the part of a knowledge base that one query's `GRAPH` sees."""

from __future__ import annotations

from collections.abc import Collection

import pyoxigraph as ox

from spaseq.gpm.graphs import NamedGraphs
from spaseq.rdf.graph import Graph


class KbView:
    """A knowledge base with only some of its graphs; implements `NamedGraphs`."""

    def __init__(self, kb: NamedGraphs, kept: Collection[str]):
        self._kb = kb
        self._names = tuple(name for name in kb.names if name.value in kept)

    @property
    def names(self) -> tuple[ox.NamedNode, ...]:
        return self._names

    def graph(self, name: ox.NamedNode) -> Graph:
        """One of the kept graphs; an empty one for any other name."""
        return self._kb.graph(name) if name in self._names else Graph(())


def restricted(kb: NamedGraphs, kept: Collection[str] | None) -> NamedGraphs:
    """The knowledge base as a query sees it; None: all of it."""
    return kb if kept is None else KbView(kb, kept)
