"""Queries on the compiled core with patterns and filters that run in Python."""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest
from core_runs import Taken, batches, encoded, in_python, native
from engine_runs import AB, EX, S, program, push, shown, text, triples

import spaseq
from spaseq.errors import LimitExceeded, RunFailed
from spaseq.rdf.event import NUMBER, Event, Timestamp

SEARCHED = """DEFINE GPM A ON s { { SELECT ?k ?x { ?k :a ?x } LIMIT 999 } }
    DEFINE GPM B ON s { ?k :b ?y }"""
NOT_NATIVE = "BIND(1 AS ?one)"
"""Inside EXISTS, it leaves the filter to Python."""
TESTED = """
    DEFINE GPM A ON s { ?k :a ?x FILTER(REPLACE(STR(?x), "1|^$", "0") = "0") }
    DEFINE GPM B ON s { ?k :b ?y FILTER(?y < 9) }
"""
COMPUTED = """
    DEFINE GPM A ON s { ?k :a ?x }
    DEFINE GPM B ON s { ?k :b ?y FILTER(REPLACE(STR(?y), "1|^$", "0") = STR(?x)) }
"""
ASKED = """
    DEFINE GPM A ON s { ?k :a ?x }
    DEFINE GPM B ON s { ?k :b ?y FILTER NOT EXISTS { ?k :c ?z FILTER(?z > ?x) } }
"""
PARTS = {
    "a sub-query": SEARCHED,
    "a local filter": TESTED,
    "a filter": COMPUTED,
    "a BIND in EXISTS": ASKED.replace(":c ?z", f":c ?z {NOT_NATIVE}"),
    "nothing": ASKED,
}


def stream(seed: int, length: int = 80) -> list[Event]:
    chance = random.Random(seed)
    events = []
    for now in range(length):
        facts = [
            f"{chance.choice('klm')} {chance.choice('abc')} {chance.choice(('k', 'l', 0, 1, 2))}"
            for _ in range(chance.randrange(4))
        ]
        found = [(t.subject, t.predicate, t.object) for t in triples(", ".join(facts))]
        time = Timestamp(now * 1_000_000, NUMBER, ox.Literal(now))
        events.append(Event(S, time, 0, tuple(dict.fromkeys(found))))
    return events


@pytest.mark.parametrize("part", PARTS)
def test_the_core_takes_batches_and_asks_python(part: str) -> None:
    of = program(AB, PARTS[part])
    (said,) = of.to_dict()["queries"]
    left = any(about["left_to_python"] for about in (*said["gpms"], *said["steps"]))
    assert left == (part != "nothing")
    run, plain = of.start(), in_python(of)
    native(run)
    taken, total = Taken(run), 0
    for some in batches(stream(1), random.Random(1)):
        ours = list(run.push_batch(encoded(run, some)))
        assert shown(ours) == shown(plain.push_batch(some))
        total += len(ours)
    assert total > 5
    assert taken.events == 80


@pytest.mark.parametrize("more", ["", NOT_NATIVE], ids=["native", "python"])
def test_exists_looks_at_the_event_that_is_tested(more: str) -> None:
    """Which is not the one at hand where a conjunction or a guard looks back."""
    gpms = """DEFINE GPM A ON s { ?k :a ?x }
        DEFINE GPM N ON s { ?n :n ?v FILTER(?y > 1) FILTER EXISTS { ?n :of ?k ; :for ?z MORE } }
        DEFINE GPM B ON s { ?k :b ?y FILTER NOT EXISTS { ?k :c ?z MORE } }
        DEFINE GPM C ON s { ?j :c ?z FILTER EXISTS { ?j :d ?y MORE } }"""
    of = program("SEQ(A ; !N ; (B & C))", gpms.replace("MORE", more))
    run = of.start()
    assert push(run, 1, "k a 1, l a 1, m a 1") == []
    assert push(run, 2, "n n 0, n of l, n for 9, n of m, n for 8") == []
    run = of.resume(run.save())
    assert push(run, 3, "k b 5, l b 5, m b 6, m c 9, p d 5") == []
    run = of.resume(run.save())
    # k: not forbidden; l: forbidden by n; m: its own event says `m c 9`.
    facts = triples("j c 9, j d 5, i c 9, i d 6, m d 6")
    (match,) = run.push(S, 3, facts)
    assert match.bindings["k"] == ox.NamedNode(EX + "k")


