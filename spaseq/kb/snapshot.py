"""Files, stores, graphs and endpoints → the named graphs of a knowledge base.

`open_kb` reads every local source once. A `Kb` never changes afterwards, so data derived from it
stays valid. Lexical forms are preserved, and equal terms share one object. Blank nodes are
relabelled by graph (`kb0…`, `kb1…`), so no graph shares one with another graph or with an event.
The labels depend only on the sources, so saved state is valid after a restart.

A graph behind an endpoint or in a store on disk is queried, not read. The snapshot owns the
results of queries too (`relation`), so equal patterns have equal solutions.

Cost: reading is linear; for look-ups see `spaseq.rdf.graph`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyoxigraph as ox

from spaseq.errors import ArgumentError, KbError, kind_of
from spaseq.kb.client import Client
from spaseq.kb.endpoint import Endpoint, is_url
from spaseq.kb.relation import Relation, Respondent
from spaseq.parser import ast
from spaseq.rdf.event import Fact, Term, depth_of, with_nodes
from spaseq.rdf.graph import EMPTY, Graph, StoredGraph
from spaseq.rdf.syntax import MAX_NESTED_TRIPLES

Source: TypeAlias = str | Path | ox.Store | Endpoint | Graph | Iterable[Any]
"""A path, a URL, an `Endpoint`, a store, an `rdflib.Graph`, or any iterable of triples."""

SERVICE = "service "
"""Prefix of a service's IRI in the keys of relations; a graph's key is its IRI alone."""
Derivation: TypeAlias = "tuple[tuple[tuple[ox.NamedNode, Graph], ...], object]"
"""Named graphs, and a key for the data derived from them."""
_Asked: TypeAlias = "tuple[str, ast.GroupGraphPattern, tuple[str, ...], bool]"


class Kb:
    """An immutable set of named graphs, each in memory or queried at its source."""

    def __init__(self, graphs: Mapping[ox.NamedNode, Graph | Respondent]):
        self._graphs = {n: g for n, g in graphs.items() if isinstance(g, Graph)}
        self._asked = {n: g for n, g in graphs.items() if not isinstance(g, Graph)}
        self._names = tuple(graphs)
        self._services: dict[str, Respondent] = {}
        self._relations: dict[_Asked, Relation] = {}
        self.derived: dict[Derivation, Any] = {}
        """A cache of data derived from graphs in memory; the data must be immutable."""
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[Kb], tuple[Mapping[ox.NamedNode, Graph | Respondent]]]:
        """Pickle the graphs and the sources, but no results of queries."""
        return Kb, (dict(self.contents),)

    @property
    def names(self) -> tuple[ox.NamedNode, ...]:
        """The names of the graphs, in the order given."""
        return self._names

    @property
    def snapshot(self) -> object:
        """An object whose identity changes whenever the graphs do."""
        return self

    @property
    def graphs(self) -> tuple[str, ...]:
        """The IRIs of the graphs."""
        return tuple(name.value for name in self._names)

    def place(self, name: ox.NamedNode) -> str | None:
        """The name of the source of a graph that is queried; None for a graph in memory."""
        return self._asked[name].name if name in self._asked else None

    @property
    def contents(self) -> Mapping[ox.NamedNode, Graph | Respondent]:
        """Each graph in memory, or the source that is queried for it, by name."""
        return {n: self._graphs[n] if n in self._graphs else self._asked[n] for n in self._names}

    @property
    def sources(self) -> Mapping[str, Respondent]:
        """The sources that are queried, by the IRI of the graph or of the service."""
        return {name.value: source for name, source in self._asked.items()} | self._services

    def graph(self, name: ox.NamedNode) -> Graph:
        """A graph in memory; an empty graph for any other name."""
        return self._graphs.get(name, EMPTY)

    def is_remote(self, name: ox.NamedNode) -> bool:
        """Whether a graph is queried at its source rather than held in memory."""
        return name in self._asked

    def relation(
        self, name: ox.NamedNode, group: ast.GroupGraphPattern, variables: tuple[str, ...]
    ) -> Relation:
        """The solutions of a pattern over a graph that is remote."""
        for node in ast.walk(group):
            if isinstance(node, ast.Graph):
                raise KbError(
                    f"GRAPH inside GRAPH {name}: its source, {self._asked[name].name}, does not "
                    "have the other graphs of the knowledge base; write the two GRAPH patterns "
                    "side by side"
                )
        return self._relation(self._asked[name], name.value, group, variables, False)

    def service(
        self, iri: str, group: ast.GroupGraphPattern, variables: tuple[str, ...], silent: bool
    ) -> Relation:
        """The solutions of a pattern at an endpoint: `SERVICE`.

        If a graph of the knowledge base has the IRI of the service as its URL, its `Endpoint`
        configures the requests.
        """
        given = self._asked.get(ox.NamedNode(iri))
        with self._lock:
            source = self._services.get(iri)
            if source is None:
                if given is not None and iri in _names(given.endpoint):
                    source = given
                else:
                    source = Client(Endpoint(iri))
                self._services[iri] = source
        return self._relation(source, SERVICE + iri, group, variables, silent)

    def _relation(
        self,
        source: Respondent,
        place: str,
        group: ast.GroupGraphPattern,
        variables: tuple[str, ...],
        silent: bool,
    ) -> Relation:
        with self._lock:
            key = place, group, variables, silent
            known = self._relations.get(key)
            if known is None:
                known = self._relations[key] = Relation(source, group, variables, silent)
            return known

    def renewed(
        self, graphs: Mapping[ox.NamedNode, Graph | Respondent], changed: Collection[str]
    ) -> Kb:
        """A snapshot with these graphs, without the query results of the `changed` ones."""
        other = Kb(graphs)
        other._services = dict(self._services)
        other._relations = {
            key: relation
            for key, relation in self._relations.items()
            if key[0].removeprefix(SERVICE) not in changed
        }
        other.derived = {
            key: made
            for key, made in self.derived.items()
            if all(other._graphs.get(name) is graph for name, graph in key[0])
        }
        return other

    def fetch_like(self, other: Kb) -> None:
        """Fetch the relations that another snapshot has materialised.

        Raises:
            KbError: if a source fails.
        """
        for place, group, variables, silent in list(other._relations):
            if place.startswith(SERVICE):
                relation = self.service(place.removeprefix(SERVICE), group, variables, silent)
            elif ox.NamedNode(place) in self._asked:
                relation = self.relation(ox.NamedNode(place), group, variables)
            else:
                continue
            relation.all()

    def close(self) -> None:
        """Close the connections to all sources."""
        for source in self.sources.values():
            source.close()

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
    """Open a KB with one graph for each IRI.

    The extension of a path determines its format: one of `spaseq.rdf.formats.SYNTAXES`,
    optionally with `.gz`. All triples of a source go into its one graph, whatever
    graph of the source they are in. The folder of a pyoxigraph store, a URL and an `Endpoint` are
    not read but queried, once the patterns are known.

    Raises:
        KbError: if a source cannot be read; names file and line.
    """
    if not isinstance(sources, Mapping):
        raise ArgumentError(
            "kb: a dict of the graphs is needed, as in "
            f'kb={{"http://example.org/house": "house.ttl"}}, not {kind_of(sources)}'
        )
    named = {graph_name(iri): source for iri, source in sources.items()}
    return Kb(
        {
            name: open_source(name.value, source, f"kb{index}")
            for index, (name, source) in enumerate(named.items())
        }
    )


def graph_name(iri: str | ox.NamedNode) -> ox.NamedNode:
    """The name of a KB graph."""
    if isinstance(iri, ox.NamedNode):
        return iri
    if not isinstance(iri, str):
        raise ArgumentError(f"kb: a graph is named by an IRI, not by {kind_of(iri)}")
    try:
        return ox.NamedNode(iri)
    except ValueError as error:
        raise KbError(
            f"the name of a KB graph must be an absolute IRI, and {iri!r} is not: {error}"
        ) from None


def open_source(iri: str, source: Source, prefix: str) -> Graph | Respondent:
    """A graph in memory, or a source to query; `prefix` makes its blank nodes unique."""
    if isinstance(source, Graph):
        return source  # of another run
    if isinstance(source, Endpoint):
        return Client(source)
    if isinstance(source, str | Path):
        text = str(source)
        if is_url(text):
            return Client(Endpoint(text))
        if text.partition("://")[1] and not text.startswith("file://"):
            raise KbError(
                f"the KB graph <{iri}> is given as {text}; use a file, the folder of a "
                "pyoxigraph store, or the http:// or https:// URL of an endpoint"
            )
        # Imported here, since a run without a local knowledge base needs none of these readers.
        from spaseq.kb.files import NeedsCareError, read_quads, syntax_of
        from spaseq.kb.folder import StoreFolder
        from spaseq.kb.native_files import read_table

        path = Path(unquote(text.removeprefix("file://")) if "://" in text else text)
        if path.is_dir():
            return StoreFolder(path, graph_name(iri), prefix)
        table = read_table(path, *syntax_of(path), prefix)
        if table is not None:
            return StoredGraph(table)
        try:
            return _graph(iri, read_quads(path), prefix)
        except NeedsCareError:
            return _graph(iri, read_quads(path, line_by_line=True), prefix)
    if not isinstance(source, Iterable):
        raise ArgumentError(
            f"kb: the graph <{iri}> is a path, a URL, a store, an Endpoint or triples, not "
            f"{kind_of(source)}"
        )
    return _graph(iri, source, prefix)


def _graph(iri: str, items: Iterable[Any], prefix: str) -> Graph:
    return Graph(tuple(_distinct((_fact(iri, item) for item in items), prefix)))


def _fact(iri: str, item: Any) -> Fact:
    """A triple or quad, of pyoxigraph or rdflib, or a tuple of three or four terms."""
    if isinstance(item, ox.Quad | ox.Triple):
        parts: tuple[Any, ...] = (item.subject, item.predicate, item.object)
    elif isinstance(item, tuple) and len(item) >= 3:
        parts = item[:3]
    else:
        raise KbError(
            f"the KB graph <{iri}> contains {item!r}, which is not a triple; "
            "a triple is (subject, predicate, object)"
        )
    subject, predicate, object = (_term(iri, part) for part in parts)
    return subject, predicate, object


def _term(iri: str, part: Any) -> Term:
    if isinstance(part, ox.NamedNode | ox.BlankNode | ox.Literal):
        return part
    if isinstance(part, ox.Triple):
        if depth_of(part) > MAX_NESTED_TRIPLES:
            raise KbError(
                f"the KB graph <{iri}> has triple terms nested more than {MAX_NESTED_TRIPLES} deep"
            )
        return part
    # rdflib's terms are recognised by their class names, so that rdflib need not be installed.
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
        f"the KB graph <{iri}> contains the term {part!r}; terms must be IRIs, blank nodes and "
        "literals of pyoxigraph or rdflib"
    )


def _distinct(facts: Iterable[Fact], prefix: str) -> Iterator[Fact]:
    """The distinct facts, with one object per term and relabelled blank nodes."""
    terms: dict[Term, Term] = {}

    def one(term: Term) -> Term:
        known = terms.get(term)
        if known is None:
            known = with_nodes(term, lambda node: ox.BlankNode(f"{prefix}.{node.value}"))
            terms[term] = known
        return known

    seen = set()
    for fact in facts:
        shared = (one(fact[0]), one(fact[1]), one(fact[2]))
        if shared not in seen:
            seen.add(shared)
            yield shared


def _names(endpoint: Endpoint) -> tuple[str, str]:
    """The IRIs of the services that an endpoint can be: its URL, and that without parameters."""
    return endpoint.url, endpoint.url.partition("?")[0]
