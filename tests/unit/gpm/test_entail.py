"""Patterns under entailment: as if every event and the KB had been materialised by hand.

Generated schemas, events and patterns: the native matcher, the Python operators and a
pruned reading must agree with the plain matcher over what the definitions entail
(tests/entailed.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyoxigraph as ox
import pytest
from entailed import closed_kb, entailed
from entailment_strategies import EXAMPLE, PREFIXES, facts_of_turtle, kbs, patterns, some_events
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.errors import LimitExceeded
from spaseq.gpm.entailment import targets
from spaseq.gpm.matchers import Matchers
from spaseq.gpm.named_graphs import EntailedGraphs
from spaseq.gpm.native._matcher import Deriver
from spaseq.gpm.pattern import Pattern, compile_pattern
from spaseq.gpm.program import compile_gpm
from spaseq.gpm.python.evaluator import Evaluator
from spaseq.kb.closure import closed
from spaseq.kb.knowledge import Knowledge
from spaseq.kb.snapshot import Kb
from spaseq.parser import parse
from spaseq.rdf.entailment import View, rules_of
from spaseq.rdf.event import NUMBER, Event, Fact, Timestamp
from spaseq.rdf.graph import Graph
from spaseq.rdf.native._terms import Dictionary, EventBatch

REGIMES = ("rdfs", "owl-ql")
KB = ox.NamedNode(EXAMPLE + "kb")
OTHER = ox.NamedNode(EXAMPLE + "other")


def compiled(text: str) -> Pattern:
    query = parse(
        f"{PREFIXES} SELECT * WITHIN 1 SECOND FROM STREAM S :S "
        f"WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {text} }} }}"
    )
    return compile_pattern(compile_gpm(query.defines[0].pattern, None, None))


def event_of(facts: Sequence[Fact]) -> Event:
    return Event("S", Timestamp(0, NUMBER), 0, tuple(facts))


def graphs_of(kb: dict[ox.NamedNode, list[Fact]], pattern: Pattern, regime: str) -> EntailedGraphs:
    closure = closed({name: Graph(tuple(facts)) for name, facts in kb.items()}, regime)
    rules = rules_of(closure.schema, targets((pattern.program.pattern,)), closure.background)
    return EntailedGraphs(Knowledge(closure.kb), closure.kb, rules)


def materialised(
    kb: dict[ox.NamedNode, list[Fact]], facts: Sequence[Fact], regime: str
) -> tuple[Kb, Event]:
    whole = closed_kb({name.value: facts for name, facts in kb.items()}, regime)
    graphs = {ox.NamedNode(name): Graph(tuple(some)) for name, some in whole.items()}
    return Kb(graphs), event_of(tuple(entailed(facts, whole, regime)))


def check(kb: list[list[Fact]], events: list[list[Fact]], text: str, regime: str) -> None:
    """All ways to match a pattern agree with materialising."""
    named = dict(zip((KB, OTHER), kb, strict=True))
    pattern = compiled(text)
    graphs = graphs_of(named, pattern, regime)
    matchers = Matchers([pattern], None, entailed={None: graphs})
    evaluator = Evaluator(pattern.program, graphs)
    inputs = graphs.rules.inputs()
    for facts in events:
        known, whole = materialised(named, facts, regime)
        expected = Matchers([pattern], known).rows(whole, 0)[1] if facts else []
        event = event_of(facts)
        assert set(matchers.rows(event, 0)[1]) == set(expected)
        assert set(evaluator.rows(event)) == set(expected)
        kept = [f for f in facts if inputs is None or {f[1:], (f[1], None)} & inputs]
        if kept:
            assert set(matchers.rows(event_of(kept), 0)[1]) == set(expected)
        else:
            assert not expected or text == ""


@settings(max_examples=120, deadline=None)
@given(kbs(), some_events(), patterns(), st.sampled_from(REGIMES))
def test_all_ways_agree_with_materialising(
    kb: list[list[Fact]], events: list[list[Fact]], text: str, regime: str
) -> None:
    check(kb, events, text, regime)


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize(
    "axiom",
    [
        *("owl:sameAs", "owl:equivalentClass", "owl:equivalentProperty", "owl:inverseOf"),
        *("rdfs:subClassOf", "rdfs:subPropertyOf", "rdfs:domain", "rdfs:range"),
    ],
)
def test_an_axiom_about_a_literal_entails_nothing(axiom: str, regime: str) -> None:
    """Not even where it is only an axiom by what follows from another one."""
    schema = facts_of_turtle(f":p0 rdfs:subPropertyOf {axiom}")
    events = [facts_of_turtle(text) for text in (":x0 a :x0", ":y :x0 :z", ":x0 :p0 1", ":y :p0 1")]
    for told in (":x0 :p0 1", ":x0 :p0 1 . :y a :x0", ":x0 :p0 1 . :y :x0 :x0, 1"):
        for text in (
            "?x a ?y",
            "?x ?p ?y",
            "?s ?q ?o . GRAPH ?g { ?x ?p ?y }",
            "?x a ?y . GRAPH ?g { ?x :p0 ?x }",
        ):
            check([schema, facts_of_turtle(told)], events, text, regime)


@settings(max_examples=60, deadline=None)
@given(kbs(), some_events(), st.sampled_from(REGIMES))
def test_both_sets_of_rules_derive_the_same_triples(
    kb: list[list[Fact]], events: list[list[Fact]], regime: str
) -> None:
    """The compiled rules and those in Python, for everything that follows."""
    named = dict(zip((KB, OTHER), kb, strict=True))
    rules = graphs_of(named, compiled("?s ?p ?o"), regime).rules
    (target,) = rules.targets
    dictionary = Dictionary()
    deriver = Deriver(dictionary, [rules], {View(rules, target): 1})
    batch = EventBatch(dictionary)
    for facts in events:
        batch.add(facts)
    for number, facts in enumerate(events):
        found = [tuple(map(batch.term, triple)) for view, *triple in deriver.derived(batch, number)]
        assert len(found) == len(set(found))
        assert set(found) == set(rules.derive(facts))


def test_a_union_of_classes_is_no_union_of_patterns() -> None:
    """However many classes are below one: one view, whose rows are what it holds."""
    below = " . ".join(f":c{n} rdfs:subClassOf :c{n // 2}" for n in range(1, 500))
    pattern = compiled("?x a :c0 ; :v ?v")
    graphs = graphs_of({KB: facts_of_turtle(below)}, pattern, "rdfs")
    assert len(graphs.rules.targets) == 2
    matchers = Matchers([pattern], None, entailed={None: graphs})
    event = event_of(facts_of_turtle(":x a :c499, :c3, :d ; :v 1 . :y a :d ; :v 2"))
    assert matchers.rows(event, 0)[1] == [(ox.Literal(1), ox.NamedNode(EXAMPLE + "x"))]
    assert matchers.observed(0).steps["?x :v ?v".replace(":v", f"<{EXAMPLE}v>")][1] <= 2


def test_queries_that_see_other_graphs_have_other_schemas() -> None:
    """Rules of two groups in one matcher do not meet."""
    text = "?x a :c0"
    here, there = compiled(text), compiled(text)
    first = graphs_of({KB: facts_of_turtle(":c1 rdfs:subClassOf :c0")}, here, "rdfs")
    second = graphs_of({KB: facts_of_turtle(":c2 rdfs:subClassOf :c0")}, there, "rdfs")
    query = parse(
        f"{PREFIXES} SELECT * WITHIN 1 SECOND FROM STREAM S :S "
        f"WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {text} }} }}"
    )
    restricted = compile_pattern(compile_gpm(query.defines[0].pattern, None, ("k",)))
    matchers = Matchers([here, restricted], None, entailed={None: first, ("k",): second})
    event = event_of(facts_of_turtle(":x a :c1 . :y a :c2"))
    assert matchers.rows(event, 0)[1] == [(ox.NamedNode(EXAMPLE + "x"),)]
    assert matchers.rows(event, 1)[1] == [(ox.NamedNode(EXAMPLE + "y"),)]


def test_a_chain_over_a_long_event_stays_linear_in_its_triples() -> None:
    """500 links that meet 1,000 others: more than any table had room for at first."""
    pattern = compiled("?x :far ?y")
    schema = ":far owl:propertyChainAxiom (:near :next)"
    graphs = graphs_of({KB: facts_of_turtle(schema)}, pattern, "owl-ql")
    matchers = Matchers([pattern], None, entailed={None: graphs})
    text = " . ".join(f":a{n} :near :b{n} . :b{n} :next :c{n}, :d{n}" for n in range(500))
    event = event_of(facts_of_turtle(text))
    assert len(matchers.rows(event, 0)[1]) == 1000
    assert set(matchers.rows(event, 0)[1]) == set(Evaluator(pattern.program, graphs).rows(event))


def test_what_follows_from_an_event_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = graphs_of(
        {KB: facts_of_turtle(":next a owl:TransitiveProperty")}, compiled("?x :next ?y"), "owl-ql"
    ).rules
    facts = facts_of_turtle(" . ".join(f":a{n} :next :a{n + 1}" for n in range(60)))
    dictionary = Dictionary()
    deriver = Deriver(dictionary, [rules], {View(rules, rules.targets[0]): 1}, 1000)
    batch = EventBatch(dictionary)
    batch.add(facts)
    with pytest.raises(LimitExceeded, match=r"1,000 triples follow from one event \(MOST_DERIVED"):
        deriver.derived(batch, 0)
    monkeypatch.setattr("spaseq.rdf.entailment.MOST_DERIVED", 1000)
    with pytest.raises(LimitExceeded, match=r"1,000 triples follow from one graph \(MOST_DERIVED"):
        rules.derive(facts)
