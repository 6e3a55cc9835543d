"""Groups in the core: the results of the groups in Python, and what makes Python take over."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence

import pyoxigraph as ox
import pytest
from core_runs import encoded

import spaseq
from spaseq.engine.envelope import seal, unseal
from spaseq.engine.instants import QueryRun
from spaseq.engine.native._groups import GroupMatch
from spaseq.engine.result_groups import ResultGroups
from spaseq.errors import StateError
from spaseq.rdf.event import NUMBER, Event, Fact, Term, Timestamp
from spaseq.runs import Run

EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
STEP = "SEQ(A) DEFINE GPM A ON S { ?k :v ?v OPTIONAL { ?k :o ?o } }"
PAIRS = (
    "SEQ(A ; B) DEFINE GPM A ON S { ?k :v ?v } DEFINE GPM B ON S { ?l :v ?w OPTIONAL { ?l :o ?o } }"
)
ROUNDS = "SEQ(A : B+) DEFINE GPM A ON S { ?k :o ?o } DEFINE GPM B ON S { ?k :v ?v }"
SIDES = "SEQ(A | B) DEFINE GPM A ON S { ?k :v ?v } DEFINE GPM B ON S { ?k :o ?o }"


def literal(text: str, kind: str) -> ox.Literal:
    return ox.Literal(text, datatype=ox.NamedNode(XSD + kind))


INTEGERS = [literal(str(n), "integer") for n in (-3, 0, 1, 2, 7, 10**8, 10**17, -(10**18))]
DECIMALS = [
    literal(text, "decimal")
    for text in ("0.1", "-2.50", "3.0", "0.000000000000000001", "123456789.25")
]
DOUBLES = [
    literal(text, "double")
    for text in ("1e0", "0.1e0", "-1e-320", "5e-324", "1e300", "-1e300", "2.5E0", "0e0", "-0e0")
]
FLOATS = [literal(text, "float") for text in ("0.1", "16777216", "1", "1e-40", "3.25")]
OTHERS: list[Term] = [ox.Literal("text"), ox.NamedNode(EX + "x")]
HARD = [
    literal("INF", "double"), literal("NaN", "double"), literal("-INF", "float"),
    literal("9" * 40, "integer"), literal("1" + "0" * 20, "decimal"),
]  # fmt: skip
SORTS: dict[str, Sequence[Term]] = {
    "integers": INTEGERS,
    "exact": INTEGERS + DECIMALS,
    "doubles": DOUBLES,
    "floats": FLOATS,
    "real": DOUBLES + FLOATS,
    "numbers": INTEGERS + DECIMALS + DOUBLES + FLOATS,
    "all": [*INTEGERS, *DECIMALS, *DOUBLES, *FLOATS, *OTHERS],
    "hard": [*INTEGERS, *DECIMALS, *HARD],
}
AGGREGATES = (
    "COUNT(*)", "COUNT(?v)", "COUNT(?o)", "SUM(?v)", "AVG(?v)", "MIN(?v)", "MAX(?v)", "MAX(?o)",
    "SUM(?o)", "COUNT(DISTINCT ?v)", "SUM(DISTINCT ?v)", "AVG(DISTINCT ?o)", "MIN(DISTINCT ?v)",
    "SAMPLE(?v)", "SAMPLE(?o)", "GROUP_CONCAT(?v)", "GROUP_CONCAT(DISTINCT ?o ; SEPARATOR=',')",
    "SUM(?v + 1)", "MIN(-?v)", "COUNT(DISTINCT STR(?v))", "MAX(IF(?v > 1, ?v, ?o))",
)  # fmt: skip
KEYS = {
    " BY ?k": "?k", " BY ?k ?o": "?k ?o", "": "", " BY ?v": "?v", " BY (STR(?v) AS ?j) ?k": "?j ?k",
}  # fmt: skip
BOUNDS = ("2", "3", "0", "-1.5", "0.1", "1e0", "100000000", "2.5", "1e300")


def drawn(chance: random.Random) -> str:
    body = chance.choice((STEP, STEP, SIDES, PAIRS, ROUNDS))
    keys = chance.choice(list(KEYS))
    let = chance.choice(AGGREGATES)
    lets = f" LET ({chance.choice((let, f'IF({let} > 2, {let}, 0)'))} AS ?let)"
    form = chance.choice(("SELECT", "SELECT", "SELECT", "SELECT DISTINCT", "CONSTRUCT", "ASK"))
    having = ""
    if chance.random() < 0.6:
        terms = [*AGGREGATES, "?let", *(["?s0"] if form.startswith("SELECT") else [])]
        some = [
            f"{chance.choice(terms)} {chance.choice(('<', '<=', '>', '>=', '=', '!='))} "
            f"{chance.choice(BOUNDS)}"
            for _ in range(chance.randint(1, 2))
        ]
        some += [f"{chance.choice(BOUNDS)} < {chance.choice(terms)}"] * (chance.random() < 0.2)
        having = f" HAVING ({chance.choice((' && ', ' || ')).join(some)})"
    shown = chance.sample(AGGREGATES, 3)
    shown[2] = chance.choice((shown[2], f"STR({shown[2]})"))
    columns = " ".join(f"({each} AS ?s{n})" for n, each in enumerate(shown))
    columns += f" {KEYS[keys]} ?let"
    if form == "CONSTRUCT":
        columns = "{ [] :let ?let " + "".join(f"; :key {key} " for key in KEYS[keys].split()) + "}"
    elif form == "ASK":
        columns = ""
    limit = ""
    if chance.random() < 0.4:
        per = "" if form == "ASK" else chance.choice(("", " PER ?let", f" PER ?let {KEYS[keys]}"))
        limit = f" LIMIT {chance.choice((1, 2))}{per}{chance.choice(('', ' EVERY 2 SECONDS'))}"
    over = f"{chance.choice(('', '', 'TUMBLING '))}{chance.choice((1, 3, 10))}"
    return (
        f"PREFIX : <{EX}> {form} {columns} WITHIN 2 SECONDS FROM STREAM S :S "
        f"WHERE {{ {body} }} GROUP{keys} OVER {over} SECONDS{lets}{having}{limit}"
    )


def events(chance: random.Random, values: Sequence[Term], count: int) -> list[Event]:
    found, now, ordinal = [], 0, 0
    for _ in range(count):
        step = chance.choice((0, 1, 1, 1, 2, 9)) * 500_000
        now, ordinal = now + step, 0 if step else ordinal + 1
        if not found:
            ordinal = 0
        facts: dict[Fact, None] = {}
        for _ in range(chance.choice((1, 1, 1, 1, 2, 0))):
            key = ox.NamedNode(EX + chance.choice("ab"))
            facts[key, ox.NamedNode(EX + chance.choice("vvvo")), chance.choice(values)] = None
        written = literal(f"{now / 1e6:.3f}", "decimal") if chance.random() < 0.2 else None
        found.append(Event(EX + "S", Timestamp(now, NUMBER, written), ordinal, tuple(facts)))
    return found


def query_of(run: Run) -> QueryRun:
    (query,) = run.queries
    assert isinstance(query, QueryRun)
    return query


def groups_of(run: Run) -> ResultGroups[object]:
    groups = run.queries[0].output.groups
    assert groups is not None
    return groups


def saved(run: Run) -> object:
    """The state of a run, without the automaton of tumbling groups.

    Only the core passes by irrelevant events after the end of a window, without an instant.
    """
    state = unseal(run.save())
    if groups_of(run).tumbling:
        del state["queries"][0]["automaton"]
    return state


def push(run: Run, some: Sequence[Event]) -> list[spaseq.Match]:
    return list(run.push_batch(encoded(run, some)))


def shown(matches: Sequence[spaseq.Match]) -> list[tuple[str, str, str]]:
    return [(m.to_json(), str(m.start.term), str(m.end.term)) for m in matches]


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("seed", range(8))
def test_the_core_groups_as_python_does(sort: str, seed: int) -> None:
    chance = random.Random(f"{sort} {seed}")
    program = spaseq.compile(drawn(chance), names=["q"])
    stream = events(chance, SORTS[sort], 60)
    plain, native, resumed, pushed = [program.start() for _ in range(4)]
    assert groups_of(native).native is not None
    query_of(plain).group_in_python()
    wanted: list[spaseq.Match] = []
    found: list[spaseq.Match] = []
    again: list[spaseq.Match] = []
    singly: list[spaseq.Match] = []
    at = 0
    while at < len(stream):
        after = at + chance.randint(1, 9)
        wanted += plain.push_batch(encoded(plain, stream[at:after]))
        found += native.push_batch(encoded(native, stream[at:after]))
        again += resumed.push_batch(stream[at:after])
        singly += pushed.push_batch(stream[at:after])  # without `NativeGroups.feed`
        assert groups_of(native).held == groups_of(plain).held
        assert native.stats["queries"]["q"] == plain.stats["queries"]["q"]
        assert saved(native) == saved(plain)
        resumed = program.resume(resumed.save())
        at = after
    assert shown(found) == shown(wanted)
    assert shown(again) == shown(singly) == shown(wanted)


QUERY = (
    f"PREFIX : <{EX}> SELECT ?k (AVG(?v) AS ?mean) WITHIN 1 SECOND FROM STREAM S :S "
    "WHERE { SEQ(A) DEFINE GPM A ON S { ?k :v ?v } } GROUP BY ?k OVER 100 SECONDS "
)


def reading(second: int, value: Term, key: str = "k") -> Event:
    fact = (ox.NamedNode(EX + key), ox.NamedNode(EX + "v"), value)
    return Event(EX + "S", Timestamp(second * 1_000_000, NUMBER), 0, (fact,))


def test_an_event_without_a_solution_makes_no_match(monkeypatch: pytest.MonkeyPatch) -> None:
    run = spaseq.compile(QUERY + "HAVING (?mean > 50)").start()
    asked: list[object] = []
    groups = groups_of(run)
    solved = groups.solved
    monkeypatch.setattr(groups, "solved", lambda *some: (asked.append(some), solved(*some))[1])
    found = push(run, [reading(n, ox.Literal(n % 10)) for n in range(500)])
    assert (found, asked) == ([], [])
    found = push(run, [reading(500, ox.Literal(10_000))])
    assert len(found) == len(asked) == 1
    assert groups_of(run).held_count == 100


def test_solutions_are_made_as_they_are_consumed(monkeypatch: pytest.MonkeyPatch) -> None:
    program = spaseq.compile(QUERY, names=["q"])
    run = program.start()
    monkeypatch.setattr(run.queries[0].output, "batch", None)  # Python groups nothing
    stream = [reading(n, ox.Literal(n)) for n in range(20)]
    matches = run.push_batch(encoded(run, stream))
    first = [next(matches) for _ in range(7)]
    assert all(isinstance(match, GroupMatch) for match in first)
    assert run.stats["queries"]["q"]["matches"] == run.stats["events"] == 7
    resumed = program.resume(run.save())
    whole = push(program.start(), stream)
    rest = push(resumed, stream[7:])
    assert shown([*first, *rest]) == shown(whole)
    assert resumed.stats["queries"]["q"]["matches"] == len(whole) == 20
    # The matches before keep the values of their events.
    assert [match.results for match in first] == list(range(1, 8))
    assert [str(match.bindings["mean"].value) for match in first][:3] == ["0", "0.5", "1"]
    assert pickle.loads(pickle.dumps(first[6])).to_json() == first[6].to_json()


def test_python_goes_on_in_the_middle_of_a_batch() -> None:
    run = spaseq.compile(QUERY, names=["q"]).start()
    stream = [reading(n, ox.Literal(n)) for n in range(9)]
    stream[4] = reading(4, HARD[1])
    matches = push(run, stream)
    assert [match.results for match in matches] == list(range(1, 10))
    assert [isinstance(match, GroupMatch) for match in matches] == [True] * 4 + [False] * 5
    assert run.stats["queries"]["q"]["matches"] == 9


def test_a_batch_without_a_solution_holds_the_results_inside_over() -> None:
    run = spaseq.compile(QUERY + "HAVING (COUNT(*) > 1)").start()
    keys = [reading(n, ox.Literal(n), f"k{n}") for n in range(1000)]
    assert push(run, keys) == []
    groups = groups_of(run)
    assert (groups.count, groups.held_count) == (100, 100)
    run.advance(1098)
    assert (groups.count, groups.held_count) == (1, 1)


@pytest.mark.parametrize("value", HARD)
def test_python_takes_over_at_a_number_that_does_not_fit(value: Term) -> None:
    run = spaseq.compile(QUERY + "HAVING (COUNT(*) > 9)").start()
    push(run, [reading(n, ox.Literal(n)) for n in range(5)])
    assert groups_of(run).native is not None
    push(run, [reading(5, value)])
    assert groups_of(run).native is None
    assert groups_of(run).held_count == 6


@pytest.mark.parametrize(
    ("seq", "tail", "why"),
    [
        ("A", "GROUP BY ?k OVER TUMBLING 9 SECONDS", ""),
        ("A", "GROUP BY (?v + 1 AS ?key) OVER 9 SECONDS", ""),
        ("A", "GROUP BY ?k OVER 9 SECONDS HAVING (SUM(DISTINCT ?v + 1) > 1)", ""),
        ("A+", "GROUP BY ?k OVER 9 SECONDS HAVING (SAMPLE(?v) > 1)", ""),
        ("A+", "GROUP BY (COUNT(A) AS ?n) OVER 9 SECONDS", "the key ?n names an aggregate"),
        ("A", "GROUP BY (RAND() AS ?r) OVER 9 SECONDS", "the key ?r"),
        ("A", "GROUP BY (?v + 1 AS ?r) OVER 9 SECONDS HAVING (SUM(?r) > 1)", "names a key"),
        ("A ; !A", "GROUP BY ?k OVER 9 SECONDS", "results wait for a window or a deadline"),
        ("A | A", "GROUP BY ?k OVER 9 SECONDS", "a result may be found twice"),
    ],
)
def test_explain_says_who_reads_the_results(seq: str, tail: str, why: str) -> None:
    query = QUERY.partition("GROUP")[0].replace("?k (AVG(?v) AS ?mean)", "(COUNT(*) AS ?n)") + tail
    query = query.replace("SEQ(A)", f"SEQ({seq})").replace("AS ?n)", "AS ?all)", 1)
    program = spaseq.compile(query)
    (line,) = [line for line in program.explain().splitlines() if "GROUP: " in line]
    assert "natively over results" in line
    assert ("by Python operators" in line) == bool(why)
    assert why in line


@pytest.mark.parametrize("over", [10, 100, 1000])
@pytest.mark.parametrize("tumbling", ["", "TUMBLING "])
def test_a_result_costs_the_same_whatever_over_is(over: int, tumbling: str) -> None:
    tail = QUERY.partition("OVER")[0].replace(
        "(AVG(?v) AS ?mean)",
        "(MIN(?v) AS ?low) (MAX(?v) AS ?high) (SAMPLE(?v) AS ?one) (SUM(DISTINCT ?v) AS ?sum)",
    )
    run = spaseq.compile(f"{tail} OVER {tumbling}{over} SECONDS HAVING (MAX(?v) > 9999)").start()
    count = 5000
    push(run, [reading(n, ox.Literal(n * 7919 % 1009)) for n in range(count)])
    native = groups_of(run).native
    assert native is not None
    assert native.held <= over
    # Each result enters three queues (MIN, MAX and the starts) and leaves each once.
    assert native.work <= 6 * count


def test_saved_results_that_no_run_saved_are_refused() -> None:
    program = spaseq.compile(QUERY)
    run = program.start()
    push(run, [reading(n, ox.Literal(n)) for n in range(3)])
    data = unseal(run.save())
    data["queries"][0]["groups"][1][0][3] = 10**12
    with pytest.raises(StateError):
        program.resume(seal(data))
