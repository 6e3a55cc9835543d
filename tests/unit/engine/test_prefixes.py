"""Queries whose sequences begin alike, evaluated as one.

Drawn sets of such queries have the matches of runs of one query each, as those of test_templates.
`SPASEQ_EXAMPLES` is the number of cases, `SPASEQ_SEED` the first.
"""

from __future__ import annotations

import os
import random

import pyoxigraph as ox
import pytest
from oracle import comparable, difference, evaluate
from test_changes import events, query
from test_templates import EX, S, alerts, check_against_runs_of_one_query, gpm, triple

import spaseq
from spaseq.engine.envelope import seal, unseal
from spaseq.errors import StateError
from spaseq.plan import prefixes

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "30"))
SEED = int(os.environ.get("SPASEQ_SEED", "0"))

BEGINNINGS = (
    ("A", {"A": "?x :p ?v"}),
    ("A ; B", {"A": "?x :p ?v", "B": "?x :q ?w"}),
    ("A : B", {"A": "?x :p ?v", "B": "?y :p ?w FILTER(?w > ?v)"}),
    ("A , B", {"A": "?x :p ?v FILTER(?v > 0)", "B": "?x :p ?w"}),
    ("A ; !N ; B", {"A": "?x :p ?v", "N": "?x :q ?n FILTER(?n > ?w)", "B": "?x :p ?w"}),
    ("A ; B ; !N", {"A": "?x :p ?v", "N": "?x :q ?n FILTER(?n > ?v)", "B": "?x :p ?w"}),
    ("A : M+", {"A": "?x :p ?v", "M": "?y :q ?m FILTER(?m > PREV(?m, -1))"}),
    ("A ; M{2} ; B", {"A": "?x :p ?v", "M": "?y :q ?m", "B": "?x :p ?w"}),
    ("A ; M? : B", {"A": "?x :p ?v", "M": "?x :q ?m", "B": "?y :p ?w"}),
    ("(A | B)", {"A": "?x :p 1 ; :p ?v", "B": "?x :q ?v"}),
)
"""Sequences with the graph patterns of their steps."""
ENDS = (
    ("; C", {"C": "?x :p ?c"}),
    ("; C", {"C": "?x :q ?c"}),
    ("; C", {"C": "?x :p ?c FILTER(?c >= ?v)"}),
    (": C", {"C": "?y :q ?c FILTER(?c < ?v)"}),
    (": C", {"C": "?x :p ?c"}),
    (", C", {"C": "?z :p ?c"}),
    (", C", {"C": "?x :q ?c"}),
    ("; C : D", {"C": "?x :p ?c", "D": "?x :q ?d"}),
    ("; C ; D", {"C": "?x :p ?c", "D": "?x :p ?d"}),
    ("; C ; C", {"C": "?x :p ?c"}),
    ("; C ; A", {"C": "?x :q ?c"}),
    ("; C WITHIN 2 SECONDS", {"C": "?x :p ?c"}),
    (": (C | D)", {"C": "?x :p ?c", "D": "?z :q ?d FILTER(?d > 2)"}),
    ("; !K ; C", {"K": "?y :q ?k FILTER(?k > ?v)", "C": "?x :p ?c"}),
    ("; !K ; C", {"K": "?x :q ?k FILTER(?k > ?c)", "C": "?x :p ?c"}),
    ("; K? ; C", {"K": "?x :q ?k", "C": "?x :p ?c"}),
    ("; !N ; C", {"C": "?y :p ?c"}),
    (": C+ ; D", {"C": "?x :q ?c", "D": "?x :p ?d"}),
    ("; A", {}),
)
"""What follows; some use graph patterns of the beginning."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefixes, "LEAST", 2)


def continued(draw: random.Random, first: tuple[str, dict[str, str]], window: str) -> str:
    """A query that begins with some steps."""
    sequence, patterns = first
    end, more = draw.choice([one for one in ENDS if "N" in patterns or "N" not in one[0]])
    texts = "".join(gpm(name, pattern) for name, pattern in (patterns | more).items())
    columns = [f"?{name}" for name in "vwc" if f"?{name} " in f"{texts} "]
    select = f"SELECT {' '.join(columns)}" if columns and draw.random() < 0.3 else "SELECT *"
    return query(f"{sequence} {end}", texts, select, window)


@pytest.mark.parametrize("seed", range(SEED, SEED + EXAMPLES))
def test_queries_that_begin_alike_have_the_matches_of_runs_of_one_query(seed: int) -> None:
    draw = random.Random(seed)
    some = draw.sample(BEGINNINGS, draw.randrange(1, 3))
    window = draw.choice(("WITHIN 8 SECONDS", "WITHIN TUMBLING 9 SECONDS", "WITHIN UNBOUNDED"))
    check_against_runs_of_one_query(draw, lambda: continued(draw, draw.choice(some), window))


@pytest.mark.parametrize("seed", range(SEED, SEED + EXAMPLES // 2))
def test_queries_that_begin_alike_have_the_matches_of_the_reference(seed: int) -> None:
    """Also if the run is saved and resumed after each event."""
    draw = random.Random(seed)
    first, window = draw.choice(BEGINNINGS), draw.choice(("WITHIN 8 SECONDS", "WITHIN UNBOUNDED"))
    texts = [continued(draw, first, window) for _ in range(6)]
    names = [f"q{n}" for n in range(len(texts))]
    stream = [event for event in events(draw, 20) if event.stream == S]
    program = spaseq.compile(texts, names=names)
    run, found = program.start(), []
    for event in stream:
        facts = [ox.Triple(*fact) for fact in event.facts]
        found += run.push(S, event.time, facts, event.name)
        if seed % 2:
            run = program.resume(run.save())
    found += run.finish()
    wanted = [
        m
        for text, name in zip(texts, names, strict=True)
        for m in evaluate(text, {S: stream}, name=name)
    ]
    assert difference(comparable(wanted), comparable(found)) == ""


# ------------------------------------------------------------------ single cases

A_B = gpm("A", "?x :p ?v") + gpm("B", "?x :p ?w FILTER(?w > ?v)")


def ending(end: str, more: str, select: str = "SELECT *", **options: str) -> str:
    return query(f"A ; B {end}", A_B + more, select, **options)


def members(run: spaseq.Run) -> list[tuple[tuple[int, ...], ...]]:
    return [each.template.members for each in run.evaluation.listed.divisions.values()]


def rises(run: spaseq.Run) -> None:
    """Begin a partial match with the first two steps."""
    assert run.push(S, 1, triple(0, 1)) == []
    assert run.push(S, 2, triple(0, 2)) == []


def of(user: int, value: int, predicate: str = "q") -> list[ox.Triple]:
    fact = ox.NamedNode(f"{EX}x{user}"), ox.NamedNode(EX + predicate), ox.Literal(value)
    return [ox.Triple(*fact)]


def test_an_event_ends_the_wait_of_its_query_only() -> None:
    higher = [gpm("C", f"?x :q ?u FILTER(?u - {least} > 0)") for least in range(3)]
    run = alerts(*(ending("; C", one) for one in higher), ending(": C", higher[0]))
    assert members(run) == [((0,), (1,), (2,), (3,))]
    rises(run)
    assert [m.query for m in run.push(S, 3, of(0, 1))] == ["q0", "q3"]
    assert [m.query for m in run.push(S, 4, of(0, 2))] == ["q1", "q3"]
    assert [m.query for m in run.push(S, 5, of(0, 3))] == ["q2", "q3"]
    assert [m.query for m in run.push(S, 6, of(0, 3))] == ["q3"]


def test_a_match_shows_what_its_query_selects() -> None:
    run = alerts(
        ending("; C", gpm("C", "?x :q ?u"), "SELECT ?u"),
        ending("; C", gpm("C", "?x :q ?t"), "SELECT ?w ?t"),
        ending("; C", gpm("C", "?x :q ?u"), "SELECT ?x"),
    )
    assert members(run) == [((0, 2), (1,))]
    rises(run)
    found = run.push(S, 3, of(0, 5))
    assert [(m.query, m.values) for m in found] == [
        ("q0", {"u": 5}),
        ("q1", {"w": 2, "t": 5}),
        ("q2", {"x": f"{EX}x0"}),
    ]
    assert [list(witness.bindings) for witness in found[1].events] == [
        ["v", "x"],
        ["w", "x"],
        ["t", "x"],
    ]
    assert {tuple(witness.gpm for witness in m.events) for m in found} == {("A", "B", "C")}
    assert not any('".' in m.to_json() for m in found)


def test_common_steps_cost_what_they_cost_one_query() -> None:
    """The partial matches of common steps, and the groups that rows visit, are those of one run."""

    def work(count: int) -> list[tuple[int, int, int]]:
        ends = [gpm("C", f"?x :q{n} ?u") for n in range(count)]
        run = alerts(*(ending("; C", one) for one in ends))
        for second in range(60):
            run.push(S, second, triple(second % 3, second * 7 % 5))
        (query,) = run.evaluation.queries
        whole = query.counters()
        counters = run.evaluation.listed.queries[0].own_counters(whole) if count > 1 else whole
        common = [place for place in counters.places if not place.place.start][:1]
        made = sum(place.reached for place in whole.places)
        assert made - sum(place.reached for place in common) == count * counters.places[1].reached
        return [(place.reached, place.visited, place.joined) for place in common]

    assert work(1) == work(10) == work(80)
    assert work(1)[0][2] > 10


def test_steps_are_common_as_far_as_they_are_equal() -> None:
    c, d = gpm("C", "?x :q ?c"), gpm("D", "?x :p ?d")
    texts = [
        ending("; C : D", c + d),
        ending("; C ; D", c + d),
        ending(": C", c),
        query("A ; D", A_B.replace("B", "D").replace(":p ?w", ":q ?w")),
        query("A : D", A_B.replace("B", "D")),
        query("A ; C", gpm("A", "?x :q ?v") + c),
    ]
    run = alerts(*texts)
    assert members(run) == [((0,), (1,), (2,), (3,), (4,))]
    (template,) = (each.template for each in run.evaluation.listed.divisions.values())
    assert template.common == [3, 3, 2, 1, 1]
    shown = run.program.to_dict()["queries"]  # type: ignore[attr-defined]
    assert [each["common_steps"] for each in shown] == [3, 3, 2, 1, 1, None]
    explained = run.explain()
    assert "shares     its first 3 steps with q1, q2, q3, q4\n" in explained
    assert "shares     its first step with q0, q1, q2, q4\n" in explained


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (query("A ; B", A_B), "queries that share its steps continue them"),
        (ending("; C", gpm("C", "?x :q ?c"), tail="LIMIT 1"), "it has a LIMIT"),
        (ending("; C", gpm("C", "?x :q ?c FILTER(?t > 1)")), "names a variable that no step binds"),
        (query("A? ; B", A_B), "its first step is its only one, or may be absent"),
        (ending("; B+ : C", gpm("C", "?x :q ?c FILTER(COUNT(B) > 2)")), "it counts the events"),
        (ending(": C+ : D", gpm("C", "?x :q ?c") + gpm("D", "?x :p ?d")), "can double"),
        (ending("; C", gpm("C", "?x :q ?c"), window="WITHIN 9 SECONDS"), None),
        (query("A ; B", A_B, window="WITHIN 9 SECONDS"), None),
    ],
)
def test_other_queries_have_their_own_automata(text: str, reason: str | None) -> None:
    alike = [ending("; C", gpm("C", f"?x :q ?u FILTER(?u - {n} > 0)")) for n in range(16)]
    run = alerts(*alike, text)
    assert members(run) == [tuple((n,) for n in range(16))]
    explained = run.explain().partition("query q16\n")[2]
    if reason is None:
        assert "shares  " not in explained
    else:
        assert "shares     no automaton" in explained
        assert reason in explained


def test_iterations_are_in_one_of_several_branches() -> None:
    """The registers of M differ in what follows, so there would be two iterated steps."""
    patterns = {"A": "?x :p ?v", "M": "?y :q ?m FILTER(?m > PREV(?m, -1))"}
    texts = []
    for sequence, c in (
        ("A ; M+ ; C ; A", "?x :q ?c"),
        ("A ; M+ ; A", ""),
        ("A ; M+ ; C ; C", "?x :p ?c"),
        ("A ; M+ : C", "?x :p ?c"),
        ("A ; M+ : C ; A", "?x :p ?c"),
        ("A : C", "?x :q ?c"),
        ("A ; C", "?x :q ?c"),
    ):
        defined = {name: text for name, text in (patterns | {"C": c}).items() if name in sequence}
        texts.append(query(sequence, "".join(gpm(*each) for each in defined.items())))
    for some in (texts[:4], texts[:5], texts):
        program = spaseq.compile(some)
        run, apart = program.start(), program.start(share=False)
        assert run.evaluation.listed.divisions
        found = []
        for each in (run, apart):
            stream = events(random.Random(3), 60)
            matches = [m for e in stream if e.stream == S for m in each.push(S, e.time, e.facts)]
            found.append([match.to_json() for match in (*matches, *each.finish())])
        assert found[0] == found[1]
        assert found[0]


def test_a_variable_has_one_role_in_a_template() -> None:
    """What iterations bind anew is another variable than one that a later step binds, too."""
    begin, b = "A ; B+", gpm("A", "?x :p ?v") + gpm("B", "?y :q ?w")
    texts = [
        query(f"{begin} ; C", b + gpm("C", f"?x :p ?u FILTER(?u - {n} > 0)")) for n in range(2)
    ]
    texts += [
        query(f"{begin} ; C", b + gpm("C", f"?x :p ?w FILTER(?w - {n} > 0)")) for n in range(2)
    ]
    assert members(alerts(*texts)) == [((0,), (1,)), ((2,), (3,))]


def test_few_queries_are_evaluated_on_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefixes, "LEAST", 4)
    texts = [ending("; C", gpm("C", f"?x :q ?u FILTER(?u - {n} > 0)")) for n in range(4)]
    assert not members(alerts(*texts[:3], texts[0]))
    assert members(alerts(*texts)) == [((0,), (1,), (2,), (3,))]


def test_reports_are_about_one_query() -> None:
    ends = [gpm("C", f"?x :q ?u FILTER(?u - {n} > 0)") for n in range(2)]
    run = alerts(*(ending("; C", one) for one in ends))
    rises(run)
    run.push(S, 3, of(0, 1))
    queries = run.stats["queries"]
    assert {name: each["matches"] for name, each in queries.items()} == {"q0": 1, "q1": 0}
    assert queries["q0"]["places"] == {"2: A ; B": 1, "3: B ; C": 0}
    assert queries["q1"]["places"] == {"2: A ; B": 1, "3: B ; C": 1}
    assert "query q1: 0 matches in 3 events" in run.why_not("q1")
    run.divide()
    assert "evaluated as one" not in run.why_not("q1")
    assert [m.query for m in run.push(S, 4, of(0, 7))] == ["q1"]


def test_a_state_says_which_queries_share_steps() -> None:
    texts = [ending("; C", gpm("C", f"?x :q ?u FILTER(?u - {n} > 0)")) for n in range(3)]
    run = alerts(*texts)
    rises(run)
    data = unseal(run.save())
    program = spaseq.compile(texts, names=["q0", "q1", "q2"])
    resumed = program.resume(seal(data))
    assert members(resumed) == [((0,), (1,), (2,))]
    assert [m.query for m in resumed.push(S, 3, of(0, 9))] == ["q0", "q1", "q2"]
    for wrong in ([[0], [1, 2]], [[0, 1, 2]], [[0], [1]]):
        with pytest.raises(StateError):
            program.resume(seal(data | {"templates": [[wrong, [0] * sum(map(len, wrong))]]}))
