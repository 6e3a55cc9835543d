"""Property paths of no fixed length: their automata, and searches along them in large events."""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest

from spaseq.errors import LimitExceeded
from spaseq.gpm import algebra
from spaseq.gpm.native.order import Step
from spaseq.gpm.native.path_automaton import path_automaton
from spaseq.gpm.pattern import compile_pattern
from spaseq.gpm.plan_text import plan_lines
from spaseq.gpm.program import compile_gpm
from spaseq.parser import ast, parse_pattern
from spaseq.program import compile_queries
from spaseq.rdf.event import NUMBER, Event, Fact, Timestamp
from tests.unit.gpm.encoded_events import EX, batch_of, matchers
from tests.unit.gpm.whole_pattern import reference_rows

TIME = Timestamp(1, NUMBER, ox.Literal(1))
P, Q = (ox.NamedNode(EX + name) for name in "pq")


def node(number: int) -> ox.NamedNode:
    return ox.NamedNode(f"{EX}n{number}")


def path_of(text: str) -> ast.Path:
    (triple,) = parse_pattern(f"{{ ?a {text} ?b }}", {"": EX}).elements
    assert isinstance(triple, ast.Triple)
    assert not isinstance(triple.predicate, ast.Var)
    return triple.predicate


def shown(text: str) -> tuple[list[str], list[tuple[int, ...]], list[int]]:
    """The links, `~` before an inverse one, what follows each state, the accepting states."""
    found = path_automaton(path_of(text), lambda term: Step(0, 2 if term is None else term, 1, ""))
    links = []
    for link in found.links:
        name = "any" if isinstance(link.step.predicate, int) else link.step.predicate.value[-1]
        excluded = ",".join(term.value[-1] for term in link.excluded)
        links.append(("" if link.forward else "~") + name + (f" but {excluded}" * bool(excluded)))
    return links, list(found.follow), sorted(found.accepting)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":p+", (["p"], [(0,), (0,)], [1])),
        (":p*", (["p"], [(0,), (0,)], [0, 1])),
        (":p?/:q", (["p", "q"], [(0, 1), (1,), ()], [2])),
        ("^(:p/:q+)", (["~q", "~p"], [(0,), (0, 1), ()], [2])),
        ("(:p|^:q)+", (["p", "~q"], [(0, 1), (0, 1), (0, 1)], [1, 2])),
        ("(:p?)+/:q*", (["p", "q"], [(0, 1), (0, 1), (1,)], [0, 1, 2])),
        ("!:p", (["any but p"], [(0,), ()], [1])),
        ("!(:p|^:q)", (["any but p", "~any but q"], [(0, 1), (), ()], [1, 2])),
        ("^!^:q", (["any but q"], [(0,), ()], [1])),
    ],
)
def test_automata(text: str, expected: object) -> None:
    assert shown(text) == expected


def test_what_a_path_cannot_do_without() -> None:
    def required(text: str) -> list[str]:
        found = path_automaton(path_of(text), lambda term: Step(0, term or 2, 1, ""))
        return [str(step.predicate)[-2] for step in found.required]

    assert required(":p/:q*") == ["p"]
    assert required(":p/:q+/:r") == ["p", "r"]
    assert required("(:p|:q)+/:r") == ["r"]
    assert required("(:p/:q)*") == []


def links(count: int, size: int, seed: int) -> tuple[Fact, ...]:
    """Links between `count` nodes, the first of which and one more have a number."""
    chance = random.Random(seed)
    facts = {
        (node(chance.randrange(count)), chance.choice((P, Q)), node(chance.randrange(count)))
        for _ in range(size)
    }
    return (*facts, *((node(n), ox.NamedNode(EX + "r"), ox.Literal(1)) for n in (0, count)))


