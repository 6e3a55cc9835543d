"""Entailment by its definition: rules applied to sets of triples until nothing is new.

The reference for `--entail`: shares nothing with the engine. `closed_kb` closes named graphs,
`entailed` adds to an event what follows from it; the rules are those of docs/entailment.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyoxigraph as ox

from spaseq.rdf.event import Fact, Term

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
TYPE, FIRST, REST = (ox.NamedNode(RDF + name) for name in ("type", "first", "rest"))
SUBCLASS, SUBPROPERTY, DOMAIN, RANGE = (
    ox.NamedNode(RDFS + name) for name in ("subClassOf", "subPropertyOf", "domain", "range")
)
INVERSE, SAME, EQUAL_CLASS, EQUAL_PROPERTY, SYMMETRIC, TRANSITIVE, CHAIN = (
    ox.NamedNode(OWL + name)
    for name in (
        "inverseOf", "sameAs", "equivalentClass", "equivalentProperty",
        "SymmetricProperty", "TransitiveProperty", "propertyChainAxiom",
    )
)  # fmt: skip

Facts = frozenset[Fact]
GIVEN: Facts = frozenset(
    ((EQUAL_CLASS, SUBPROPERTY, SUBCLASS), (EQUAL_PROPERTY, SUBPROPERTY, SUBPROPERTY))
)
"""What `owl-ql` knows of its own properties."""


def closed_kb(graphs: Mapping[str, Iterable[Fact]], regime: str) -> dict[str, Facts]:
    """Each graph with what follows from it and the schema of all of them."""
    found = {name: frozenset(facts) for name, facts in graphs.items()}
    while True:
        schema = frozenset().union(*found.values())
        grown = {
            name: facts | _once(facts, schema, frozenset(), regime) for name, facts in found.items()
        }
        if regime == "owl-ql":
            grown = {name: facts | _equalled(facts, schema) for name, facts in grown.items()}
        if grown == found:
            return {name: _proper(facts) for name, facts in found.items()}
        found = grown


def entailed(facts: Iterable[Fact], kb: Mapping[str, Facts], regime: str) -> Facts:
    """A graph with what follows from its triples, over closed graphs of the KB."""
    found = frozenset(facts)
    known = frozenset().union(*kb.values())
    while True:
        grown = found | _once(found, known, known, regime)
        if grown == found:
            return _proper(found)
        found = grown


def _proper(facts: Facts) -> Facts:
    """Only triples of RDF: the rules also go through properties without a name."""
    return frozenset(f for f in facts if isinstance(f[1], ox.NamedNode))


def _once(facts: Facts, schema: Facts, pairs: Facts, regime: str) -> Facts:
    """What one application of each rule to the triples gives."""
    made = set(_rdfs(facts, schema))
    if regime == "owl-ql":
        made |= set(_owl(facts, schema))
        for first, second, result in _chains(schema):
            made |= set(_joined(facts, pairs, first, second, result))
        schema |= GIVEN
    for name in (SUBCLASS, SUBPROPERTY):
        made |= set(_joined(facts, schema, name, name, name))
    return frozenset(fact for fact in made if not isinstance(fact[0], ox.Literal))


def _axioms(schema: Facts) -> list[Fact]:
    """Those that do not have a literal for a class, a property or an individual."""
    return [fact for fact in schema if not isinstance(fact[2], ox.Literal)]


def _rdfs(facts: Facts, schema: Facts) -> Iterator[Fact]:
    axioms = _axioms(schema)
    for s, p, o in facts:
        for term, axiom, other in axioms:
            if axiom == SUBCLASS and p == TYPE and term == o:
                yield s, TYPE, other
            elif axiom == SUBPROPERTY and term == p:
                yield s, other, o
            elif axiom == DOMAIN and term == p:
                yield s, TYPE, other
            elif axiom == RANGE and term == p:
                yield o, TYPE, other


def _owl(facts: Facts, schema: Facts) -> Iterator[Fact]:
    above = {EQUAL_CLASS: SUBCLASS, EQUAL_PROPERTY: SUBPROPERTY}
    axioms = _axioms(schema)
    for s, p, o in facts:
        if p in above:
            yield s, above[p], o
        if p in (EQUAL_CLASS, EQUAL_PROPERTY, INVERSE, SAME):
            yield o, p, s
        for term, axiom, other in axioms:
            if axiom == INVERSE and p in (term, other):
                yield o, other if p == term else term, s
                if term == other == p:
                    yield o, p, s
            elif axiom == TYPE and other == SYMMETRIC and term == p:
                yield o, p, s
            elif axiom == EQUAL_CLASS and p == TYPE and o in (term, other):
                yield from ((s, TYPE, term), (s, TYPE, other))
            elif axiom == EQUAL_PROPERTY and p in (term, other):
                yield from ((s, term, o), (s, other, o))


def _chains(schema: Facts) -> Iterator[tuple[Term, Term, Term]]:
    for term, axiom, other in _axioms(schema):
        if axiom == TYPE and other == TRANSITIVE:
            yield term, term, term
        elif axiom == CHAIN:
            first = next(o for s, p, o in schema if (s, p) == (other, FIRST))
            rest = next(o for s, p, o in schema if (s, p) == (other, REST))
            second = next(o for s, p, o in schema if (s, p) == (rest, FIRST))
            yield first, second, term


def _joined(facts: Facts, pairs: Facts, first: Term, second: Term, result: Term) -> Iterator[Fact]:
    """What a chain makes of two triples, one of them at least of `facts`."""
    for left, right in ((facts, facts), (facts, pairs), (pairs, facts)):
        for s, p, o in left:
            if p == first:
                for start, q, end in right:
                    if q == second and start == o:
                        yield s, result, end


def _equalled(facts: Facts, schema: Facts) -> Facts:
    """The triples with one term replaced by another that is the same."""
    made = set()
    for term, axiom, other in _axioms(schema):
        if axiom == SAME:
            for s, p, o in facts:
                for old, new in ((term, other), (other, term)):
                    made |= {(new, p, o)} if s == old else set()
                    made |= {(s, new, o)} if p == old else set()
                    made |= {(s, p, new)} if o == old else set()
    return frozenset(fact for fact in made if not isinstance(fact[0], ox.Literal))
