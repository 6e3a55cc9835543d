"""Events reach the queries whose constants they satisfy: no fewer, and few others.

Drawn filters compare the value of an event with drawn constants of all numeric datatypes, strings,
IRIs, dates and booleans. Each query of a set in the compiled loop must have the matches that it has
where each event is handed to each query. `SPASEQ_EXAMPLES` is the number of sets (default 20),
`SPASEQ_SEED` the first.
"""

from __future__ import annotations

import os
import random

import pyoxigraph as ox
import pytest
from core_runs import SECOND, encoded, event
from engine_runs import EX, S, text
from oracle import comparable, timestamp

import spaseq
from spaseq.rdf.event import NUMBER, Event
from spaseq.rules import VARIABLE
from spaseq.runs import Run

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "20"))
SEED = int(os.environ.get("SPASEQ_SEED", "0"))
XSD = "http://www.w3.org/2001/XMLSchema#"

NUMBERS = (
    "0", "-0", "1", "7", "-3", "+4", "007", "100", "2147483647", "9007199254740993",
    "9007199254740992", "16777216", "16777217", "16777218", "-16777217", "9223372036854775807",
    "9223372036854775808", "100000000000000000000000000000",
    "340282356779733661637539395458142568448",
)  # fmt: skip
DECIMALS = (
    "0.1", "1.0", "1.5", "-0.0", "7.00", "100.25", "0.10000000149011612", "16777216.5",
    "0.1000000000000000055511151231257827", "9007199254740992.5", "3.4028235677973366e38",
)  # fmt: skip
REALS = (*NUMBERS, *DECIMALS, "1e0", "7E0", "1e-46", "1e39", "INF", "-INF", "NaN", "3.4028235e38")
INTEGERS = ("integer", "long", "int", "short", "byte", "unsignedInt", "nonNegativeInteger")
OTHERS = (
    '"a"', '"b"', '"a"@en', '"a"@EN', '"7"', '"7"^^:unknown', ":a", ":b",
    f'"true"^^<{XSD}boolean>', f'"1"^^<{XSD}boolean>', f'"x"^^<{XSD}integer>',
    f'"2026-01-01T00:00:00Z"^^<{XSD}dateTime>', f'"2026-01-01T01:00:00+01:00"^^<{XSD}dateTime>',
)  # fmt: skip


def literal(chance: random.Random) -> str:
    """A constant, as it is written in a query."""
    kind = chance.random()
    if kind < 0.25:
        return f'"{chance.choice(NUMBERS)}"^^<{XSD}{chance.choice(INTEGERS)}>'
    if kind < 0.4:
        return f'"{chance.choice((*NUMBERS, *DECIMALS))}"^^<{XSD}decimal>'
    if kind < 0.7:
        return f'"{chance.choice(REALS)}"^^<{XSD}{chance.choice(("double", "float"))}>'
    if kind < 0.75:
        return f"- {chance.choice(('7', '1.5', '0.1'))}"
    return chance.choice(OTHERS)


def comparison(chance: random.Random) -> str:
    variable = chance.choice(("?x", "?x", "?x", "?y", "?k"))
    operator = chance.choice(("<", "<=", ">", ">=", "=", "=", "!="))
    sides = [variable, literal(chance)]
    if variable == "?k":
        sides[1], operator = f":k{chance.randrange(3)}", chance.choice(("=", "!="))
    if chance.random() < 0.3:
        sides.reverse()
    if chance.random() < 0.1:
        return f"sameTerm({', '.join(sides)})"
    if chance.random() < 0.1:
        return f"{variable} IN ({literal(chance)}, {literal(chance)})"
    return f"{sides[0]} {operator} {sides[1]}"


def condition(chance: random.Random) -> str:
    kind = chance.random()
    if kind < 0.5:
        return comparison(chance)
    if kind < 0.7:
        return f"{comparison(chance)} && {comparison(chance)}"
    if kind < 0.9:
        return f"{comparison(chance)} || {comparison(chance)}"
    return f"!({comparison(chance)})"


def pattern(chance: random.Random) -> str:
    """A graph pattern with a filter somewhere in it."""
    test = f"FILTER({condition(chance)})"
    return chance.choice(
        (
            f"{{ ?k :a ?x {test} }}",
            f"{{ ?k :a ?x ; :b ?y {test} }}",
            f"{{ ?k :a ?x OPTIONAL {{ ?k :b ?y {test} }} }}",
            f"{{ ?k :a ?x OPTIONAL {{ ?k :b ?y }} {test} }}",
            f"{{ {{ ?k :a ?x {test} }} UNION {{ ?k :b ?x }} }}",
            f"{{ {{ ?k :a ?x }} UNION {{ ?k :b ?x }} {test} }}",
            f"{{ ?k :a ?x MINUS {{ ?k :b ?y {test} }} }}",
            f"{{ ?k (:a|:b) ?x {test} }}",
            f"{{ ?k :a ?x {{ SELECT ?x (COUNT(?o) AS ?y) {{ ?o :b ?x }} GROUP BY ?x }} {test} }}",
            f"{{ ?k :a ?x FILTER EXISTS {{ ?k :b ?y {test} }} }}",
            f"{{ ?k :a ?v BIND(?v AS ?x) {test} }}",
        )
    )


SEQUENCES = ("SEQ(A)", "SEQ(A)", "SEQ(A ; B)", "SEQ(A : B)", "SEQ(A , B)", "SEQ(A ; !B)", "SEQ(A+)")


def query(chance: random.Random) -> str:
    seq = chance.choice(SEQUENCES)
    gpms = f"DEFINE GPM A ON s {pattern(chance)}"
    if "B" in seq:
        gpms += f" DEFINE GPM B ON s {pattern(chance).replace('?x', '?u').replace('?y', '?w')}"
    return text(seq, gpms)