def test_events_are_kept_for_filters_no_longer_than_the_window() -> None:
    run = program(
        "SEQ(A & B)",
        """DEFINE GPM A ON s { ?k :a ?x FILTER EXISTS { ?k :c ?y } }
           DEFINE GPM B ON s { ?j :b ?y }""",
    ).start()
    recalls = native(run).step.recalls
    for now in range(100):
        push(run, now, f"k a {now}, k c {now}")
        assert len(recalls) <= 11
    assert push(run, 99, "j b 99") == ["A@99 B@99"]
    assert len(recalls) == 11


def test_an_event_is_kept_beside_one_that_waited_for_other_streams() -> None:
    run = spaseq.compile(
        f"""PREFIX : <{EX}>
        SELECT ?a ?b WITHIN UNBOUNDED FROM STREAM S :S FROM STREAM T :T
        WHERE {{ SEQ(A AND B)
          DEFINE GPM A ON S {{ [] :a ?a }}
          DEFINE GPM B ON T {{ [] :b ?b FILTER EXISTS {{ [] :r ?a }} }} }}"""
    ).start()
    found = []
    # The second event of T at 2 waits until time passes it, with the event at 3.
    for stream, time, *pairs in (
        ("T", 2, "b 0"), ("T", 2, "b 1"), ("T", 3, "b 2", "r 7"), ("T", 4, "b 3"), ("S", 8, "a 7"),
    ):  # fmt: skip
        facts = [
            ox.Triple(ox.NamedNode(EX + "x"), ox.NamedNode(EX + name), ox.Literal(int(value)))
            for name, value in map(str.split, pairs)
        ]
        found += run.push(EX + str(stream), time, facts)  # type: ignore[arg-type]
    assert [match.bindings["b"].value for match in (*found, *run.finish())] == ["2"]


def test_events_are_not_kept_where_filters_look_at_those_at_hand() -> None:
    run = program(AB, ASKED).start()
    for now in range(20):
        push(run, now, f"k a {now}, k b {now}, k c {now - 1}")
    assert not native(run).step.recalls


def test_what_queries_share_is_evaluated_once() -> None:
    of = spaseq.compile(
        [text(AB, SEARCHED), text("SEQ(A : B)", SEARCHED), text("SEQ(A : B, B)", SEARCHED)]
    )
    run = of.start()
    for now in range(10):
        push(run, now, "k a 1" if now % 2 else "k b 2")
    assert run.rows.matchers.tried(of.queries[0].tasks[0]) == 10


def test_no_event_is_evaluated_before_somebody_asks_for_its_matches() -> None:
    run = program(AB, SEARCHED).start()
    some = [Event(e.stream, e.time, 0, facts) for e, facts in zip(stream(0, 9), FACTS, strict=True)]
    matches = iter(run.push_batch(encoded(run, some)))
    tried = run.rows.matchers.tried
    assert tried(0) == 0
    for asked in (2, 4, 6):
        next(matches)
        assert tried(0) == asked
    assert len(list(matches)) == 1


FACTS = [
    tuple((t.subject, t.predicate, t.object) for t in triples(facts))
    for facts in ("k a 1", "k b 1", "k a 2", "k b 2", "k a 3", "k b 3", "k a 4", "k b 4", "")
]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("RAND() < 1.5 && ?y > ?x", 1),
        ("RAND() > 1.5 || ?y < ?x", 0),
        ("NOW() > '2020-01-01T00:00:00Z'^^xsd:dateTime && ?x != ?y", 1),
        ("STRLEN(STRUUID()) = 36 && ISIRI(UUID()) && ?x != ?y", 1),
        ("REPLACE(?x, 'a|^$', 'b') = ?y", 0),
        ("!BOUND(?none) && REPLACE(STR(?x), '1|^$', '2') = STR(?y)", 1),
        ("REPLACE(STR(?x), ?none, '2') = STR(?y)", 0),
    ],
)
def test_functions_that_differ_from_call_to_call_or_are_left_to_pyoxigraph(
    condition: str, found: int
) -> None:
    gpms = f"""DEFINE GPM A ON s {{ ?k :a ?x }}
        DEFINE GPM B ON s {{ ?k :b ?y OPTIONAL {{ ?k :c ?none }} FILTER({condition}) }}"""
    run = program(AB, gpms).start()
    native(run)
    push(run, 1, "k a 1")
    assert len(push(run, 2, "k b 2")) == found
    assert native(run).step.untrue_counts(1) == [1 - found]


