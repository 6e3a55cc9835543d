"""Files, stores and graphs → the named graphs of a knowledge base."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import pyoxigraph as ox

from spaseq.rdf.event import Fact, Term

Source: TypeAlias = object


class Kb:
    def __init__(self, graphs: Mapping[ox.NamedNode, tuple[Fact, ...]]):
        self._graphs = dict(graphs)

    @property
    def names(self) -> tuple[ox.NamedNode, ...]:
        return tuple(self._graphs)

    @property
    def graphs(self) -> tuple[str, ...]:
        return tuple(name.value for name in self._graphs)

    def triples(
        self,
        graph: ox.NamedNode,
        subject: Term | None = None,
        predicate: Term | None = None,
        object: Term | None = None,
    ) -> Iterable[Fact]:
        return [
            (s, p, o)
            for s, p, o in self._graphs.get(graph, ())
            if (subject is None or s == subject)
            and (predicate is None or p == predicate)
            and (object is None or o == object)
        ]


def open_kb(sources: Mapping[str, Source]) -> Kb:
    graphs = {}
    for iri, source in sources.items():
        if isinstance(source, str | Path):
            quads = list(ox.parse(path=str(source), rename_blank_nodes=True))
            graphs[ox.NamedNode(iri)] = tuple((q.subject, q.predicate, q.object) for q in quads)
        else:
            graphs[ox.NamedNode(iri)] = tuple((t[0], t[1], t[2]) for t in source)
    return Kb(graphs)
