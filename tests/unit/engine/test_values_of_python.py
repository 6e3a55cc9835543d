"""BINDs that the compiled core asks Python for, and windows that count for one query alone."""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest
from core_runs import batches, encoded, in_python, native
from engine_runs import AB, EX, S, program, push, shown, text
from test_left_to_python import stream

import spaseq

EVENTS = "WITHIN 3 EVENTS"


def named(name: str) -> ox.NamedNode:
    return ox.NamedNode(EX + name)


def with_b(body: str) -> str:
    return text(AB, f"DEFINE GPM A ON s {{ ?k :a ?x }} DEFINE GPM B ON s {{ {body} }}")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "?k :b ?y BIND(REPLACE(STR(?x), '1|^$', '2') AS ?z)",
            'REPLACE with "1|^$" is left to pyoxigraph',
        ),
        (
            "?k :b ?y BIND(IF(EXISTS { ?j :c ?x }, ?x, 1) AS ?z)",
            "EXISTS in a BIND that needs a partial match",
        ),
        ("?k :b ?y BIND(?x + 1 AS ?z)", None),
    ],
)
def test_what_is_said_of_binds_over_a_partial_match(body: str, reason: str | None) -> None:
    (query,) = spaseq.compile(with_b(body)).to_dict()["queries"]
    assert query["steps"][1]["left_to_python"] == ([] if reason is None else [reason])


def test_a_value_of_python_joins_and_is_shown() -> None:
    of = program(
        "SEQ(A ; B ; C)",
        """DEFINE GPM A ON s { ?k :a ?x }
           DEFINE GPM B ON s { ?k :b ?y BIND(REPLACE(STR(?x), "1|^$", "2") AS ?z) }
           DEFINE GPM C ON s { ?k :c ?z }""",
    )
    run = of.start()
    push(run, 1, "k a 1, l a 3")
    push(run, 2, "k b 5, l b 5")
    run = of.resume(run.save())
    facts = [ox.Triple(named(key), named("c"), ox.Literal("2")) for key in "kl"]
    (match,) = run.push(S, 3, facts)
    assert match.bindings["k"] == named("k")
    assert match.bindings["z"] == ox.Literal("2")


def test_a_value_that_fails_is_unbound_and_one_that_disagrees_joins_nothing() -> None:
    gpms = """DEFINE GPM A ON s { ?k :a ?x ; :z ?z }
        DEFINE GPM B ON s { ?k :b ?y BIND(REPLACE(?x, "1|^$", "2") AS ?z) }"""
    run = program(AB, gpms).start()
    for key, value in (("k", ox.Literal(1)), ("l", ox.Literal("1")), ("m", ox.Literal("2"))):
        facts = [(named(key), named("a"), value), (named(key), named("z"), ox.Literal("2"))]
        run.push(S, 1, [ox.Triple(*fact) for fact in facts])
    # Of a number there is no value, so it joins; "1" becomes what :z is, and so does "2".
    assert len(push(run, 2, "k b 1, l b 1, m b 1")) == 3
    facts = [(named("n"), named("a"), ox.Literal("3")), (named("n"), named("z"), ox.Literal("2"))]
    run.push(S, 4, [ox.Triple(*fact) for fact in facts])
    assert push(run, 5, "n b 1") == []


def test_exists_in_a_bind_looks_at_the_event_of_its_row() -> None:
    """Which is not the one at hand where a conjunction looks back."""
    of = program(
        "SEQ(A ; (B & C))",
        """DEFINE GPM A ON s { ?k :a ?x }
           DEFINE GPM B ON s { ?k :b ?y BIND(IF(EXISTS { ?j :d ?x }, "there", "not") AS ?z) }
           DEFINE GPM C ON s { ?i :c [] }""",
    )
    run = of.start()
    push(run, 1, "k a 1")
    push(run, 2, "k b 5, j d 1")
    run = of.resume(run.save())
    (match,) = run.push(S, 2, [ox.Triple(named("i"), named("c"), ox.Literal(1))])
    assert match.bindings["z"] == ox.Literal("there")
    recalls = native(run).step.recalls
    assert len(recalls) == 1
    push(run, 20, "k b 5")
    assert len(recalls) == 1


OTHER = text(
    gpms="DEFINE GPM A ON r { ?k :a ?x } DEFINE GPM B ON r { ?k :b ?y }",
    clauses=EVENTS,
    streams=f"FROM STREAM r <{EX}r>",
)


@pytest.mark.parametrize(
    "queries",
    [
        (text(clauses=EVENTS), text("SEQ(A : B)", clauses="WITHIN 9 EVENTS")),
        (text(clauses=EVENTS), text()),
        (text("SEQ(A : B)"), text("SEQ(A : B)", clauses="WITHIN 9 EVENTS"), text(clauses=EVENTS)),
        (text(clauses="WITHIN UNBOUNDED"), text(clauses=EVENTS)),
        (text("SEQ(A : B)", clauses=EVENTS), OTHER),
    ],
)
def test_windows_that_count_events_beside_any_others(queries: tuple[str, ...]) -> None:
    """With terms that come once, and a query that reads another stream than the others."""
    of = spaseq.compile(list(queries))
    run, plain = of.start(), in_python(of)
    chance = random.Random(1)
    found = 0
    for time in range(300):
        stream = chance.choice("sr") if f"<{EX}r>" in queries[-1] else "s"
        facts = f"k{time // 3} {chance.choice('ab')} {time}, m a {time - 1}, m b {time}"
        ours = push(run, time, facts, EX + stream)
        assert ours == push(plain, time, facts, EX + stream)
        found += len(ours)
        if chance.random() < 0.1:
            run = of.resume(run.save())
    assert found > 200


def test_the_terms_of_a_window_that_counts_for_one_query_alone_go_with_it() -> None:
    run = spaseq.compile([text(clauses="WITHIN 20 EVENTS"), text()]).start()
    held = []
    counted = next(q.native for q in run.queries if q.plan.window.kind == "events")
    assert counted is not None
    for time in range(4_000):
        push(run, time, f"k{time} a {time}")
        held.append(counted.step.window.bytes)
    assert max(held[2_000:]) <= max(held[:2_000])


def test_encoded_batches_of_a_program_whose_windows_differ() -> None:
    of = spaseq.compile([text("SEQ(A : B)", clauses="WITHIN 9 EVENTS"), text()])
    run, plain = of.start(), in_python(of)
    some = stream(2)
    for part in batches(some, random.Random(2)):
        assert shown(run.push_batch(encoded(run, part))) == shown(plain.push_batch(part))
