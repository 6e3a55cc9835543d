"""Matches as the user meets them: bindings, provenance, and nothing of the engine.

And as JSON: terms as in *SPARQL 1.1 Query Results JSON*, keys and their order a public
interface. Times of numeric timestamps are numbers of seconds, those of dates UTC strings;
variables that are not bound are left out. `kb`, the version of the knowledge base, comes last,
once that has changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyoxigraph as ox

from spaseq.rdf.event import Fact, Term, Timestamp
from spaseq.rdf.time import json_value

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"


@dataclass(frozen=True, slots=True)
class Witness:
    """One event of a match: which GPM accepted which event, with which mapping."""

    gpm: str
    stream: str
    time: Timestamp
    ordinal: int
    graph: Term | None
    bindings: Mapping[str, Term]


@dataclass(frozen=True, slots=True)
class Match:
    """One result of one query.

    `bindings` is the solution of a SELECT (unbound variables left out), `graph` the triples
    of a CONSTRUCT, `boolean` True for an ASK. `start` is the time of the first event, `end`
    that of the last, or the closing time for a match that had to wait for its window to close.
    `variables` names the projected columns in order.
    """

    query: str
    start: Timestamp
    end: Timestamp
    bindings: Mapping[str, Term]
    events: tuple[Witness, ...]
    variables: tuple[str, ...] = ()
    graph: tuple[Fact, ...] | None = None
    boolean: bool | None = None
    kb_version: int = 1
    """The version of the knowledge base that was in force when the match was complete."""

    def to_dict(self) -> dict[str, Any]:
        """The match as plain data, in the order its keys are written."""
        return _match_to_dict(self)

    def to_json(self) -> str:
        """The match as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)


def _match_to_dict(match: Match) -> dict[str, Any]:
    version = {} if match.kb_version == 1 else {"kb": match.kb_version}
    if match.boolean is not None:
        return {
            "query": match.query,
            "end": json_value(match.end),
            "boolean": match.boolean,
        } | version
    result: dict[str, Any] = {
        "query": match.query,
        "start": json_value(match.start),
        "end": json_value(match.end),
    }
    if match.graph is None:
        result["bindings"] = solution_to_json(match.bindings)
    else:
        result["graph"] = triples_text(match.graph)
    result["events"] = [_witness_to_json(witness) for witness in match.events]
    return result | version


def _witness_to_json(witness: Witness) -> dict[str, Any]:
    result: dict[str, Any] = {
        "gpm": witness.gpm,
        "stream": witness.stream,
        "time": json_value(witness.time),
        "ordinal": witness.ordinal,
    }
    if witness.graph is not None:
        name = witness.graph
        result["graph"] = name.value if isinstance(name, ox.NamedNode) else str(name)
    result["bindings"] = solution_to_json(witness.bindings)
    return result


def solution_to_json(bindings: Mapping[str, Term]) -> dict[str, dict[str, str]]:
    """A solution as a member of the `bindings` of SPARQL's JSON results."""
    return {name: term_to_json(term) for name, term in bindings.items()}


def term_to_json(term: Term) -> dict[str, str]:
    """A term as SPARQL's JSON results have it."""
    if isinstance(term, ox.NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, ox.BlankNode):
        return {"type": "bnode", "value": term.value}
    result = {"type": "literal", "value": term.value}
    if term.language:
        result["xml:lang"] = term.language
    elif term.datatype.value != XSD_STRING:
        result["datatype"] = term.datatype.value
    return result


def triples_text(facts: Iterable[Fact]) -> str:
    """Triples in N-Triples."""
    return "".join(f"{subject} {predicate} {value} .\n" for subject, predicate, value in facts)
