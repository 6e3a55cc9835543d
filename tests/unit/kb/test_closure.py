"""Closing graphs: against the definitions, and for RDFS against owlrl."""

from __future__ import annotations

from collections.abc import Sequence

import owlrl
import pyoxigraph as ox
import pytest
import rdflib
from entailed import DOMAIN, RANGE, RDFS, SUBCLASS, SUBPROPERTY, TYPE, closed_kb, entailed
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.errors import KbError, LimitExceeded
from spaseq.kb.closure import closed
from spaseq.kb.snapshot import Kb
from spaseq.rdf import schema
from spaseq.rdf.entailment import EVERYTHING, rules_of
from spaseq.rdf.event import Fact
from spaseq.rdf.graph import Graph

EXAMPLE = "http://example.org/"
PREFIXES = (
    f"@prefix : <{EXAMPLE}> . @prefix rdfs: <{RDFS}> . "
    "@prefix owl: <http://www.w3.org/2002/07/owl#> ."
)
KB = ox.NamedNode(EXAMPLE + "kb")
AXIOMS = (SUBCLASS, SUBPROPERTY, DOMAIN, RANGE)


def facts(text: str) -> list[Fact]:
    quads = ox.parse(f"{PREFIXES} {text} .", format=ox.RdfFormat.TURTLE)
    return [(quad.subject, quad.predicate, quad.object) for quad in quads]


def closed_one(given: list[Fact], regime: str) -> frozenset[Fact]:
    closure = closed({KB: Graph(tuple(given))}, regime)
    assert isinstance(closure.kb, Kb)
    found = closure.kb.graph(KB).facts
    assert len(found) == len(set(found))
    return frozenset(found)


@pytest.mark.parametrize(
    ("text", "regime"),
    [
        (":a rdfs:subClassOf :b . :b rdfs:subClassOf :c . :x a :a", "rdfs"),
        (":p rdfs:subPropertyOf :q . :q rdfs:domain :c ; rdfs:range :d . :x :p :y, 1", "rdfs"),
        (":kind rdfs:subPropertyOf rdf:type . :a :below :b . :x :kind :a", "rdfs"),
        (":below rdfs:subPropertyOf rdfs:subClassOf . :a :below :b . :x a :a", "rdfs"),
        (":a owl:equivalentClass :b . :b rdfs:subClassOf :a . :x a :a . :y a :b", "owl-ql"),
        (":p owl:inverseOf :q . :q a owl:SymmetricProperty . :x :p :y", "owl-ql"),
        (":p a owl:TransitiveProperty . :a :p :b . :b :p :c . :c :p :a, :d", "owl-ql"),
        (":a owl:sameAs :b . :b owl:sameAs :c . :a :p :x . :y :p :c . :p owl:sameAs :q", "owl-ql"),
        (":u owl:propertyChainAxiom (:p :q) . :q owl:inverseOf :r . :a :p :b . :c :r :b", "owl-ql"),
        (":p rdfs:subPropertyOf [ owl:inverseOf :q ] . :a :p :b", "owl-ql"),
    ],
)
def test_a_closure_is_that_of_the_definitions(text: str, regime: str) -> None:
    text = "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . " + text
    given = facts(text)
    assert closed_one(given, regime) == closed_kb({"kb": given}, regime)["kb"] > frozenset(given)


def test_a_graph_is_closed_by_the_schema_of_the_others_and_not_by_their_data() -> None:
    one, other = facts(":x a :a . :x :in :y"), facts(":a rdfs:subClassOf :b . :y :in :z")
    axiom = facts(":in a owl:TransitiveProperty")
    names = [KB, ox.NamedNode(EXAMPLE + "other")]
    graphs = {names[0]: Graph(tuple(one)), names[1]: Graph(tuple(other + axiom))}
    kb = closed(graphs, "owl-ql").kb
    assert frozenset(kb.graph(KB).facts) == frozenset(one + facts(":x a :b"))
    assert frozenset(kb.graph(names[1]).facts) == frozenset(other + axiom)


# ------------------------------------------------------------------ owlrl

names = st.integers(0, 3)
rdfs_axioms = st.one_of(
    st.builds("C{} SUB C{}".format, names, names),
    st.builds("p{} SUBP p{}".format, names, names),
    st.builds("p{} DOMAIN C{}".format, names, names),
    st.builds("p{} RANGE C{}".format, names, names),
)
rdfs_data = st.one_of(
    st.builds("x{} TYPE C{}".format, names, names),
    st.builds("x{} p{} x{}".format, names, names, names),
)
WORDS = {
    "SUB": SUBCLASS,
    "SUBP": SUBPROPERTY,
    "DOMAIN": DOMAIN,
    "RANGE": RANGE,
    "TYPE": TYPE,
}


