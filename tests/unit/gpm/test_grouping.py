"""Aggregates of sub-queries on the native matcher, against the operators in Python."""

from __future__ import annotations

import random
from decimal import Decimal

import pyoxigraph as ox
import pytest

from spaseq.gpm import algebra
from spaseq.gpm.pattern import compile_pattern
from spaseq.gpm.plan_text import plan_lines
from spaseq.gpm.program import compile_gpm
from spaseq.gpm.python.evaluator import Evaluator
from spaseq.kb.snapshot import open_kb
from spaseq.parser import parse_pattern
from spaseq.rdf.event import NUMBER, Event, Fact, Timestamp
from tests.unit.gpm.encoded_events import EX, batch_of, matchers

TIME = Timestamp(1, NUMBER, ox.Literal(1))
XSD = "http://www.w3.org/2001/XMLSchema#"
P, Q = (ox.NamedNode(EX + name) for name in "pq")
VALUES = (
    ox.Literal(3),
    ox.Literal(-7),
    ox.Literal("03", datatype=ox.NamedNode(XSD + "integer")),
    ox.Literal(Decimal("2.50")),
    ox.Literal(2.5),
    ox.Literal("NaN", datatype=ox.NamedNode(XSD + "double")),
    ox.Literal(10**30),
    ox.Literal("text"),
    ox.Literal("text", language="en"),
    ox.Literal(True),
    ox.Literal("2026-01-01", datatype=ox.NamedNode(XSD + "date")),
    ox.NamedNode(EX + "iri"),
    ox.BlankNode("b"),
)
NUMBERS = 5
"""The first values, which are numbers that compare."""


def event(seed: int, size: int, values: int) -> Event:
    chance = random.Random(seed)
    facts: dict[Fact, None] = {}
    for _ in range(size):
        subject = ox.NamedNode(f"{EX}n{chance.randrange(4)}")
        facts[subject, chance.choice((P, P, Q)), chance.choice(VALUES[:values])] = None
    return Event("urn:s", TIME, 0, tuple(facts))


SELECTS = [
    "SELECT ?s (COUNT(*) AS ?n) { ?s :p ?v } GROUP BY ?s",
    "SELECT (COUNT(?v) AS ?n) (COUNT(DISTINCT ?w) AS ?m) { ?s :p ?v OPTIONAL { ?s :q ?w } }",
    "SELECT ?s (SUM(?v) AS ?n) (AVG(?v) AS ?m) { ?s :p ?v } GROUP BY ?s",
    "SELECT ?s (MIN(?v) AS ?n) (MAX(?v) AS ?m) { ?s :p ?v } GROUP BY ?s",
    "SELECT (SUM(?v + 1) AS ?n) (MIN(-?v) AS ?m) { ?s :p ?v FILTER(ISNUMERIC(?v)) }",
    "SELECT ?w (SUM(DISTINCT ?v) AS ?n) { ?s :p ?v OPTIONAL { ?s :q ?w } } GROUP BY ?w",
    "SELECT ?k (COUNT(*) AS ?n) { ?s :p ?v } GROUP BY (DATATYPE(?v) AS ?k)",
    "SELECT ?s (COUNT(*) * 2 AS ?n) { ?s :p ?v } GROUP BY ?s HAVING (COUNT(?v) > 1)",
    "SELECT (SUM(?n) AS ?m) { { SELECT ?s (COUNT(*) AS ?n) { ?s :p ?v } GROUP BY ?s } }",
    "SELECT ?s { ?s :p ?v . ?t :q ?v }",
    "SELECT ?s { ?s :p ?v } GROUP BY ?s",
    "SELECT (AVG(?x) AS ?n) (SUM(?x) AS ?m) (MIN(?x) AS ?k) (COUNT(?x) AS ?j) { ?s :none ?x }",
    "SELECT (COUNT(?s) AS ?n) { ?s (:p/:q)* ?v }",
]


