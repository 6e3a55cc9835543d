"""Drawn cases whose events say their facts in triple terms, and whose patterns ask for those.

Each fact of an event is joined by statements about it: `:log :says <<( s p o )>>`, the same one
level deeper, and a reifier. A triple pattern may then ask for any of these in place of the triple.
So the matches of the new case are those of the old one. Source: docs/language.md, section 3.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyoxigraph as ox
from strategies import Case, iri

from spaseq.parser import ast, format_query, parse
from spaseq.rdf.event import Event, Fact

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
WAYS = ("triple", "said", "deep", "reified")


def starred(case: Case, seed: int) -> Case:
    """A case with the same matches."""
    rewriting = _Rewriting(random.Random(seed))
    query = parse(case.query)
    defines = tuple(
        replace(define, pattern=rewriting.group(define.pattern)) for define in query.defines
    )
    streams = {
        stream: [replace(event, facts=tuple(_facts_of(event))) for event in events]
        for stream, events in case.streams.items()
    }
    return Case(format_query(replace(query, defines=defines)), streams, case.kb)


def _facts_of(event: Event) -> Iterator[Fact]:
    for number, fact in enumerate(event.facts):
        term: Any = ox.Triple(*fact)  # type: ignore[arg-type]
        yield fact
        yield iri("log"), iri("says"), term
        yield iri("log"), iri("deep"), ox.Triple(iri("log"), iri("said"), term)
        yield ox.BlankNode(f"r{number}"), ox.NamedNode(RDF + "reifies"), term


class _Rewriting:
    """Rewrites the triple patterns of the events of one query, each in a way drawn by chance."""

    def __init__(self, draw: random.Random):
        self._draw = draw
        self._count = 0

    def group(self, group: ast.GroupGraphPattern) -> ast.GroupGraphPattern:
        elements = (new for old in group.elements for new in self._element(old))
        return ast.GroupGraphPattern(tuple(elements))

    def _element(self, element: ast.Element) -> Iterator[ast.Element]:
        if isinstance(element, ast.Graph | ast.Service):
            yield element
        elif isinstance(element, ast.Triple) and isinstance(element.predicate, ast.Iri):
            yield from self._triple(element)
        else:
            yield ast.rebuilt(element, self._inside)

    def _inside(self, node: Any) -> Any:
        return self.group(node) if isinstance(node, ast.GroupGraphPattern) else None

    def _triple(self, triple: ast.Triple) -> Iterator[ast.Triple]:
        way = self._draw.choice(WAYS)
        if way == "triple":
            yield triple
            return
        whole = self._node("term")
        yield replace(triple, of=whole)
        log = ast.Iri(iri("log").value)
        if way == "reified":
            yield ast.Triple(self._node("reifier"), ast.Iri(RDF + "reifies"), whole)
        elif way == "said":
            yield ast.Triple(log, ast.Iri(iri("says").value), whole)
        else:
            outer = self._node("term")
            yield ast.Triple(log, ast.Iri(iri("said").value), whole, of=outer)
            yield ast.Triple(log, ast.Iri(iri("deep").value), outer)

    def _node(self, name: str) -> ast.BlankNode:
        self._count += 1
        return ast.BlankNode(f"{name}{self._count}")
