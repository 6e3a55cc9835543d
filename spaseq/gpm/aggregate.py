"""Aggregates over RDF terms, and SPARQL's ORDER BY order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyoxigraph as ox

from spaseq.rdf.event import Term

XSD = "http://www.w3.org/2001/XMLSchema#"


def aggregate(
    name: str, values: Sequence[Term], separator: str | None = None, distinct: bool = False
) -> Term | None:
    if distinct:
        values = list(dict.fromkeys(values))
    if name == "SAMPLE":
        return values[0] if values else None
    if name == "COUNT":
        return ox.Literal(str(len(values)), datatype=ox.NamedNode(XSD + "integer"))
    store = ox.Store()
    home = ox.NamedNode("urn:spaseq:environment")
    for index, value in enumerate(values):
        store.add(ox.Quad(home, ox.NamedNode(f"urn:{index:09}"), value))
    extra = f"; SEPARATOR={ox.Literal(separator)}" if separator is not None else ""
    text = f"SELECT ({name}(?v{extra}) AS ?r) {{ SELECT ?v {{ ?s ?p ?v }} ORDER BY ?p }}"
    for solution in store.query(text):
        return solution["r"]
    return None


def start(name: str, separator: str | None = None) -> Any:
    return (name, separator, ())


def add(state: Any, term: Term) -> Any:
    return (state[0], state[1], (*state[2], term))


def finish(state: Any) -> Term | None:
    return aggregate(state[0], state[2], state[1])


def order_key(term: Term | None) -> Any:
    if term is None:
        return (0, "")
    kind = 1 if isinstance(term, ox.BlankNode) else 2 if isinstance(term, ox.NamedNode) else 3
    return (kind, str(term))
