"""Events of encoded batches that no pattern reads: their predicates alone decide that."""

from __future__ import annotations

from collections.abc import Sequence

import pyoxigraph as ox
import pytest
from core_runs import encoded
from engine_runs import S, program, push, shown, triples

import spaseq
from spaseq.rdf.event import NUMBER, Event, Timestamp

INTEGER = ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer")


def events(*facts: str) -> list[Event]:
    """An event for each text of triples, a second after the one before."""
    return [
        Event(
            S,
            Timestamp(seconds * 1_000_000, NUMBER, ox.Literal(str(seconds), datatype=INTEGER)),
            0,
            [(t.subject, t.predicate, t.object) for t in triples(text)],
        )
        for seconds, text in enumerate(facts, 1)
    ]


def both_ways(compiled: spaseq.Program, facts: Sequence[str]) -> tuple[list[str], list[str]]:
    """The matches of a batch, and of the same events pushed one by one, those alike once."""
    run, single = compiled.start(), compiled.start()
    batch = shown(run.push_batch(encoded(run, events(*facts))))
    alone = [match for now, some in enumerate(facts, 1) for match in push(single, now, some)]
    return sorted(set(batch)), sorted(set(alone))


@pytest.mark.parametrize("more", ["", "?k ?any ?value . "], ids=["given", "any"])
def test_predicates_are_told_apart_however_many_there_are(more: str) -> None:
    names = [f"p{number}" for number in range(1, 140)]
    full = more + " . ".join(f"?k :{name} ?{name}" for name in names)
    compiled = program(
        "SEQ(A ; B)", f"DEFINE GPM A ON s {{ ?k :p1 ?x }} DEFINE GPM B ON s {{ {full} }}"
    )
    everything = ", ".join(f"k {name} 1" for name in names)
    for other in ("p64", "p65", "p128", "p129"):
        assert both_ways(compiled, [f"k {other} 7", "k p2 1", everything]) == ([], [])
    assert both_ways(compiled, ["k p1 7", "k p2 1", everything]) == (["A@1 B@3"], ["A@1 B@3"])


@pytest.mark.parametrize("count", [3, 63, 64, 65, 130])
def test_events_of_one_triple_find_their_reader_however_many_there_are(count: int) -> None:
    names = [f"p{number}" for number in range(count)]
    compiled = program(
        f"SEQ(A ; ({' | '.join(names).upper()}))",
        "DEFINE GPM A ON s { ?k :a ?x } "
        + " ".join(f"DEFINE GPM {name.upper()} ON s {{ ?k :{name} ?{name} }}" for name in names),
    )
    for name in (names[0], names[-2], names[-1]):
        facts = [f"k {name} 1", "k a 1", "k other 1", "j " + name + " 1", f"k {name} 2"]
        expected = [f"A@2 {name.upper()}@5"]
        assert both_ways(compiled, facts) == (expected, expected)
        # The same where the event says more.
        facts[-1] += ", k other 3"
        assert both_ways(compiled, facts) == (expected, expected)


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        ("?x :p ?y", "k p 1", "k q 1"),
        ("?x :p ?x", "k p k", "k p j"),
        (":k :p ?y", "k p 1", "j p 1"),
        ("?x :p 1", "k p 1", "k p 2"),
        ("[] :p []", "k p 1", "k q 1"),
        ("?x :p ?y FILTER(?y > 3)", "k p 4", "k p 3"),
        ("?x :p ?y BIND(?y + 1 AS ?z) FILTER(?z > 4)", "k p 4", "k p 3"),
    ],
)
def test_one_triple_is_matched_as_in_any_graph(pattern: str, fits: str, fails: str) -> None:
    compiled = program(
        "SEQ(A ; B)", f"DEFINE GPM A ON s {{ {pattern} }} DEFINE GPM B ON s {{ ?b :end ?e }}"
    )
    facts = [fails, fits, fits, fails, "k end 1", fails, fits + ", k more 1", "k end 1", "k end 2"]
    expected = ["A@2 B@5", "A@3 B@5", "A@7 B@8"]
    assert both_ways(compiled, facts) == (expected, expected)


def test_an_event_counts_once_for_patterns_that_are_alike() -> None:
    compiled = program(
        "SEQ(A ; B ; C)",
        "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?j :a ?y } "
        "DEFINE GPM C ON s { ?i :c ?z }",
    )
    first, second, _ = compiled.queries[0].tasks
    assert first == second
    run = compiled.start()
    assert list(run.push_batch(encoded(run, events("k a 1", "k b 1", "k b 1", "k c 1")))) == []
    assert run.rows.matchers.tried(first) == 4
    assert "arrived while no partial match was waiting" in run.why_not()


def test_a_guarded_unit_without_variables_may_begin_often() -> None:
    compiled = program(
        "SEQ(A ; !(B ; C) ; D)",
        " ".join(f"DEFINE GPM {name.upper()} ON s {{ :k :{name} 1 }}" for name in "abcd"),
        clauses="WITHIN 1000 SECONDS",
    )
    facts = ["k a 1", *["k b 1"] * 60, "k d 1"]
    assert both_ways(compiled, facts) == (["A@1 D@62"], ["A@1 D@62"])
    assert both_ways(compiled, [*facts[:-1], "k c 1", "k d 1"]) == ([], [])
