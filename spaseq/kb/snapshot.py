"""Files, stores, graphs and endpoints → the named graphs of a knowledge base.

`open_kb` reads every local source once; a `Kb` never changes afterwards, so whatever is
derived from it stays valid. Terms are kept as they were written, each once. Blank nodes are
relabelled by graph (`kb0…`, `kb1…`), so none is shared between graphs or with an event; the
labels depend on the sources alone, so saved state still fits after a restart.

A graph behind an endpoint, or in a store on disk, is not read: it is asked. What was asked
belongs to the snapshot too (`relation`), so all patterns that are the same see the same.

Cost: reading is linear; look-ups are those of `spaseq.rdf.graph`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyoxigraph as ox

from spaseq.errors import KbError
from spaseq.kb.client import Client
from spaseq.kb.endpoint import Endpoint, is_url
from spaseq.kb.files import NeedsCareError, read_quads
from spaseq.kb.folder import StoreFolder
from spaseq.kb.relation import Relation, Respondent
from spaseq.parser import ast
from spaseq.rdf.event import Fact, Term
from spaseq.rdf.graph import EMPTY, Graph

Source: TypeAlias = str | Path | ox.Store | Endpoint | Iterable[Any]
"""A path, a URL, an `Endpoint`, a store, an `rdflib.Graph`, or any iterable of triples."""

SERVICE = "service "
"""In front of the IRI, what was asked of a service; of a graph: its IRI alone."""
Derivation: TypeAlias = "tuple[tuple[tuple[ox.NamedNode, Graph], ...], object]"
"""Named graphs, and what is made of them."""
_Asked: TypeAlias = "tuple[str, ast.GroupGraphPattern, tuple[str, ...], bool]"


class Kb:
    """Named graphs, for good; each is held here, or asked for where it is."""

    def __init__(self, graphs: Mapping[ox.NamedNode, Graph | Respondent]):
        self._graphs = {n: g for n, g in graphs.items() if isinstance(g, Graph)}
        self._asked = {n: g for n, g in graphs.items() if not isinstance(g, Graph)}
        self._names = tuple(graphs)
        self._services: dict[str, Respondent] = {}
        self._relations: dict[_Asked, Relation] = {}
        self.derived: dict[Derivation, Any] = {}
        """What was made of graphs that are held, to be made once; it must never change."""
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[Kb], tuple[Mapping[ox.NamedNode, Graph | Respondent]]]:
        """A copy elsewhere holds the same graphs, and asks the same places anew."""
        return Kb, (dict(self.contents),)

    @property
    def names(self) -> tuple[ox.NamedNode, ...]:
        """The graphs there are, in the order they were given."""
        return self._names

    @property
    def snapshot(self) -> object:
        """What stays the same for as long as the graphs do."""
        return self

    @property
    def graphs(self) -> tuple[str, ...]:
        """Their IRIs."""
        return tuple(name.value for name in self._names)

    def place(self, name: ox.NamedNode) -> str | None:
        """Where a graph is that is not held here, but asked for."""
        return self._asked[name].name if name in self._asked else None

    @property
    def contents(self) -> Mapping[ox.NamedNode, Graph | Respondent]:
        """The graphs, or whom to ask for them, by name."""
        return {n: self._graphs[n] if n in self._graphs else self._asked[n] for n in self._names}

    @property
    def sources(self) -> Mapping[str, Respondent]:
        """Whoever is asked, by the IRI of the graph or of the service."""
        return {name.value: source for name, source in self._asked.items()} | self._services

    def graph(self, name: ox.NamedNode) -> Graph:
        """One graph that is held here; an empty one for a name that is not."""
        return self._graphs.get(name, EMPTY)

    def asked(self, name: ox.NamedNode) -> bool:
        """Whether a graph is not held here, but asked for."""
        return name in self._asked

    def relation(
        self, name: ox.NamedNode, group: ast.GroupGraphPattern, variables: tuple[str, ...]
    ) -> Relation:
        """The solutions of a pattern over a graph that is `asked` for."""
        for node in ast.walk(group):
            if isinstance(node, ast.Graph):
                raise KbError(
                    f"GRAPH inside GRAPH {name}: that graph is at {self._asked[name].name}, which "
                    "does not know the other graphs of the knowledge base; put the two side by side"
                )
        return self._relation(self._asked[name], name.value, group, variables, False)

    def service(
        self, iri: str, group: ast.GroupGraphPattern, variables: tuple[str, ...], silent: bool
    ) -> Relation:
        """The solutions of a pattern at an endpoint: `SERVICE`.

        Where a graph of the knowledge base bears the IRI of the service, its `Endpoint` says
        how it is asked.
        """
        given = self._asked.get(ox.NamedNode(iri))
        with self._lock:
            source = self._services.get(iri)
            if source is None:
                if given is not None and given.endpoint.url.partition("?")[0] == iri:
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
        """Another snapshot with these graphs; what was asked of the `changed` ones is forgotten."""
        other = Kb(graphs)
        other._services = dict(self._services)
        other._relations = {
            key: found
            for key, found in self._relations.items()
            if key[0].removeprefix(SERVICE) not in changed
        }
        other.derived = {
            key: made
            for key, made in self.derived.items()
            if all(other._graphs.get(name) is graph for name, graph in key[0])
        }
        return other

    def fetch_like(self, other: Kb) -> None:
        """Fetch what another snapshot has fetched whole, from the same places.

        Raises:
            KbError: if a source fails.
        """
        for place, group, variables, silent in list(other._relations):
            if place.startswith(SERVICE):
                found = self.service(place.removeprefix(SERVICE), group, variables, silent)
            elif ox.NamedNode(place) in self._asked:
                found = self.relation(ox.NamedNode(place), group, variables)
            else:
                continue
            found.all()

    def close(self) -> None:
        """End the connections to whoever is asked."""
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
    """The KB with one graph for each IRI.

    A path is read by its extension, one of `spaseq.rdf.formats.SYNTAXES` (also with `.gz`). All
    triples of a source become triples of its one graph, whatever graph they are in there. The
    folder of a pyoxigraph store, and a URL or `Endpoint`, are asked when patterns are known.

    Raises:
        KbError: for what cannot be read; it names file and line.
    """
    return Kb(
        {
            graph_name(iri): open_source(iri, source, f"kb{index}")
            for index, (iri, source) in enumerate(sources.items())
        }
    )


def graph_name(iri: str) -> ox.NamedNode:
    """The name of a KB graph."""
    try:
        return ox.NamedNode(iri)
    except ValueError as error:
        raise KbError(
            f"a KB graph is named by an absolute IRI, and {iri!r} is none: {error}"
        ) from None


def open_source(iri: str, source: Source, prefix: str) -> Graph | Respondent:
    """One graph, or whom to ask for it; `prefix` sets its blank nodes apart."""
    if isinstance(source, Endpoint):
        return Client(source)
    if isinstance(source, str | Path):
        text = str(source)
        if is_url(text):
            return Client(Endpoint(text))
        if text.partition("://")[1] and not text.startswith("file://"):
            raise KbError(
                f"the KB graph <{iri}> is given as {text}: name a file, the folder of a "
                "pyoxigraph store, or an endpoint by http:// or https://"
            )
        path = Path(unquote(text.removeprefix("file://")) if "://" in text else text)
        if path.is_dir():
            return StoreFolder(path, graph_name(iri), prefix)
        try:
            return _graph(iri, read_quads(path), prefix)
        except NeedsCareError:
            return _graph(iri, read_quads(path, line_by_line=True), prefix)
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