@pytest.mark.parametrize(
    "text",
    [
        "{ :n0 :p+ ?b }",
        "{ :n0 (:p|^:q)* ?b }",
        "{ ?a :p+/:q :n1 }",
        "{ ?a :p+ ?a }",
        "{ ?a (:p/:q)+ ?b }",
        "{ ?a :p* ?b }",
        "{ ?a !(:p|:r) ?b . ?b :q* ?c FILTER(?a = :n2) }",
        "{ ?a :r ?n . ?a (:p|:r)? ?b }",
        "{ ?a :p ?b FILTER NOT EXISTS { ?b :q+ ?a } }",
        "{ ?a :p ?b OPTIONAL { ?b :q+ :n3 . ?b ^:p ?c } }",
    ],
)
@pytest.mark.parametrize("size", [3, 60])
def test_large_events_give_the_solutions_of_pyoxigraph(text: str, size: int) -> None:
    found = matchers(text)
    (pattern,) = found.patterns
    assert pattern.native is not None
    for seed in range(3):
        facts = links(12, size, seed)
        event = Event("urn:s", TIME, 0, facts)
        ours = found.rows(event, 0)[0]
        assert len(ours) == len(set(ours))
        assert set(ours) == reference_rows(pattern.program, event, {})
        assert found.count(batch_of(found, [facts, facts]), 0) == 2 * len(ours)


def test_an_empty_path_connects_what_is_no_node_of_the_event() -> None:
    """In SPARQL (section 18.4) and in the tests of the W3C, but not in pyoxigraph."""
    found = matchers("{ ?a :q ?b . :absent :p* ?c }", "{ ?b :q ?c . ?a :p? :absent }")
    event = Event("urn:s", TIME, 0, ((node(1), Q, node(2)),))
    absent = ox.NamedNode(EX + "absent")
    assert found.rows(event, 0)[0] == [(node(1), node(2), absent)]
    assert found.rows(event, 1)[0] == [(absent, node(1), node(2))]


def test_an_empty_path_binds_no_variable_to_what_is_no_node_of_the_event() -> None:
    found = matchers("{ VALUES ?v { 1 } ?v :p? ?v }", "{ VALUES ?v { 1 } ?v :p* ?w }")
    for fact, count in (((node(1), Q, node(2)), 0), ((node(1), Q, ox.Literal(1)), 1)):
        event = Event("urn:s", TIME, 0, (fact,))
        for number in (0, 1):
            assert len(found.rows(event, number)[0]) == count


def test_a_search_visits_each_node_once() -> None:
    """Twenty layers of two nodes have a million ways through them, and 76 links."""
    layers = [
        (node(2 * n + i), P, node(2 * n + 2 + j)) for n in range(20) for i in (0, 1) for j in (0, 1)
    ]
    run = compile_queries(
        f"""PREFIX : <{EX}> SELECT ?b WITHIN 10 SECONDS FROM STREAM s :s
        WHERE {{ SEQ(A) DEFINE GPM A ON s {{ :n0 :p+ ?b }} }}"""
    ).start(max_steps=100)
    assert len(run.push(EX + "s", 1, layers)) == 40


def test_steps_of_a_search_are_bounded() -> None:
    text = f"""PREFIX : <{EX}> SELECT ?b WITHIN 10 SECONDS FROM STREAM s :s
        WHERE {{ SEQ(A) DEFINE GPM A ON s {{ ?a :p+ ?b }} }}"""
    ring = [(node(n), P, node((n + 1) % 100)) for n in range(100)]
    assert len(compile_queries(text).start(max_steps=20_000).push(EX + "s", 1, ring)) == 10_000
    with pytest.raises(LimitExceeded, match="GPM A"):
        compile_queries(text).start(max_steps=10_000).push(EX + "s", 1, ring)


def test_the_plan_shows_the_search() -> None:
    pattern = compile_pattern(
        compile_gpm(parse_pattern("{ ?a :p ?b ; :q*/:p ?c }", {"": EX}), None, None)
    )
    assert pattern.native is not None
    assert isinstance(pattern.native.root, algebra.Reach)
    assert [line.split("  ")[0] for line in plan_lines(pattern)] == [
        f"match ?a <{EX}p> ?b",
        f"search ?a <{EX}q>*/<{EX}p> ?c",
    ]
