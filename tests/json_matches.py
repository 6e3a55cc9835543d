"""Matches in JSON, as the oracle compares matches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyoxigraph as ox
from cases import XSD, micros_of
from oracle import shown

from spaseq.rdf.event import Term


def json_term(term: Mapping[str, Any]) -> Term:
    """A term of SPARQL's JSON results."""
    if term["type"] == "triple":
        names = ("subject", "predicate", "object")
        parts: Any = (json_term(term["value"][name]) for name in names)
        return ox.Triple(*parts)
    if term["type"] == "uri":
        return ox.NamedNode(term["value"])
    if term["type"] == "bnode":
        return ox.BlankNode(term["value"])
    if "xml:lang" in term:
        direction = ox.BaseDirection(term["its:dir"]) if "its:dir" in term else None
        return ox.Literal(term["value"], language=term["xml:lang"], direction=direction)
    datatype = term.get("datatype", XSD + "string")
    return ox.Literal(term["value"], datatype=ox.NamedNode(datatype))


def json_graph(text: str) -> list[ox.Triple]:
    """A graph that a match has constructed."""
    return [quad.triple for quad in ox.parse(text, format=ox.RdfFormat.N_TRIPLES)]


def comparable_lines(lines: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Matches read with decimals in place of floats, like `oracle.comparable`."""
    return sorted(map(_comparable, lines), key=repr)


def _comparable(line: Mapping[str, Any]) -> tuple[Any, ...]:
    end = micros_of(str(line["end"]))
    if "boolean" in line:
        return (line["query"], None, end, True, ())
    solution: Any = _bindings(line.get("bindings", {}))
    if "graph" in line:
        solution = [(t.subject, t.predicate, t.object) for t in json_graph(line["graph"])]
    witnesses = [
        (
            w["gpm"],
            w["stream"],
            micros_of(str(w["time"])),
            w["ordinal"],
            shown(_bindings(w["bindings"])),
        )
        for w in line["events"]
    ]
    counted = (line["results"],) if "results" in line else ()
    start = micros_of(str(line["start"]))
    return (line["query"], start, end, shown(solution), tuple(sorted(witnesses)), *counted)


def _bindings(data: Mapping[str, Any]) -> dict[str, Term]:
    return {name: json_term(term) for name, term in data.items()}