def read(lines: Sequence[str]) -> list[Fact]:
    parts = (line.split() for line in lines)
    return [
        tuple(WORDS.get(word, ox.NamedNode(EXAMPLE + word)) for word in words)  # type: ignore[misc]
        for words in parts
    ]


def by_owlrl(given: Sequence[Fact]) -> frozenset[Fact]:
    """The RDFS closure, without its axiomatic triples and the reflexive ones.

    What is left out: whatever is said of the vocabulary, types that are the vocabulary's
    (`rdfs:Resource`, `rdfs:Class`, `rdf:Property`), and a term below itself.
    """
    graph = rdflib.Graph()
    graph.parse(data="".join(f"{s} {p} {o} .\n" for s, p, o in given), format="nt")
    owlrl.DeductiveClosure(owlrl.RDFS_Semantics).expand(graph)
    found = set()
    for s, p, o in graph:
        fact = tuple(
            ox.NamedNode(str(term)) for term in (s, p, o) if isinstance(term, rdflib.URIRef)
        )
        ours = len(fact) == 3 and fact[0].value.startswith(EXAMPLE)
        if ours and fact[2].value.startswith(EXAMPLE) and fact[0] != fact[2]:
            found.add(fact)
    return frozenset(found)  # type: ignore[arg-type]


@settings(max_examples=25, deadline=None)
@given(st.lists(rdfs_axioms, max_size=5), st.lists(rdfs_data, max_size=4))
def test_rdfs_is_that_of_owlrl(axioms: list[str], data: list[str]) -> None:
    known, told = read(axioms), read(data)
    expected = by_owlrl(known + told)
    closure = closed({KB: Graph(tuple(known + told))}, "rdfs")
    found = frozenset(closure.kb.graph(KB).facts)
    assert frozenset(f for f in found if f[0] != f[2]) == expected
    # An event that says the data, over a KB that has the schema: all but what that says alone.
    apart = closed({KB: Graph(tuple(known))}, "rdfs")
    rules = rules_of(apart.schema, (EVERYTHING,), apart.background)
    event = frozenset(rules.derive(told))
    assert event == entailed(told, closed_kb({"kb": known}, "rdfs"), "rdfs")
    assert frozenset(f for f in event if f[0] != f[2]) == expected - frozenset(
        f for f in apart.kb.graph(KB).facts if f[1] in AXIOMS
    )


# ------------------------------------------------------------------ what cannot be closed


@pytest.mark.parametrize("members", ["", ":p", ":p :q :r"])
def test_a_chain_has_two_properties(members: str) -> None:
    with pytest.raises(KbError, match="chains of two properties are supported"):
        closed_one(facts(f":u owl:propertyChainAxiom ({members})"), "owl-ql")


def test_there_is_no_other_regime() -> None:
    with pytest.raises(ValueError, match="no entailment 'owl'; choose from rdfs, owl-ql"):
        closed_one(facts(":a :b :c"), "owl")


def test_the_pairs_of_a_schema_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "MOST_PAIRS", 100)
    text = " . ".join(f":c{n} rdfs:subClassOf :c{n + 1}" for n in range(20))
    with pytest.raises(LimitExceeded, match=r"more than 100 pairs .* \(MOST_PAIRS\)"):
        closed_one(facts(text), "rdfs")


def test_rules_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.rdf.entailment.MOST_RULES", 10)
    text = " . ".join(f":c{n} rdfs:subClassOf :c" for n in range(20))
    with pytest.raises(LimitExceeded, match=r"more than 10 rules .* \(MOST_RULES\)"):
        closed_one(facts(text), "rdfs")


def test_a_closure_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.rdf.entailment.MOST_DERIVED", 50)
    monkeypatch.setattr("spaseq.kb.closure.MOST_DERIVED", 50)
    text = ":p a owl:TransitiveProperty . " + " . ".join(f":a{n} :p :a{n + 1}" for n in range(20))
    with pytest.raises(LimitExceeded, match=r"follow from one graph \(MOST_DERIVED\)"):
        closed_one(facts(text), "owl-ql")
    equal = " . ".join(f":a{n} owl:sameAs :a{n + 1}" for n in range(8))
    with pytest.raises(LimitExceeded, match=r"\(MOST_DERIVED\): owl:sameAs"):
        closed_one(facts(equal), "owl-ql")