def events(chance: random.Random, count: int) -> list[Event]:
    """Events of one or two values, which other queries compare with."""
    found = []
    for number in range(count):
        value = literal(chance)
        while value.startswith("-"):
            value = literal(chance)
        facts = f":k{chance.randrange(3)} :{chance.choice('aab')} {value} ."
        if chance.random() < 0.4:
            facts += f" :k{chance.randrange(3)} :{chance.choice('ab')} {literal(chance)} ."
        parsed = ox.parse(f"@prefix : <{EX}> . {facts}".replace("- ", "-"), ox.RdfFormat.TURTLE)
        triples = [(quad.subject, quad.predicate, quad.object) for quad in parsed]
        found.append(Event(S, timestamp(number * SECOND, NUMBER), 0, triples))
    return found


@pytest.mark.parametrize("seed", range(SEED, SEED + EXAMPLES))
def test_constants_exclude_no_query_that_an_event_concerns(seed: int) -> None:
    chance = random.Random(seed)
    program = spaseq.compile([query(chance) for _ in range(chance.choice((5, 20, 60)))])
    some = events(chance, 40)
    run, other = program.start(), program.start()
    other.evaluation.multi = lambda: None  # type: ignore[method-assign]
    found = list(run.push_batch(encoded(run, some)))
    found += run.finish()
    wanted = [*other.push_batch(some), *other.finish()]
    assert [match.query for match in found] == [match.query for match in wanted]
    assert comparable(found) == comparable(wanted)


def touches(run: Run) -> int:
    loop = run.evaluation.multi()
    assert loop is not None
    return loop.driver.touches


def alerts(*conditions: str) -> spaseq.Program:
    return spaseq.compile(
        [text("SEQ(A)", f"DEFINE GPM A ON s {{ ?k :a ?x FILTER({one}) }}") for one in conditions]
    )


def test_equal_constants_select_queries() -> None:
    run = alerts(*(f"?x = :v{n}" for n in range(200)), *(f"?k = :k{n}" for n in range(200))).start()
    some = [event(n * SECOND, "a", f"k{n}", f"v{199 - n}") for n in range(200)]
    assert len(list(run.push_batch(encoded(run, some)))) == 400
    assert touches(run) == 400


def test_equal_numbers_select_queries_across_datatypes() -> None:
    constants = [f'"{n}.0"^^<{XSD}{("double", "decimal", "float")[n % 3]}>' for n in range(300)]
    run = alerts(*(f"?x = {one}" for one in constants)).start()
    some = [event(n * SECOND, "a", "k", n) for n in range(300)]
    assert len(list(run.push_batch(encoded(run, some)))) == 300
    assert touches(run) == 300


@pytest.mark.parametrize(
    ("template", "holds"),
    [
        ("?x > {n}", lambda x, n: x > n),
        ("{n} >= ?x", lambda x, n: x <= n),
        ("?x >= {n} && ?x < {n} + 0 && ?x <= {m}", lambda x, n: False),
        ("?x > {n} && ?x <= {m}", lambda x, n: n < x <= n + 5),
        ("?x > {n}) FILTER({m} >= ?x", lambda x, n: n < x <= n + 5),
    ],
)
def test_ranges_select_queries(template: str, holds: object) -> None:
    run = alerts(*(template.format(n=n, m=n + 5) for n in range(100))).start(share=False)
    some = [event(n * SECOND, "a", "k", n) for n in range(100)]
    found = list(run.push_batch(encoded(run, some)))
    wanted = sum(holds(x, n) for x in range(100) for n in range(100))  # type: ignore[operator]
    assert len(found) == wanted
    # The ends of an interval count as inside.
    assert wanted <= touches(run) <= wanted + 600


def test_a_conjunction_with_a_condition_on_other_steps_selects_by_its_own_part() -> None:
    gpms = (
        "DEFINE GPM A ON s {{ ?k :a ?x FILTER(?x = {n}) }} "
        "DEFINE GPM B ON s {{ ?k :b ?y FILTER(?y >= ?x && ?y < {n} + 1 && ?y < {m}) }}"
    )
    run = spaseq.compile([text("SEQ(A ; B)", gpms.format(n=n, m=n + 1)) for n in range(50)]).start()
    some = [event(t * SECOND, "ab"[t % 2], "k", t // 2) for t in range(100)]
    assert len(list(run.push_batch(encoded(run, some)))) == 50
    # Besides its own query, a `b` reaches the one before it, whose upper bound it equals.
    assert touches(run) <= 150


def test_the_rarest_constant_of_a_pattern_selects() -> None:
    run = alerts(*(f"?x > {n % 2} && ?k = :k{n}" for n in range(100))).start()
    some = [event(n * SECOND, "a", f"k{n}", 5) for n in range(100)]
    assert len(list(run.push_batch(encoded(run, some)))) == 100
    assert touches(run) == 100


def test_the_rule_can_be_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "constant_dispatch")
    run = alerts(*(f"?x = {n}" for n in range(20))).start()
    some = [event(n * SECOND, "a", "k", n) for n in range(20)]
    assert len(list(run.push_batch(encoded(run, some)))) == 20
    assert touches(run) == 400


def test_a_report_says_which_events_it_does_not_count() -> None:
    run = alerts("?x > 50", "?x > 60").start()
    list(run.push_batch(encoded(run, [event(n * SECOND, "a", "k", n) for n in range(10)])))
    report = run.why_not("query1")
    assert "has no solution that its constants allow in 10 events it was tried on" in report
    plan = run.explain()
    assert "reached by events with 60 <= :a\n" in plan