@pytest.mark.parametrize("values", [NUMBERS, len(VALUES)], ids=["numbers", "all"])
@pytest.mark.parametrize("text", SELECTS)
def test_results_are_those_of_the_operators_in_python(text: str, values: int) -> None:
    found = matchers(f"{{ ?s :p ?any {{ {text} }} }}", f"{{ {{ {text} }} }}")
    for number, pattern in enumerate(found.patterns):
        evaluator = Evaluator(pattern.program, open_kb({}))
        assert pattern.native is not None, pattern.left_to_python
        for seed in range(20):
            one = event(seed, seed, values)
            rows = found.rows(one, number)[0]
            assert len(rows) == len(set(rows))
            assert set(rows) == set(evaluator.rows(one))


def test_group_concat_joins_in_the_order_of_the_rows() -> None:
    text = "SELECT ?s (GROUP_CONCAT(?v ; SEPARATOR = '|') AS ?n) { ?s :p ?v } GROUP BY ?s"
    found = matchers(f"{{ {{ {text} }} }}", "{ { SELECT (GROUP_CONCAT(?v) AS ?n) { ?s :r ?v } } }")
    facts = tuple((P, P, value) for value in VALUES[:4])
    assert found.rows(Event("urn:s", TIME, 0, facts), 0)[0] == [(ox.Literal("3|-7|03|2.5"), P)]
    failing = (*facts, (P, P, ox.BlankNode("b")))
    assert found.rows(Event("urn:s", TIME, 0, failing), 0)[0] == [(None, P)]
    assert found.rows(Event("urn:s", TIME, 0, facts), 1)[0] == [(ox.Literal(""),)]


def test_sample_is_a_value_of_the_group() -> None:
    found = matchers("{ { SELECT ?s (SAMPLE(?v) AS ?n) { ?s :p ?v } GROUP BY ?s } }")
    facts = tuple((P, P, value) for value in VALUES[:4])
    ((value, subject),) = found.rows(Event("urn:s", TIME, 0, facts), 0)[0]
    assert subject == P
    assert value in VALUES[:4]


def test_many_groups() -> None:
    found = matchers("{ { SELECT ?v (COUNT(DISTINCT ?s) AS ?n) { ?s :p ?v } GROUP BY ?v } }")
    facts = [(ox.NamedNode(f"{EX}n{n}"), P, ox.Literal(n % 300)) for n in range(3000)]
    small = [(P, P, ox.Literal(1))]
    batch = batch_of(found, [facts, small, facts])
    assert found.count(batch, 0) == 601
    rows = found.rows(Event("urn:s", TIME, 0, tuple(facts)), 0)[0]
    assert {row[0] for row in rows} == {ox.Literal(10)}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT ?s { ?s :p ?v } LIMIT 2", "LIMIT or OFFSET in a sub-query"),
        ("SELECT (COUNT(DISTINCT *) AS ?n) { ?s :p ?v }", "COUNT(DISTINCT *)"),
        ("SELECT (COUNT(*) AS ?n) { ?s :p/:q* ?v }", "connects nodes several times"),
        ("SELECT (COUNT(*) AS ?n) { GRAPH :k { ?s :p ?v } }", "rows of the KB"),
        (
            "SELECT (COUNT(*) AS ?n) { { SELECT DISTINCT ?s { ?s :p ?v } } }",
            "an aggregate over the DISTINCT rows",
        ),
    ],
)
def test_what_is_left_to_python(text: str, reason: str) -> None:
    pattern = compile_pattern(
        compile_gpm(parse_pattern(f"{{ ?a :p ?b {{ {text} }} }}", {"": EX}), None, None)
    )
    assert pattern.native is None
    assert reason in pattern.left_to_python[0]


def test_the_plan_shows_the_groups() -> None:
    text = "{ { SELECT ?s (SUM(?v) AS ?n) { ?s :p ?v } GROUP BY ?s HAVING (SUM(?v) > 3) } }"
    pattern = compile_pattern(compile_gpm(parse_pattern(text, {"": EX}), None, None))
    assert pattern.native is not None
    assert algebra.certain(pattern.native.root) == {1}
    assert [line.split("  ")[0] for line in plan_lines(pattern)] == [
        f"match ?s <{EX}p> ?v 0",
        "group by ?s: SUM(?v 0)",
        "filter ?aggregate 0 0 > 3",
        "bind ?n := ?aggregate 0 0",
    ]