def test_rows_of_python_may_leave_variables_unbound_and_hold_blank_nodes() -> None:
    gpms = """DEFINE GPM A ON s { { SELECT ?k ?x { ?k :a ?x } LIMIT 999 } OPTIONAL { ?x :c ?z } }
        DEFINE GPM B ON s { ?k :b* ?y FILTER(ISBLANK(?y)) }"""
    run = program(AB, gpms).start()
    native(run)
    blank = ox.BlankNode("b")
    k, a, b = (ox.NamedNode(EX + name) for name in "kab")
    run.push(S, 1, [ox.Triple(k, a, blank)])
    (match,) = run.push(S, 2, [ox.Triple(k, b, blank)])
    assert {name: str(term)[:2] for name, term in match.bindings.items()} == {
        "k": "<h",
        "x": "_:",
        "y": "_:",
    }


def test_partitions_see_all_rows_of_a_pattern_in_python() -> None:
    """Those that its filters leave out, too: for `,` they come between."""
    gpms = """DEFINE GPM A ON s { ?k :a ?x }
        DEFINE GPM B ON s { { SELECT ?k ?y { ?k :b ?y } LIMIT 999 }
            FILTER(REPLACE(STR(?y), "0|^$", "") != "") }"""
    run = program("SEQ(A , B)", gpms, clauses="WITHIN 10 SECONDS PARTITION BY ?k").start()
    native(run)
    for now, facts in enumerate(("k a 1, l a 1", "k b 0, l c 0", "k b 1, l b 1")):
        found = push(run, now, facts)
    assert found == ["A@0 B@2"]


@pytest.mark.parametrize("shed", [False, True])
def test_bounds_hold_for_rows_of_python(shed: bool) -> None:
    gpms = """DEFINE GPM A ON s { { SELECT ?k ?x { ?k :a ?x } LIMIT 999 } }
        DEFINE GPM B ON s { ?j :b ?y FILTER(REPLACE(STR(?y), "z|^$", "") != STR(?x)) }"""
    run = program("SEQ(A : B)", gpms).start(max_steps=4, on_limit="shed" if shed else "stop")
    native(run)
    push(run, 1, ", ".join(f"k a {n}" for n in range(4)))
    push(run, 2, ", ".join(f"k a {n}" for n in range(4, 8)))
    if shed:
        assert push(run, 3, "j b 9") == ["A@2 B@3"] * 4
    else:
        with pytest.raises(LimitExceeded, match="max-steps"):
            push(run, 3, "j b 9")
        with pytest.raises(RunFailed):
            push(run, 4, "j b 9")


GRAPHS = {
    "pattern": "DEFINE GPM A ON s { ?k :a ?x GRAPH :kb { ?k :in+ ?r } } "
    "DEFINE GPM B ON s { ?k :b+ ?y GRAPH :kb { ?k :in ?r } }",
    "EXISTS": "DEFINE GPM A ON s { ?k :a ?x } "
    "DEFINE GPM B ON s { ?k :b ?y FILTER EXISTS { GRAPH :kb { ?k :in ?r . ?x :is ?r } } }",
}


@pytest.mark.parametrize("gpms", GRAPHS.values(), ids=GRAPHS)
def test_a_knowledge_base_that_changes(gpms: str) -> None:
    def facts(room: str) -> list[ox.Triple]:
        return triples(f"k in {room}, x is r")

    run = program("SEQ(A : B)", gpms).start(kb={EX + "kb": facts("r")})
    native(run)
    assert push(run, 1, "k a x") == []
    assert push(run, 2, "k b 1") == ["A@1 B@2"]
    run.kb.replace({EX + "kb": facts("o")})
    assert push(run, 3, "k b 2") == []
    run.kb.replace({EX + "kb": facts("r")})
    assert push(run, 4, "k b 3") == ["A@1 B@4"]


@pytest.mark.parametrize("seq", ["A ; B", "A & B"])
@pytest.mark.parametrize("more", ["", NOT_NATIVE], ids=["native", "python"])
def test_entailment_reaches_paths_and_exists(more: str, seq: str) -> None:
    schema = [
        ox.Triple(
            ox.NamedNode(EX + "a1"),
            ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#subPropertyOf"),
            ox.NamedNode(EX + "a"),
        )
    ]
    gpms = f"""DEFINE GPM A ON s {{ ?k :a+ ?x }}
        DEFINE GPM B ON s {{ ?k :b ?y FILTER EXISTS {{ ?x :a ?z {more} }} }}"""
    run = program(f"SEQ({seq})", gpms).start(kb={EX + "kb": schema}, entail="rdfs")
    native(run)
    found = push(run, 1, "k a1 l, l a m")
    for facts in ("k b 1, m a1 0", "n a 0"):
        found += push(run, 1, facts)
    assert found == ["A@1 B@1"]
