"""Queries that differ in constants, or in what they select, evaluated as one.

Drawn sets of such queries have the matches of runs of one query each, in the order of a run that
evaluates each on its own: pushed, in batches, across saved states, and while queries are added,
replaced, removed and bound. `SPASEQ_EXAMPLES` is the number of cases, `SPASEQ_SEED` the first.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pyoxigraph as ox
import pytest
from regrouping import regroup, separate
from test_changes import POOL, Alone, Feed, events, query, shown

import spaseq
from spaseq.engine.envelope import seal, unseal
from spaseq.errors import StateError
from spaseq.parser import format_query
from spaseq.plan import templates

EX = "http://example.org/"
S = EX + "s"
XSD = "http://www.w3.org/2001/XMLSchema#"
EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "40"))
SEED = int(os.environ.get("SPASEQ_SEED", "0"))


def gpm(name: str, pattern: str, stream: str = "s") -> str:
    return f"DEFINE GPM {name} ON {stream} {{ {pattern} }} "


SHAPES = (
    query("A", gpm("A", "?x :p ?v FILTER(?x = :x%c && ?v > %t)")),
    query("A ; B", gpm("A", ":x%c :p ?v") + gpm("B", ":x%c :p ?w")),
    query("A ; B", gpm("A", ":x%c :p ?v") + gpm("B", ":x%d :q ?w FILTER(?w >= ?v)")),
    query("A : B", gpm("A", "?x :p %t") + gpm("B", "?x :q %u FILTER(?x != :x%c)")),
    query("A , B", gpm("A", "?x :p ?v FILTER(:x%c = ?x)") + gpm("B", "?x :q ?w FILTER(?x = :x%c)")),
    query(
        "A ; !N ; B",
        gpm("A", ":x%c :p ?v") + gpm("N", "?y :q ?u FILTER(?u > %t)") + gpm("B", ":x%c :p ?w"),
    ),
    query(
        "A ; !N ; B",
        gpm("A", ":x%c :p ?v")
        + gpm("N", ":x%c :q ?u FILTER(?u >= ?w)")
        + gpm("B", ":x%d :p ?w FILTER(?w > %t)"),
    ),
    query(
        "A ; M+ ; B",
        gpm("A", ":x%c :p ?v") + gpm("M", "?y :q ?u FILTER(?u > %t)") + gpm("B", ":x%d :p ?w"),
        window="WITHIN 6 SECONDS",
    ),
    query(
        "A ; M? ; B",
        gpm("A", ":x%c :p ?v") + gpm("M", ":x%d :q ?u") + gpm("B", ":x%c :p ?w FILTER(?w > %t)"),
    ),
    query(
        "A ; M ; B+",
        gpm("A", ":x%c :p ?v")
        + gpm("M", "?y :q ?u FILTER(?u + %t > ?v)")
        + gpm("B", "?z :p ?w FILTER(?z = :x%c && ?w > PREV(?w, -1))"),
        window="WITHIN 5 SECONDS",
    ),
    query("A ; B", gpm("A", ":x%c :p ?v FILTER(?v = %t.0)") + gpm("B", ":x%c :q ?w")),
    query("A ; B", gpm("A", ":x%c :p ?v") + gpm("B", ":x%c :q ?w", "r"), streams="s r"),
    query(
        "A ; A ; B",
        gpm("A", "?x :p ?v FILTER(?x = :x%c)") + gpm("B", ":x%c :p ?w FILTER(?w < %t)"),
        window="WITHIN UNBOUNDED",
    ),
    query(
        "A ; B",
        gpm("A", ":x%c :p ?v OPTIONAL { ?z :q ?u }") + gpm("B", ":x%c :p ?w FILTER(?w >= %t)"),
        window="WITHIN TUMBLING 5 SECONDS",
    ),
)


THRESHOLDS = (
    query("A", gpm("A", "?x :p ?v FILTER(?v > %t)")),
    query("A ; B", gpm("A", "?x :p ?v FILTER(?v >= %t)") + gpm("B", "?x :p ?w FILTER(?w >= ?v)")),
    query("A : B", gpm("A", "?x :p ?v FILTER(?v > %t)") + gpm("B", "?y :q ?w FILTER(%u > ?w)")),
    query("A , B", gpm("A", "?x :p ?v") + gpm("B", "?y :q ?w FILTER(?w > %t.5 && ?w <= ?v)")),
    query(
        "A : B ; C",
        gpm("A", "?x :p ?v") + gpm("B", "?x :p ?w FILTER(?w >= %t)") + gpm("C", "?x :q ?u"),
    ),
    query(
        "A ; !N ; B",
        gpm("A", "?x :p ?v FILTER(?v <= %t)")
        + gpm("N", "?x :q ?u FILTER(?u > ?w)")
        + gpm("B", "?x :p ?w"),
    ),
    query(
        "A ; M+ ; B",
        gpm("A", "?x :p ?v FILTER(?v < %t)")
        + gpm("M", "?y :q ?u FILTER(?u > ?v)")
        + gpm("B", "?x :p ?w FILTER(?w >= ?v)"),
        window="WITHIN 6 SECONDS",
    ),
    query(
        "A : B+ : C",
        gpm("A", "?x :p ?v FILTER(?v >= 0 && ?v <= %t)")
        + gpm("B", "?y :q ?u FILTER(?u > ?v)")
        + gpm("C", "?x :p ?w FILTER(?w >= %u)"),
        window="WITHIN 5 SECONDS",
    ),
    query(
        "A ; B",
        gpm("A", "?x :p ?v FILTER(?v > -%t && %u >= ?v)") + gpm("B", "?x :q ?w", "r"),
        streams="s r",
    ),
    query(
        "A : B",
        gpm("A", "?x :p ?v FILTER(?v > %t)") + gpm("B", "?x :p ?w FILTER(?w > %t)"),
        window="WITHIN UNBOUNDED",
    ),
    query(
        "A ; M? : B",
        gpm("A", "?x :p ?v FILTER(?v >= %t)")
        + gpm("M", "?x :q ?u")
        + gpm("B", "?y :p ?w FILTER(?w < %u)"),
        window="WITHIN TUMBLING 5 SECONDS",
    ),
)
"""Queries of each differ in thresholds only, apart from their columns."""


def of_shape(shape: str, draw: random.Random) -> str:
    for mark, value in (
        ("%c", draw.randrange(3)),
        ("%d", draw.randrange(3)),
        ("%t", draw.randrange(4)),
        ("%u", draw.randrange(4)),
    ):
        shape = shape.replace(mark, str(value))
    if draw.random() < 0.4:
        columns = [name for name in ("?v", "?w", "?x") if f"{name} " in shape]
        shape = shape.replace("SELECT *", f"SELECT {' '.join(columns)}", 1)
    return shape


def turn(match: spaseq.Match) -> tuple[object, ...]:
    """What orders matches; those of one query at one instant come in any order."""
    last = match.events[-1]
    return match.end, last.stream, last.ordinal, match.query


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "LEAST", 2)


@pytest.mark.parametrize("seed", range(SEED, SEED + EXAMPLES))
def test_queries_as_one_have_the_matches_of_runs_of_one_query(seed: int) -> None:
    _check_shapes(seed, SHAPES)


@pytest.mark.parametrize("seed", range(SEED, SEED + EXAMPLES))
def test_thresholds_have_the_matches_of_runs_of_one_query(seed: int) -> None:
    _check_shapes(seed, THRESHOLDS)


def _check_shapes(seed: int, of: tuple[str, ...]) -> None:
    draw = random.Random(seed)
    shapes = draw.sample(of, draw.randrange(1, 3))
    check_against_runs_of_one_query(draw, lambda: of_shape(draw.choice(shapes), draw))


def check_against_runs_of_one_query(draw: random.Random, another: Callable[[], str]) -> None:
    """Compare a run of drawn queries with runs of one query each, while the queries change.

    Args:
        draw: Draws everything.
        another: Draws a query.
    """
    stream = events(draw, 40)
    made = [another() for _ in range(draw.randrange(2, 8))]
    made += draw.sample(POOL, draw.randrange(2))
    draw.shuffle(made)
    texts = {f"q{n}": text for n, text in enumerate(made)}
    program = spaseq.compile(made, names=list(texts))
    way = draw.choice(("push", "objects", "encoded"))
    fed, apart = Feed(program.start(), way), Feed(program.start(share=False), way)
    assert not apart.run.evaluation.listed.divisions
    alone = {name: Alone(text) for name, text in texts.items()}
    ended: list[Alone] = []
    silent: list[str] = []
    number, at, changed = len(texts), 0, False
    changes = draw.random() < 0.6
    while at < len(stream):
        size = draw.choice((1, 2, 5))
        while at + size < len(stream) and stream[at + size].time == stream[at + size - 1].time:
            size += 1
        given = [e for e in stream[at : at + size] if e.stream in fed.run.clock.streams]
        at += size
        found = fed.give(given)
        for match in found:
            alone[match.query].found.append(shown(match))
        for event in given:
            for each in alone.values():
                each.give(event)
        if not changed:
            before = apart.give(given)
            assert list(map(turn, found)) == list(map(turn, before))
            counted = fed.run.stats["queries"]
            assert {n: c["matches"] for n, c in counted.items()} == {
                n: len(each.found) for n, each in alone.items()
            }
        kinds = ["save", "join"] * 4 + ["divide", "add", "remove", "replace", "keep"] * changes
        kinds += ["leave", "leave", "add"] * changes
        for kind in draw.choices(kinds, k=draw.choice((0, 0, 1))):
            if kind == "save":
                names = [q.plan.name for q in fed.run.program.queries]
                if set(fed.run.program.streams) != set(fed.run.clock.streams):
                    continue
                saved = spaseq.compile([texts[n] for n in names], names=names)
                shares = bool(silent) or draw.random() < 0.8
                fed.run = saved.resume(fed.run.save(), share=shares)
                fed.run.evaluation.listed.silence(silent)
                continue
            if kind == "join":
                regroup(fed.run)
            changed = changed or kind in ("add", "remove", "replace", "leave")
            if kind == "divide":
                fed.run.divide()
                assert not fed.run.evaluation.listed.divisions
            elif kind == "add":
                name, text = f"q{number}", another()
                number += 1
                fed.run.add(name, spaseq.compile(text, names=[name]), new_streams=True)
                alone[name], texts[name] = Alone(text), text
            elif kind == "leave":
                name = draw.choice(list(alone))
                left = separate(fed.run, name)
                if left is not None:
                    silent.append(left)
                    texts[left] = texts[name]
            elif kind == "remove" and len(alone) > 1:
                name = draw.choice(list(alone))
                fed.run.remove(name)
                ended.append(alone.pop(name))
            elif kind == "replace":
                name, text = draw.choice(list(alone)), another()
                fed.run.replace(name, spaseq.compile(text, names=[name]), new_streams=True)
                ended.append(alone[name])
                alone[name], texts[name] = Alone(text), text
            elif kind == "keep":
                name = draw.choice(list(alone))
                fed.run.replace(name, spaseq.compile(texts[name], names=[name]), "keep")
    for match in fed.run.finish():
        alone[match.query].found.append(shown(match))
    for each in alone.values():
        each.expected += map(shown, each.run.finish())
    for each in (*alone.values(), *ended):
        assert sorted(each.found) == sorted(each.expected)


# ------------------------------------------------------------------ single cases


def alert(user: int, least: int, columns: str = "?v") -> str:
    pattern = f"?x :p ?v FILTER(?x = :x{user} && ?v >= {least})"
    return query("A ; B", gpm("A", pattern) + gpm("B", f":x{user} :p ?w"), f"SELECT {columns}")


def triple(user: int, value: int) -> list[ox.Triple]:
    return [ox.Triple(ox.NamedNode(f"{EX}x{user}"), ox.NamedNode(EX + "p"), ox.Literal(value))]


def alerts(*texts: str, **options: object) -> spaseq.Run:
    names = [f"q{n}" for n in range(len(texts))]
    return spaseq.compile(texts, names=names).start(**options)  # type: ignore[arg-type]


def test_a_match_shows_nothing_of_the_template() -> None:
    run = alerts(alert(0, 1), alert(1, 2), alert(1, 3, "?v ?w ?x"))
    assert list(run.evaluation.listed.divisions) == [0]
    run.push(S, 1, triple(1, 3))
    first, second = run.push(S, 2, triple(1, 0))
    assert (first.query, first.values) == ("q1", {"v": 3})
    assert (second.query, second.values) == ("q2", {"v": 3, "w": 0, "x": f"{EX}x1"})
    assert [list(witness.bindings) for witness in second.events] == [["v", "x"], ["w"]]
    assert '".' not in second.to_json()


def test_strings_are_looked_up_and_compared_as_filters_compare_them() -> None:
    pattern = "?x :p ?v FILTER(?v = %s)"
    constants = ('"ann"', '"bob"', '"ann"@en', "2", "2.0", ":x1")
    texts = [query("A", gpm("A", pattern % constant)) for constant in constants]
    alone = [spaseq.compile(text).start() for text in texts]
    run = alerts(*texts)
    shared = next(iter(run.evaluation.listed.divisions.values())).template.queries
    assert [constants[number] for number in shared] == ['"ann"', '"bob"', ":x1"]
    values = [
        ox.Literal("ann"),
        ox.Literal("ann", language="en"),
        ox.Literal("ann", datatype=ox.NamedNode(EX + "name")),
        ox.Literal("2"),
        ox.Literal(2),
        ox.Literal(2.0),
        ox.NamedNode(EX + "x1"),
    ]
    for second, value in enumerate(values):
        event = [ox.Triple(ox.NamedNode(EX + "x0"), ox.NamedNode(EX + "p"), value)]
        expected = [n for n, each in enumerate(alone) if each.push(S, second, event)]
        assert [int(m.query[1:]) for m in run.push(S, second, event)] == expected


VALUES = (
    *(
        ox.Literal(n, datatype=ox.NamedNode(XSD + kind))
        for n, kind in (
            ("3", "integer"),
            ("3.0", "decimal"),
            ("2.9999999999999999999", "decimal"),
            ("3", "byte"),
            ("300", "byte"),
            ("3e0", "double"),
            ("3.0000001", "float"),
            ("NaN", "double"),
            ("INF", "float"),
            ("-0.0", "double"),
            ("9007199254740993", "integer"),
            ("9007199254740992", "double"),
            ("9007199254740992", "float"),
            ("3", "string"),
            ("2026-01-01T00:00:00Z", "dateTime"),
            ("2026-01-01T00:00:00", "dateTime"),
            ("2026-01-01T23:00:00", "dateTime"),
            ("2026-01-01T01:00:00+02:00", "dateTimeStamp"),
            ("2026-01-01", "date"),
            ("2026-01-02Z", "date"),
            ("junk", "dateTime"),
            ("true", "boolean"),
        )
    ),
    ox.Literal("3", language="en"),
    ox.NamedNode(EX + "x3"),
)
CONSTANTS = {
    "numbers": ("3", "3.0", "-1", "2.9999999999999999999", "9007199254740992", "9007199254740993",
                "9007199254740993.5", "1" + "0" * 40),
    "doubles": ("3e0", "-1e0", "9007199254740993e0", '"INF"^^xsd:double', '"-INF"^^xsd:double'),
    "times": tuple(f'"{text}"^^xsd:dateTime' for text in (
        "2026-01-01T00:00:00Z", "2026-01-01T00:00:00+02:00", "2026-01-01T09:00:00Z",
        "2025-12-31T12:00:00Z")),
    "dates": ('"2026-01-01Z"^^xsd:date', '"2026-01-02+01:00"^^xsd:date'),
}  # fmt: skip


@pytest.mark.parametrize("sort", CONSTANTS)
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_thresholds_compare_as_filters_do(sort: str, operator: str) -> None:
    texts = [
        query("A", gpm("A", f"?x :p ?v FILTER(?v {operator} {constant})"))
        for constant in CONSTANTS[sort]
    ]
    alone = [spaseq.compile(text).start() for text in texts]
    run = alerts(*texts)
    assert len(run.evaluation.listed.program.queries) == 1
    found = 0
    for second, value in enumerate(VALUES):
        event = [ox.Triple(ox.NamedNode(EX + "x0"), ox.NamedNode(EX + "p"), value)]
        expected = [n for n, each in enumerate(alone) if each.push(S, second, event)]
        assert [int(m.query[1:]) for m in run.push(S, second, event)] == expected
        found += len(expected)
    assert found


@pytest.mark.parametrize(
    ("sequence", "first", "second"),
    [
        ("A ; B", "", "FILTER(?w > %d && ?w > ?v)"),
        ("A : B+ ; C", "", "FILTER(?w > %d)"),
        ("A ; !B ; C", "", "FILTER(?w > %d)"),
        ("A : B", "FILTER(?v + 1 > %d)", ""),  # no comparison with what the event has
        ("A : B", 'FILTER(?v > "%d")', ""),
        ("A : B", "FILTER(?v > %d || ?v < 0)", ""),
    ],
)
def test_other_thresholds_are_for_each_query(sequence: str, first: str, second: str) -> None:
    pattern = (
        gpm("A", f"?x :p ?v {first}")
        + gpm("B", f"?y :q ?w {second}")
        + gpm("C", "?z :r ?u") * ("C" in sequence)
    )
    texts = [query(sequence, pattern.replace("%d", str(least))) for least in range(3)]
    assert not alerts(*texts).evaluation.listed.divisions


def test_bands_are_shared_as_far_as_each_lies_in_the_one_before() -> None:
    bands = [(0, 9), (1, 8), (2, 7), (5, 12), (6, 11)]
    texts = [
        query("A", gpm("A", f"?x :p ?v FILTER(?v >= {least} && {most} >= ?v)"))
        for least, most in bands
    ]
    run = alerts(*texts)
    members = [each.template.members for each in run.evaluation.listed.divisions.values()]
    assert members == [((0, 1, 2),), ((3, 4),)]
    for second in range(14):
        expected = [n for n, (least, most) in enumerate(bands) if least <= second <= most]
        assert [int(m.query[1:]) for m in run.push(S, second, triple(0, second))] == expected


def test_many_thresholds_of_one_constant_are_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "LEAST", 16)
    texts = [alert(user, least) for user in (0, 1) for least in range(20)]
    run = alerts(*texts)
    members = [each.template.members for each in run.evaluation.listed.divisions.values()]
    assert members == [(tuple(range(20)),), (tuple(range(20, 40)),)]
    run.push(S, 1, triple(1, 2))
    assert [m.query for m in run.push(S, 2, triple(1, 0))] == ["q20", "q21", "q22"]


def test_each_query_takes_its_part_of_shared_partial_matches() -> None:
    """After a change, partial matches are those whose rows reach the threshold of the query."""
    text = query("A : B", gpm("A", "?x :p ?v FILTER(?v > %d)") + gpm("B", "?x :p ?w"), "SELECT ?v")
    run = alerts(*(text.replace("%d", str(n)) for n in range(5)))
    assert list(run.evaluation.listed.divisions) == [0]
    for second, value in enumerate((3, 1, 5, 2)):
        before = run.push(S, second, triple(1, value))
    run.divide()
    after = run.push(S, 8, triple(1, 0))
    assert len(before) == 9
    assert [(m.query, m["v"]) for m in sorted(after, key=lambda m: (m.query, m["v"]))] == [
        (f"q{n}", value) for n in range(5) for value in (1, 2, 3, 5) if value > n
    ]


def test_few_queries_with_constants_are_evaluated_on_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(templates, "LEAST", 4)
    assert not alerts(alert(0, 1), alert(1, 2), alert(2, 3)).evaluation.listed.divisions
    assert alerts(alert(0, 1), alert(0, 1, "?w")).evaluation.listed.divisions


@pytest.mark.parametrize(
    "options", [{"max_groups": 10}, {"entail": "rdfs", "kb": {f"{EX}g": []}}, {"share": False}]
)
def test_limits_and_entailment_are_for_each_query(options: dict[str, object]) -> None:
    assert not alerts(alert(0, 1), alert(1, 2), **options).evaluation.listed.divisions


def test_a_partial_match_belongs_to_one_query() -> None:
    """Without a constant in the first or the last step, queries stay on their own."""
    for pattern in ("A ; B", "B ; A"):
        texts = [query(pattern, gpm("A", f":x{n} :p ?v") + gpm("B", "?y :p ?w")) for n in (0, 1)]
        assert not alerts(*texts).evaluation.listed.divisions


def test_a_resumed_run_can_have_limits() -> None:
    texts = alert(0, 1), alert(1, 2)
    run = alerts(*texts)
    run.push(S, 1, triple(1, 3))
    program = spaseq.compile(texts, names=["q0", "q1"])
    resumed = program.resume(run.save(), max_groups=5)
    assert not resumed.evaluation.listed.divisions
    assert [m.query for m in resumed.push(S, 2, triple(1, 0))] == ["q1"]


def test_bound_variables_change_where_queries_share() -> None:
    text = query(
        "A ; B",
        gpm("A", ":x%d :p ?v FILTER(?v >= ?least)") + gpm("B", ":x%d :p ?w"),
        "SELECT ?v",
    )
    run = alerts(text.replace("%d", "0"), text.replace("%d", "1"), bind={"least": 2})
    assert run.evaluation.listed.divisions
    run.push(S, 1, triple(1, 2))
    run.bind(least=5)
    assert [m.query for m in run.push(S, 2, triple(1, 3))] == ["q1"]
    assert run.push(S, 3, triple(1, 4)) == []


def test_a_query_that_is_added_leaves_the_template_as_it_is() -> None:
    run = alerts(alert(0, 1), alert(1, 2), query("A", gpm("A", "?x :q ?v")))
    run.push(S, 1, triple(1, 3))
    run.add("later", spaseq.compile(alert(1, 0)))
    assert list(run.evaluation.listed.divisions) == [0]
    assert [q.plan.name for q in run.program.queries] == ["q0", "q1", "q2", "later"]
    assert [m.query for m in run.push(S, 2, triple(1, 3))] == ["q1"]
    assert [m.query for m in run.push(S, 3, triple(1, 3))] == ["q1", "later"]
    assert "query later" in run.explain()
    names = [q.plan.name for q in run.program.queries]
    run = spaseq.compile(list(map(format_query, run.program.sources)), names=names).resume(
        run.save()
    )
    assert list(run.evaluation.listed.divisions) == [0]
    run.remove("q0")
    assert not run.evaluation.listed.divisions
    assert [m.query for m in run.push(S, 4, triple(1, 3))] == ["q1", "later"]


def test_an_old_version_in_a_template_has_the_name_of_its_query() -> None:
    run = alerts(alert(0, 1), alert(1, 2))
    run.push(S, 1, triple(1, 3))
    run.replace("q1", spaseq.compile(alert(2, 1), names=["q1"]), "drain")
    assert [m.query for m in run.push(S, 2, triple(1, 0))] == ["q1"]
    again = run.program.start()
    assert again.evaluation.listed.divisions
    again.push(S, 1, triple(1, 3))
    assert [m.query for m in again.push(S, 2, triple(1, 0))] == ["q1"]


def test_reports_name_the_queries() -> None:
    run = alerts(alert(0, 1), alert(1, 2), query("A", gpm("A", "?x :q ?v")))
    run.push(S, 1, triple(1, 3))
    run.push(S, 2, triple(1, 3))
    queries = run.stats["queries"]
    assert {name: counters["matches"] for name, counters in queries.items()} == {
        "q0": 0,
        "q1": 1,
        "q2": 0,
    }
    assert queries["q0"]["evaluated_with"] == 1
    assert "evaluated_with" not in queries["q2"]
    assert run.stats["matches"] == 1
    report = run.why_not("q0")
    assert "query q0: 0 matches in 2 events" in report
    assert "evaluated as one with 1 other query" in report
    assert "shares     its automaton with q1" in run.explain()
    shown = run.program.to_dict()["queries"]  # type: ignore[attr-defined]
    assert [each["evaluated_with"] for each in shown] == [
        {"queries": 1, "first": ["q1"]},
        {"queries": 1, "first": ["q0"]},
        None,
    ]
    run.divide()
    assert "evaluated as one" not in run.why_not("q0")
    assert run.stats["queries"]["q1"]["matches"] == 1


def test_explain_names_the_first_of_many_queries() -> None:
    program = spaseq.compile([alert(n, 1) for n in range(20)] + [alert(0, 2, "DISTINCT ?v")])
    text = program.explain()
    assert (
        "shares     its automaton with query2, query3, query4, query5, query6, query7, query8, "
        "query9 and 11 more\n"
    ) in text
    assert "shares     no automaton: its results are computed, or depend on each other" in text


def test_a_state_says_which_queries_share() -> None:
    run = alerts(alert(0, 1), alert(1, 2))
    data = unseal(run.save())
    program = spaseq.compile([alert(0, 1), alert(1, 2)], names=["q0", "q1"])
    for wrong in ([[[[0], [0]], [0, 0]]], [[[[0], [7]], [0, 0]]], [[[[0, 1]], [0, 0]]], [[[], []]]):
        with pytest.raises(StateError):
            program.resume(seal(data | {"templates": wrong}))
