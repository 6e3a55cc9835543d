"""Matches as plain data, for JSON output.

Terms are represented as in *SPARQL 1.2 Query Results JSON*; the keys (`spaseq.results.keys`) and
their order are a public interface. Numeric timestamps are numbers of seconds, dates are UTC
strings, and unbound variables are omitted. The last keys are optional: `closedByEnd` is true if the
end of input closed the window of the match, and `kb` is the version of the knowledge base if that
has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

from spaseq.rdf.event import Fact, Term, n_triples
from spaseq.rdf.time import json_value
from spaseq.results import keys

if TYPE_CHECKING:
    from spaseq.results.native._match import Match
    from spaseq.results.witness import Witness

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"


def match_to_dict(match: Match) -> dict[str, Any]:
    """A match as plain data, with keys in output order."""
    further: dict[str, Any] = {keys.CLOSED_BY_END: True} if match.closed_by_end else {}
    if match.kb_version != 1:
        further[keys.KB] = match.kb_version
    if match.boolean is not None:
        return {
            keys.QUERY: match.query,
            keys.END: json_value(match.end),
            keys.BOOLEAN: match.boolean,
        } | further
    result: dict[str, Any] = {
        keys.QUERY: match.query,
        keys.START: json_value(match.start),
        keys.END: json_value(match.end),
    }
    if match.results is not None:
        result[keys.RESULTS] = match.results
    if match.graph is None:
        result[keys.BINDINGS] = solution_to_json(match.bindings)
    else:
        result[keys.GRAPH] = triples_text(match.graph)
    result[keys.EVENTS] = [_witness_to_json(witness) for witness in match.events]
    return result | further


def _witness_to_json(witness: Witness) -> dict[str, Any]:
    result: dict[str, Any] = {
        keys.GPM: witness.gpm,
        keys.STREAM: witness.stream,
        keys.TIME: json_value(witness.time),
        keys.ORDINAL: witness.ordinal,
    }
    if witness.graph is not None:
        name = witness.graph
        result[keys.GRAPH] = name.value if isinstance(name, ox.NamedNode) else str(name)
    result[keys.BINDINGS] = solution_to_json(witness.bindings)
    return result


def solution_to_json(bindings: Mapping[str, Term]) -> dict[str, dict[str, Any]]:
    """A solution in the format of `bindings` in SPARQL's JSON results."""
    return {name: term_to_json(term) for name, term in bindings.items()}


def term_to_json(term: Term) -> dict[str, Any]:
    """A term in the format of SPARQL's JSON results."""
    if isinstance(term, ox.NamedNode):
        return {keys.TYPE: keys.URI, keys.VALUE: term.value}
    if isinstance(term, ox.BlankNode):
        return {keys.TYPE: keys.BLANK_NODE, keys.VALUE: term.value}
    if isinstance(term, ox.Triple):
        parts = map(term_to_json, term)
        names = (keys.SUBJECT, keys.PREDICATE, keys.OBJECT)
        return {keys.TYPE: keys.TRIPLE, keys.VALUE: dict(zip(names, parts, strict=True))}
    result = {keys.TYPE: keys.LITERAL, keys.VALUE: term.value}
    if term.language:
        result[keys.LANGUAGE] = term.language
        if term.direction is not None:
            result[keys.DIRECTION] = term.direction.value
    elif term.datatype.value != XSD_STRING:
        result[keys.DATATYPE] = term.datatype.value
    return result


def triples_text(triples: Iterable[Fact | ox.Triple], graph: ox.NamedNode | None = None) -> str:
    """Triples in N-Triples, or in N-Quads if they are of a named graph."""
    end = " .\n" if graph is None else f" {graph} .\n"
    return "".join([f"{s} {p} {n_triples(o)}{end}" for s, p, o in triples])
