"""Files, stores and graphs → the named graphs of a knowledge base.

`open_kb` reads every source once; a `Kb` never changes afterwards, so whatever is derived
from it stays valid. Terms are kept as they were written, each once. Blank nodes are
relabelled by graph (`kb0…`, `kb1…`), so none is shared between graphs or with an event; the
labels depend on the sources alone, so saved state still fits after a restart.

Cost: reading is linear; look-ups are those of `spaseq.rdf.graph`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pyoxigraph as ox

from spaseq.errors import KbError
from spaseq.kb.files import read_quads
from spaseq.rdf.event import Fact, Term
from spaseq.rdf.graph import EMPTY, Graph

Source: TypeAlias = str | Path | ox.Store | Iterable[Any]
"""A path, a store, an `rdflib.Graph`, or any iterable of triples."""


class Kb:
    """Named graphs, for good."""

    def __init__(self, graphs: Mapping[ox.NamedNode, Graph]):
        self._graphs = dict(graphs)
        self._names = tuple(self._graphs)

    @property
    def names(self) -> tuple[ox.NamedNode, ...]:
        """The graphs there are, in the order they were given."""
        return self._names

    @property
    def graphs(self) -> tuple[str, ...]:
        """Their IRIs."""
        return tuple(name.value for name in self._names)

    def graph(self, name: ox.NamedNode) -> Graph:
        """One graph; an empty one for a name that is not there."""
        return self._graphs.get(name, EMPTY)

    def triples(
        self,
        graph: ox.NamedNode,
        subject: Term | None = None,
        predicate: Term | None = None,
        object: Term | None = None,
    ) -> Iterable[Fact]:
        """The triples of one graph that have the given terms (None: any)."""
        return self.graph(graph).match(subject, predicate, object)

    def __len__(self) -> int:
        return sum(len(graph.facts) for graph in self._graphs.values())


def open_kb(sources: Mapping[str, Source]) -> Kb:
    """The KB with one graph for each IRI.

    A path is read by its extension (`.ttl`, `.nt`, `.nq`, `.trig`, `.rdf`, `.jsonld`, `.n3`,
    each with `.gz` too). All triples of a source go into its one graph, whatever graph
    they are in there. What cannot be read is a `KbError` that names file and line.
    """
    graphs = {}
    for index, (iri, source) in enumerate(sources.items()):
        try:
            name = ox.NamedNode(iri)
        except ValueError as error:
            raise KbError(
                f"a KB graph is named by an absolute IRI, and {iri!r} is none: {error}"
            ) from None
        graphs[name] = Graph(tuple(_distinct(_triples(iri, source), f"kb{index}")))
    return Kb(graphs)


def _triples(iri: str, source: Source) -> Iterator[Fact]:
    if isinstance(source, str | Path):
        text = str(source)
        if text.partition("://")[1] and not text.startswith("file://"):
            raise KbError(
                f"the KB graph <{iri}> is given as {text}: remote endpoints are not supported by "
                "this version; download the data and give the file's path"
            )
        quads: Iterable[Any] = read_quads(Path(text.removeprefix("file://")))
    else:
        quads = source
    for item in quads:
        yield _fact(iri, item)


def _fact(iri: str, item: Any) -> Fact:
    """A triple or quad, of pyoxigraph or rdflib, or a tuple of three or four terms."""
    if isinstance(item, ox.Quad | ox.Triple):
        parts: tuple[Any, ...] = (item.subject, item.predicate, item.object)
    elif isinstance(item, tuple) and len(item) >= 3:
        parts = item[:3]
    else:
        raise KbError(
            f"the KB graph <{iri}> holds {item!r}, which is no triple; "
            "give (subject, predicate, object)"
        )
    subject, predicate, object = (_term(iri, part) for part in parts)
    return subject, predicate, object


def _term(iri: str, part: Any) -> Term:
    if isinstance(part, ox.NamedNode | ox.BlankNode | ox.Literal):
        return part
    # rdflib's terms, told by their names: this package does not need rdflib itself.
    kind = type(part).__name__
    if kind == "URIRef":
        return ox.NamedNode(str(part))
    if kind == "BNode":
        return ox.BlankNode(str(part))
    if kind == "Literal" and hasattr(part, "datatype"):
        if part.language:
            return ox.Literal(str(part), language=part.language)
        if part.datatype is not None:
            return ox.Literal(str(part), datatype=ox.NamedNode(str(part.datatype)))
        return ox.Literal(str(part))
    raise KbError(
        f"the KB graph <{iri}> holds the term {part!r}; IRIs, blank nodes and literals of "
        "pyoxigraph or rdflib can be read"
    )


def _distinct(facts: Iterable[Fact], prefix: str) -> Iterator[Fact]:
    """Each fact once, each term one object, blank nodes relabelled."""
    terms: dict[Term, Term] = {}

    def one(term: Term) -> Term:
        known = terms.get(term)
        if known is None:
            known = term
            if isinstance(term, ox.BlankNode):
                known = ox.BlankNode(f"{prefix}.{term.value}")
            terms[term] = known
        return known

    seen = set()
    for fact in facts:
        found = (one(fact[0]), one(fact[1]), one(fact[2]))
        if found not in seen:
            seen.add(found)
            yield found
