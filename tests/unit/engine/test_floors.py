"""Queries with different thresholds in a step after `;`, evaluated as one (`spaseq.plan.floors`).

Drawn sets of such queries have the matches of runs of one query each, and of the oracle.
"""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest
from oracle import comparable, difference, evaluate
from regrouping import separate
from test_changes import EXAMPLES, SEED, Alone, Feed, query, shown
from test_templates import (
    CONSTANTS,
    EX,
    VALUES,
    S,
    alerts,
    check_against_runs_of_one_query,
    gpm,
    of_shape,
)

import spaseq
from spaseq.engine.envelope import seal, unseal
from spaseq.errors import StateError
from spaseq.plan import templates
from spaseq.rdf.event import NUMBER, Event
from spaseq.rdf.time import from_micros

R = EX + "r"
A = gpm("A", "?x :p ?v")
FLOORS = {
    "of-a-key": query("A ; B", A + gpm("B", "?x :q ?w FILTER(?w >= %t)")),
    "of-all": query("A ; B", A + gpm("B", "?y :p ?w FILTER(?w > %t)")),
    "of-the-least": query("A ; B", A + gpm("B", "?y :q ?w FILTER(%t.5 > ?w)")),
    "in-the-middle": query(
        "A ; B ; C", A + gpm("B", "?x :p ?w FILTER(?w > %t)") + gpm("C", "?y :q ?w")
    ),
    "behind-two": query(
        "A : B ; C", A + gpm("B", "?y :q ?w") + gpm("C", "?x :p ?u FILTER(?u >= %t)")
    ),
    "behind-an-iteration": query(
        "A ; M+ ; B",
        A + gpm("M", "?y :q ?u FILTER(?u > ?v)") + gpm("B", "?x :p ?w FILTER(?w >= %t)"),
        window="WITHIN 6 SECONDS",
    ),
    "before-an-iteration": query(
        "A ; B ; M+",
        A + gpm("B", "?x :p ?w FILTER(?w >= %t)") + gpm("M", "?y :q ?u FILTER(?u >= ?w)"),
        window="WITHIN 5 SECONDS",
    ),
    "with-an-aggregate": query(
        "A ; M+ ; B : C",
        A
        + gpm("M", "?y :q ?u FILTER(?u > 0)")
        + gpm("B", "?x :p ?w FILTER(?w >= %t)")
        + gpm("C", "?z :p ?t FILTER(?t >= AVG(?u))"),
        window="WITHIN 5 SECONDS",
    ),
    "before-strict-contiguity": query(
        "A ; B , C", A + gpm("B", "?y :q ?w FILTER(?w <= %t)") + gpm("C", "?x :p ?u")
    ),
    "before-a-negation": query(
        "A ; B ; !N ; C",
        A + gpm("B", "?x :p ?w FILTER(?w >= %t)") + gpm("N", "?y :q 0") + gpm("C", "?z :p ?u"),
    ),
    "with-one-in-front": query(
        "A ; B", gpm("A", "?x :p ?v FILTER(?v >= %t)") + gpm("B", "?x :p ?w FILTER(?w >= %u)")
    ),
    "two": query(
        "A ; B ; C",
        A + gpm("B", "?x :p ?w FILTER(?w >= %t)") + gpm("C", "?y :q ?u FILTER(?u <= %u)"),
    ),
    "with-one-behind": query(
        "A ; B : C",
        A + gpm("B", "?x :p ?w FILTER(?w >= %t)") + gpm("C", "?y :p ?u FILTER(?u <= %u)"),
    ),
    "of-a-band": query("A ; B", A + gpm("B", "?x :p ?w FILTER(?w >= %t && 3 >= ?w && ?w <= %u)")),
    "of-two-variables": query(
        "A ; B", A + gpm("B", "?y :q ?w . ?z :p ?u FILTER(?w >= %t && ?u <= %u)")
    ),
    "of-another-stream": query(
        "A ; B", A + gpm("B", "?x :q ?w FILTER(?w >= %t)", "r"), streams="s r"
    ),
    "of-two-streams": query(
        "A ; B", A + gpm("B", "?y :p ?w FILTER(?w >= %t)", "s, r"), streams="s r"
    ),
    "tumbling": query(
        "A ; B", A + gpm("B", "?x :p ?w FILTER(?w > %t)"), window="WITHIN TUMBLING 5 SECONDS"
    ),
    "unbounded": query(
        "A ; B", A + gpm("B", "?x :p ?w FILTER(?w > %t)"), window="WITHIN UNBOUNDED"
    ),
    "with-optional-values": query(
        "A ; B", A + gpm("B", "?y :q ?w OPTIONAL { ?x :p ?u } FILTER(?w >= %t)")
    ),
    "of-a-step-that-is-compared-later": query(
        "A ; B : C",
        A + gpm("B", "?y :q ?w FILTER(?w >= %t)") + gpm("C", "?z :p ?u FILTER(?u > ?w + ?v)"),
    ),
}
OTHERS = {
    "across-steps": query("A ; B", A + gpm("B", "?x :p ?w FILTER(?w > %t && ?w > ?v)")),
    "of-an-iteration": query("A ; B+", A + gpm("B", "?x :p ?w FILTER(?w >= %t)")),
    "behind-a-negation": query(
        "A ; !N ; B", A + gpm("N", "?y :q ?u") + gpm("B", "?x :p ?w FILTER(?w >= %t)")
    ),
    "behind-an-optional": query(
        "A ; M? ; B", A + gpm("M", "?y :q ?u") + gpm("B", "?x :p ?w FILTER(?w >= %t)")
    ),
    "of-an-optional": query(
        "A ; B? ; C", A + gpm("B", "?x :p ?w FILTER(?w >= %t)") + gpm("C", "?y :q ?u")
    ),
    "twice": query("A ; B ; B", A + gpm("B", "?y :q ?w FILTER(?w >= %t)")),
    "behind-a-first-step-that-recurs": query(
        "A ; A ; B", A + gpm("B", "?y :q ?w FILTER(?w >= %t)")
    ),
    "with-a-value-of-earlier-ones": query(
        "A ; B", A + gpm("B", "?x :p ?w BIND(?v + 1 AS ?n) FILTER(?w >= %t)")
    ),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "LEAST", 2)


