"""A graph of a caller, in any accepted form → distinct facts with fresh blank nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyoxigraph as ox

from spaseq.errors import EventError
from spaseq.rdf.event import Fact, Term, depth_of
from spaseq.rdf.syntax import MAX_NESTED_TRIPLES, PARSER_ERRORS, LimitError, nesting, parser_failure


def facts_of(graph: Any, scope: str) -> tuple[Fact, ...]:
    """The facts of one event.

    Args:
        graph: An rdflib graph, an iterable of rdflib or pyoxigraph triples or quads, or N-Triples
            or N-Quads bytes. Names of graphs are ignored.
        scope: A prefix of its blank node labels, different for each event.

    Raises:
        EventError: for any other graph, and for text that is neither N-Triples nor N-Quads.
    """
    if isinstance(graph, bytes | str):
        try:
            nesting(graph if isinstance(graph, bytes) else graph.encode())
            items: Iterable[Any] = list(ox.parse(graph, format=ox.RdfFormat.N_QUADS))
        except SyntaxError as error:
            raise EventError(
                f"the event's graph is neither N-Triples nor N-Quads: {error}"
            ) from error
        except LimitError as error:
            raise EventError(f"the event's graph has {error}") from None
        except PARSER_ERRORS as error:
            raise EventError(f"the event's graph: {parser_failure(error)}") from error
    elif isinstance(graph, Iterable):
        items = graph
    else:
        raise EventError(
            f"{graph!r} is not a graph: give an rdflib graph, an iterable of triples, or "
            "N-Triples or N-Quads as bytes"
        )
    facts: dict[Fact, None] = {}
    blanks: dict[Any, ox.BlankNode] = {}
    for item in items:
        try:
            subject, predicate, object_ = (_term(part, blanks, scope) for part in _parts(item))
        except ValueError as error:
            raise EventError(f"{item!r} holds a term that RDF does not know: {error}") from error
        if isinstance(subject, ox.Literal | ox.Triple) or not isinstance(predicate, ox.NamedNode):
            raise EventError(f"{item!r} is not an RDF triple: look at its subject and predicate")
        facts[(subject, predicate, object_)] = None
    return tuple(facts)


def _parts(item: Any) -> tuple[Any, Any, Any]:
    if isinstance(item, ox.Triple | ox.Quad):
        return item.subject, item.predicate, item.object
    try:
        return item[0], item[1], item[2]
    except (TypeError, IndexError, KeyError):
        raise EventError(f"{item!r} is not a triple: give rdflib or pyoxigraph triples") from None


def _term(part: Any, blanks: dict[Any, ox.BlankNode], scope: str) -> Term:
    if isinstance(part, ox.NamedNode | ox.Literal):
        return part
    if isinstance(part, ox.Triple):
        if depth_of(part) > MAX_NESTED_TRIPLES:
            raise EventError(f"triple terms are nested more than {MAX_NESTED_TRIPLES} deep")
        parts: Any = (_term(inner, blanks, scope) for inner in part)
        return ox.Triple(*parts)
    if isinstance(part, ox.BlankNode):
        return blanks.setdefault(part, ox.BlankNode(f"{scope}b{len(blanks)}"))
    n3 = getattr(part, "n3", None)
    if n3 is None:
        raise EventError(f"{part!r} is not an RDF term: give rdflib or pyoxigraph terms")
    kind = type(part).__name__
    if kind == "BNode":
        return blanks.setdefault(str(part), ox.BlankNode(f"{scope}b{len(blanks)}"))
    if kind == "URIRef":
        return ox.NamedNode(str(part))
    if not hasattr(part, "datatype"):
        raise EventError(f"{part!r} is neither an IRI nor a blank node nor a literal of RDF")
    language = getattr(part, "language", None)
    if language:
        return ox.Literal(str(part), language=language)
    datatype = getattr(part, "datatype", None)
    if datatype is not None:
        return ox.Literal(str(part), datatype=ox.NamedNode(str(datatype)))
    return ox.Literal(str(part))


def term_of(part: Any) -> Term:
    """A term of rdflib or pyoxigraph as one of pyoxigraph; blank nodes keep their labels.

    Raises:
        EventError: for anything else.
    """
    if isinstance(part, ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple):
        return part
    if type(part).__name__ == "BNode":
        return ox.BlankNode(str(part))
    try:
        return _term(part, {}, "")
    except ValueError as error:
        raise EventError(f"{part!r} is not an RDF term: {error}") from error


def name_of(name: Any) -> ox.NamedNode | ox.BlankNode | None:
    """The name of an event's graph, from a term or the text of an IRI.

    Raises:
        EventError: for any other value.
    """
    if isinstance(name, str):
        try:
            return ox.NamedNode(name)
        except ValueError as error:
            raise EventError(f"the event's name {name!r} is not an IRI: {error}") from error
    if not isinstance(name, ox.NamedNode | ox.BlankNode | None):
        raise EventError(f"the event's name {name!r} is neither an IRI nor a blank node")
    return name