def floored(run: spaseq.Run) -> bool:
    return any(each.template.floors for each in run.evaluation.listed.divisions.values())


@pytest.mark.parametrize("name", FLOORS)
def test_partial_matches_wait_with_a_floor(name: str) -> None:
    texts = [FLOORS[name].replace("%t", str(n)).replace("%u", str(3 - n)) for n in range(2)]
    if name == "with-one-in-front":
        texts = [FLOORS[name].replace("%t", str(n)).replace("%u", str(n)) for n in range(2)]
    run = alerts(*texts)
    assert floored(run)
    assert len(run.evaluation.listed.program.queries) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_other_steps_have_no_floor(name: str) -> None:
    assert not floored(alerts(*(OTHERS[name].replace("%t", str(n)) for n in range(3))))


@pytest.mark.parametrize("seed", range(SEED, SEED + 2 * EXAMPLES))
def test_queries_have_the_matches_of_runs_of_one_query(seed: int) -> None:
    draw = random.Random(seed)
    shapes = draw.sample([*FLOORS.values(), *OTHERS.values()], draw.randrange(1, 3))
    check_against_runs_of_one_query(draw, lambda: of_shape(draw.choice(shapes), draw))


# ------------------------------------------------------------------ many rows and values


def events_with_rows(draw: random.Random, count: int, streams: tuple[str, ...]) -> list[Event]:
    """Events whose graph patterns have several solutions, some at the same time."""
    found: list[Event] = []
    second, ordinals = 0, dict.fromkeys(streams, 0)
    for number in range(count):
        step = draw.choice((0, 1, 1, 2))
        if step:
            second, ordinals = second + step, dict.fromkeys(streams, 0)
        stream = draw.choice(streams)
        facts = {
            (
                ox.NamedNode(f"{EX}x{draw.randrange(2)}"),
                ox.NamedNode(EX + draw.choice("pq")),
                ox.Literal(draw.randrange(10)),
            )
            for _ in range(draw.randrange(1, 5))
        }
        time = from_micros(second * 10**6, NUMBER)
        name = ox.NamedNode(f"{EX}e{number}")
        found.append(Event(stream, time, ordinals[stream], tuple(facts), name))
        ordinals[stream] += 1
    return found


@pytest.mark.parametrize("seed", range(SEED, SEED + EXAMPLES))
def test_queries_have_the_matches_of_the_oracle(seed: int) -> None:
    """Events have several rows; the state is saved, in open instants too, and queries leave."""
    draw = random.Random(seed)
    shape = draw.choice(list(FLOORS.values()))
    streams = (S, R) if "STREAM r" in shape else (S,)
    numbers = draw.sample(range(10), draw.randrange(3, 8))
    texts = [shape.replace("%t", str(n)).replace("%u", str(draw.choice((n, 9)))) for n in numbers]
    names = [f"q{n}" for n in range(len(texts))]
    stream = events_with_rows(draw, 14, streams)
    program = spaseq.compile(texts, names=names)
    run = program.start()
    manner = draw.choice(("go on", "save", "divide", "leave"))
    at = draw.randrange(len(stream))
    found: list[spaseq.Match] = []
    for number, event in enumerate(stream):
        found += Feed(run, "push").give([event])
        if manner == "save":
            run = program.resume(run.save())
        elif number == at and manner == "divide":
            run.divide()
        elif number == at and manner == "leave":
            separate(run, draw.choice(names))
    found += run.finish()
    wanted = [
        match
        for text, name in zip(texts, names, strict=True)
        for match in evaluate(
            text, {s: [e for e in stream if e.stream == s] for s in streams}, name=name
        )
    ]
    assert difference(comparable(wanted), comparable(found)) == ""


# ------------------------------------------------------------------ single cases


def following(least: int, select: str = "SELECT ?v ?w") -> str:
    return query("A ; B", A + gpm("B", f"?y :q ?w FILTER(?w > {least})"), select)


def value(predicate: str, *values: int) -> list[ox.Triple]:
    subject = ox.NamedNode(EX + "x0")
    return [ox.Triple(subject, ox.NamedNode(EX + predicate), ox.Literal(v)) for v in values]


def test_each_query_takes_the_first_event_that_it_accepts() -> None:
    run = alerts(*map(following, range(0, 50, 10)))
    run.push(S, 0, value("p", 1))
    taken = [
        [m.query for m in run.push(S, 1 + n, value("q", v))] for n, v in enumerate((25, 15, 45))
    ]
    assert taken == [["q0", "q1", "q2"], [], ["q3", "q4"]]
    assert run.stats["groups"] == 0


def test_all_rows_of_the_first_event_are_taken() -> None:
    run = alerts(*map(following, range(0, 50, 10)))
    run.push(S, 0, value("p", 1))
    found = [(m.query, m["w"]) for m in run.push(S, 1, value("q", 15, 35, 5))]
    assert sorted(found) == [
        ("q0", 5), ("q0", 15), ("q0", 35), ("q1", 15), ("q1", 35), ("q2", 35), ("q3", 35)
    ]  # fmt: skip
    assert [(m.query, m["w"]) for m in run.push(S, 2, value("q", 38, 48))] == [("q4", 48)]


@pytest.mark.parametrize("sort", CONSTANTS)
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_ranks_compare_as_filters_do(sort: str, operator: str) -> None:
    texts = [
        query("A ; B", A + gpm("B", f"?y :q ?w FILTER(?w {operator} {constant})"))
        for constant in CONSTANTS[sort]
    ]
    alone = [spaseq.compile(text).start() for text in texts]
    run = alerts(*texts)
    assert floored(run)
    assert len(run.evaluation.listed.program.queries) == 1
    draw, found = random.Random(f"{sort} {operator}"), 0
    for second, number in enumerate(draw.choices(range(len(VALUES)), k=60)):
        fact = ox.NamedNode(EX + "x0"), ox.NamedNode(EX + "q"), VALUES[number]
        event = [ox.Triple(*fact), *(value("p", 1) if second % 5 == 0 else ())]
        expected = [
            (f"q{n}", match.start.micros)
            for n, each in enumerate(alone)
            for match in each.push(S, second, event)
        ]
        assert sorted((m.query, m.start.micros) for m in run.push(S, second, event)) == sorted(
            expected
        )
        found += len(expected)
    assert found


def test_equal_queries_take_the_same_events() -> None:
    run = alerts(following(10), following(20), following(10, "SELECT ?w"), following(20))
    run.push(S, 0, value("p", 1))
    assert {m.query for m in run.push(S, 1, value("q", 15))} == {"q0", "q2"}
    assert {m.query for m in run.push(S, 2, value("q", 25))} == {"q1", "q3"}


def test_a_match_shows_nothing_of_the_floor() -> None:
    run = alerts(following(0), following(10, "SELECT *"))
    run.push(S, 0, value("p", 1))
    first, second = run.push(S, 1, value("q", 11))
    assert first.values == {"v": 1, "w": 11}
    assert second.values == {"v": 1, "w": 11, "x": f"{EX}x0", "y": f"{EX}x0"}
    assert [list(witness.bindings) for witness in second.events] == [["v", "x"], ["w", "y"]]
    assert '".' not in second.to_json()


def test_a_query_leaves_with_the_groups_whose_floor_it_has_reached() -> None:
    run = alerts(*map(following, range(0, 50, 10)))
    for second, (predicate, number) in enumerate(
        (("p", 1), ("q", 15), ("p", 2), ("q", 5), ("p", 3))
    ):
        run.push(S, second, value(predicate, number))
    run.divide()
    assert not run.evaluation.listed.divisions
    groups = [sum(each["places"].values()) for each in run.stats["queries"].values()]
    assert groups == [1] * 5  # floors are no registers of the queries
    found = sorted((m.query, m["v"]) for m in run.push(S, 7, value("q", 99)))
    assert found == [
        ("q0", 3), ("q1", 2), ("q1", 3),
        *((f"q{n}", v) for n in range(2, 5) for v in (1, 2, 3)),
    ]  # fmt: skip


@pytest.mark.parametrize("at", [3, 4])
def test_state_of_an_open_instant_has_the_raised_floor(at: int) -> None:
    """An event of the other stream has the time of the event that was taken."""
    text = FLOORS["of-two-streams"]
    texts = [text.replace("%t", str(n)) for n in range(5)]
    names = [f"q{n}" for n in range(5)]
    fed = [(S, 0, 1), (R, 0, 0), (S, 1, 2), (R, 1, 3), (S, 2, 4), (R, 2, 4)]
    alone = [Alone(each) for each in texts]
    program = spaseq.compile(texts, names=names)
    run, found = program.start(), []
    for number, (stream, second, v) in enumerate(fed):
        if number == at:
            run = program.resume(run.save())
        if number == at + 1:
            run.divide()
        found += run.push(stream, second, value("p", v))
        for each in alone:
            each.expected += map(shown, each.run.push(stream, second, value("p", v)))
    found += run.finish()
    for name, each in zip(names, alone, strict=True):
        each.expected += map(shown, each.run.finish())
        assert sorted(shown(m) for m in found if m.query == name) == sorted(each.expected)


def test_a_damaged_floor_is_refused() -> None:
    texts = [following(0), following(10), following(20)]
    run = alerts(*texts)
    run.push(S, 0, value("p", 1))
    run.push(S, 1, value("q", 5))
    data = unseal(run.save())
    program = spaseq.compile(texts, names=["q0", "q1", "q2"])
    assert [m.query for m in program.resume(seal(data)).push(S, 2, value("q", 15))] == ["q1"]
    (state,) = [each for each in found_states(data) if each["groups"]]
    (group,) = state["groups"]
    state["groups"] = [group[:5]]  # as saved before there were floors
    assert [m.query for m in program.resume(seal(data)).push(S, 2, value("q", 15))] == ["q1"]
    for wrong in ([0], [10**6], [group[1][0] + 0.5]):
        state["groups"] = [[group[0], wrong, *group[2:]]]
        with pytest.raises(StateError):
            program.resume(seal(data))
    for floor in (1, -1, 10**6):
        state["groups"] = [[*group[:5], floor]]
        with pytest.raises(StateError):
            program.resume(seal(data))


def found_states(data: object) -> list[dict[str, list[list[object]]]]:
    """The automata in a saved state."""
    if isinstance(data, dict):
        inside = [each for part in data.values() for each in found_states(part)]
        return [data, *inside] if "groups" in data and "labels" in data else inside
    if isinstance(data, list):
        return [each for part in data for each in found_states(part)]
    return []


# ------------------------------------------------------------------ cost


def visits(run: spaseq.Run) -> int:
    return sum(place.visited for each in run.queries for place in each.counters().places)


@pytest.mark.parametrize("sequence", ["A ; B", "A ; B : C"])
def test_visited_groups_do_not_grow_with_the_queries(sequence: str) -> None:
    """Each visit but that of the first step unites a group with others, or ends it."""
    draw, seen = random.Random(1), []
    fed = [(draw.choice("ppqq"), draw.randrange(2), draw.randrange(1_000)) for _ in range(1_000)]
    pattern = A + gpm("B", "?x :q ?w FILTER(?w > %t)") + gpm("C", "?z :r ?u") * ("C" in sequence)
    for count in (2, 20, 200):
        texts = [
            query(sequence, pattern.replace("%t", str(1_000 * n // count)), window="WITHIN 1 DAY")
            for n in range(count)
        ]
        run = alerts(*texts)
        assert len(run.evaluation.listed.program.queries) == 1
        most = 0
        for second, (predicate, key, number) in enumerate(fed):
            subject = ox.NamedNode(f"{EX}x{key}")
            run.push(
                S, second, [ox.Triple(subject, ox.NamedNode(EX + predicate), ox.Literal(number))]
            )
            most = max(most, sum(place.groups for place in run.queries[0].counters().places))
        begun = sum(predicate == "p" for predicate, _, _ in fed)
        seen.append(visits(run))
        assert seen[-1] <= 3 * begun
        assert most <= 2 * count + 1
    assert seen[2] <= 1.5 * seen[0]
