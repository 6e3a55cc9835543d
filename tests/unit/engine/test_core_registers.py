"""What partial matches remember on the compiled core: aggregates, first values, BINDs, no window.

`SPASEQ_EXAMPLES` is the number of drawn cases (default 50), `SPASEQ_SEED` the first.
"""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest
from core_runs import batches, encoded, in_python, knowledge, native
from engine_runs import EX, S, program, push
from oracle import comparable, timestamp
from running_cases import ODD, running_case
from test_core_campaign import CHUNK, EXAMPLES, SEED, WAYS, failed, objections, on_the_core

import spaseq
from spaseq.engine import compaction
from spaseq.engine.aggregates import RunningAggregates, heeds_distinct
from spaseq.engine.native.snapshot import Numbers, Terms, cell_of, number_of
from spaseq.errors import LimitExceeded
from spaseq.gpm.python.aggregates import aggregate
from spaseq.nfa.native.register_tables import FAILED, NEVER_BOUND, OPENED
from spaseq.nfa.state import Cell
from spaseq.plan.logical import Register
from spaseq.rdf.event import NUMBER, Event, Term
from spaseq.results import Match
from spaseq.runs import Run

FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")
CASES = [(function, distinct) for function in FUNCTIONS for distinct in (False, True)]


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES, CHUNK))
def test_values_over_iterations_equal_the_reference(first: int) -> None:
    seen = 0
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES)):
        drawn = on_the_core(seed, running_case)
        if drawn is None:
            continue
        seen += 1
        found = objections(*drawn, seed, WAYS)
        if found:
            pytest.fail(failed(drawn[0], seed, found))
    assert seen > 0.8 * (min(first + CHUNK, SEED + EXAMPLES) - first)


def groups(run: Run) -> int:
    found = run.stats["groups"]
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES // 2, CHUNK))
def test_as_many_groups_wait_as_in_python(first: int) -> None:
    """What can be told apart there is told apart here, and nothing else."""
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES // 2)):
        drawn = on_the_core(seed, running_case)
        if drawn is None or any(word in drawn[0].query for word in ("EMIT STRICT", "!", "?", ",")):
            continue
        case, of = drawn
        run, plain = of.start(kb=knowledge(case)), in_python(of, knowledge(case))
        for event in case.merged:
            run.push_batch([event])
            plain.push_batch([event])
            assert groups(run) == groups(plain), f"seed {seed}\n{case.query}"


# ------------------------------------------------------------------ exact values


def summed_up(term: str) -> spaseq.Program:
    """A query that shows what a term is after each stretch of `b` events in front of a `c`."""
    return program(
        "SEQ(B+ , C)",
        f"DEFINE GPM B ON s {{ :k :b ?v }} DEFINE GPM C ON s {{ :k :c ?z BIND({term} AS ?out) }}",
        clauses="WITHIN 1 HOUR",
    )


def stretch(run: Run, values: list[Term]) -> list[Match]:
    """The matches of some values, and a `c` after them."""
    start = 10_000 * run.stats["events"]  # no window reaches back to the stretch before
    subject, predicate = ox.NamedNode(EX + "k"), ox.NamedNode(EX + "b")
    for number, value in enumerate(values, start):
        assert not run.push(S, number, [ox.Triple(subject, predicate, value)])
    last = ox.Triple(subject, ox.NamedNode(EX + "c"), ox.Literal(0))
    return run.push(S, start + len(values), [last])


@pytest.mark.parametrize(("function", "distinct"), CASES)
def test_values_are_exact(function: str, distinct: bool) -> None:
    chance = random.Random(f"{function} {distinct}")
    separator = "-" if function == "GROUP_CONCAT" else None
    text = '; SEPARATOR="-"' if separator else ""
    of = summed_up(f"{function}({'DISTINCT ' if distinct else ''}?v{text})")
    run, plain = of.start(), in_python(of)
    native(run)
    for _ in range(60):
        pool = chance.sample(ODD, chance.randint(1, 4))
        if chance.random() < 0.6:
            pool = [value for value in pool if isinstance(value, ox.Literal)] or pool
        values = [chance.choice(pool) for _ in range(chance.randint(1, 7))]
        found, theirs = stretch(run, values), stretch(plain, values)
        assert len(found) == len(theirs) == len(values)
        for match in found:
            terms = [event.bindings["v"] for event in match.events[:-1]]
            wanted = aggregate(function, terms, separator, distinct)
            assert match.bindings.get("out") == wanted, terms
            assert match.events[-1].bindings.get("out") == wanted


def test_sums_promote_and_do_not_come_back() -> None:
    run = summed_up("SUM(?v)").start()
    native(run)
    values: list[Term] = [
        ox.Literal("014", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer")),
        ox.Literal("0.50", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#decimal")),
        ox.Literal("1e0", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#double")),
        ox.Literal(1),
    ]
    shown = {len(match.events): str(match.bindings["out"]) for match in stretch(run, values)}
    assert shown[5] == '"16.5"^^<http://www.w3.org/2001/XMLSchema#double>'
    assert shown[2] == '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    run = summed_up("SUM(?v)").start()
    (alone,) = (m for m in stretch(run, values[:1]) if len(m.events) == 2)
    assert str(alone.bindings["out"]) == '"14"^^<http://www.w3.org/2001/XMLSchema#integer>'


# ------------------------------------------------------------------ states as numbers

TERMS: list[Term] = [ox.Literal(number) for number in range(1, 6)] + [ox.Literal("x")]


def number_of_term(term: Term | None) -> int:
    if term is None:
        return 0
    if term not in TERMS:
        TERMS.append(term)
    return TERMS.index(term) + 1


def term_of(number: int) -> Term | None:
    return TERMS[number - 1] if number else None


def drawn_cell(function: str, distinct: bool, chance: random.Random) -> Cell:
    """A state of an aggregate that has taken something: terms by their places in TERMS."""
    one: Cell = chance.randint(1, 6)
    if function == "AVG":
        one = [one, chance.randint(1, 6)]
    if distinct and heeds_distinct(function):
        return [one, *chance.sample(range(1, 7), chance.randint(1, 3))]
    return one


@pytest.mark.parametrize(("function", "distinct"), CASES)
def test_states_go_to_numbers_and_back(function: str, distinct: bool) -> None:
    register = Register("r", "aggregate", "v", 0, None, function, distinct)
    chance = random.Random(0)
    seen: dict[str, int] = {}
    for _ in range(200):
        cell = drawn_cell(function, distinct, chance)
        number = number_of(register, cell, Numbers(TERMS[:6], number_of_term))
        terms = Terms(term_of)
        back = cell_of(register, number, terms)
        # Terms are numbered in the order in which they are met.
        assert number_of(register, back, Numbers(terms.found, number_of_term)) == number
        assert seen.setdefault(str(cell), number) == number
    assert len(set(seen.values())) == len(seen)
    for number in (0, FAILED):
        cell = cell_of(register, number, Terms(term_of))
        if function != "COUNT":
            assert number_of(register, cell, Numbers([], number_of_term)) == number


@pytest.mark.parametrize("number", [0, OPENED, NEVER_BOUND, 1])
def test_first_values_go_to_cells_and_back(number: int) -> None:
    register = Register("r", "first", "v", 0)
    terms = Terms(term_of)
    cell = cell_of(register, number, terms)
    assert terms.found == ([TERMS[0]] if number == 1 else [])
    assert number_of(register, cell, Numbers(terms.found, number_of_term)) == number


def test_a_failed_sum_remembers_nothing_else() -> None:
    aggregates = RunningAggregates()
    one = aggregates.add(aggregates.start("SUM", None, True), ox.Literal("x"))
    assert one == aggregates.add(aggregates.add(one, ox.Literal(1)), ox.Literal("y"))


# ------------------------------------------------------------------ bounds


def test_partial_matches_with_equal_sums_are_one_group() -> None:
    run = program(
        "SEQ(B+ : C)",
        "DEFINE GPM B ON s { [] :b ?v FILTER(SUM(?v) <= 6) } DEFINE GPM C ON s { [] :c ?z }",
    ).start()
    native(run)
    for number in range(9):
        push(run, number, "k b 1")
    # In front of another B one for each sum, and one in front of C.
    assert groups(run) == 6 + 1


def test_what_aggregates_remember_goes_with_the_window() -> None:
    gpms = (
        "DEFINE GPM B ON s { ?k :b ?v FILTER(AVG(DISTINCT ?v) >= 0 && SUM(?v) >= 0) } "
        "DEFINE GPM C ON s { ?k :c ?z }"
    )
    run = program("SEQ(B{1,2} : C)", gpms, clauses="WITHIN 20 SECONDS").start()
    terms = native(run).matchers.window
    live = []
    for number in range(1200):
        push(run, number, f"k b {number}")
        live.append(terms.live)
    assert max(live[600:]) <= max(live[:600])
    assert terms.entered > 10 * terms.live


def test_nothing_expires_without_a_window() -> None:
    of = program("SEQ(A ; B)", clauses="WITHIN UNBOUNDED")
    run = of.start()
    native(run)
    push(run, -1e9, "k a 1")
    for number in range(300):
        push(run, number, f"k{number} a 1")
    assert groups(run) == 301
    run = of.resume(run.save())
    assert push(run, 1e9, "k b 2") == ["A@-1e+09 B@1e+09"]
    assert push(run, 1e9 + 1, "k17 b 2") == ["A@17 B@1e+09"]
    bounded = of.start(max_groups=10)
    for number in range(10):
        push(bounded, number, f"k{number} a 1")
    with pytest.raises(LimitExceeded, match="more than 10 groups"):
        push(bounded, 10, "k10 a 1")
    shedding = of.start(max_groups=16, on_limit="shed")
    for number in range(100):
        push(shedding, number, f"k{number} a 1")
    assert groups(shedding) <= 16
    assert push(shedding, 100, "k99 b 1") == ["A@99 B@100"]


@pytest.mark.parametrize("way", ["pushed", "by events", "in batches"])
def test_without_a_window_memory_is_that_of_what_may_still_match(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "COMPACTION_MIN_BYTES", 1 << 14)
    of = program(
        "SEQ(A ; B+ ; C)",
        "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?k :b ?y FILTER(SUM(?y) > 0) } "
        "DEFINE GPM C ON s { ?k :c ?z FILTER(?z < AVG(?y)) }",
        clauses="WITHIN UNBOUNDED",
    )
    run, plain = of.start(), in_python(of)
    first = native(run)
    held, found = [], 0
    for batch in range(40):
        events = []
        for number in range(200 * batch, 200 * batch + 200):
            key, letter = number // 4, "abbc"[number % 4]
            fact = (ox.NamedNode(f"{EX}k{key}"), ox.NamedNode(EX + letter), ox.Literal(number % 7))
            events.append(Event(S, timestamp(number * 1_000_000, NUMBER), 0, [fact]))
        if way == "pushed":
            ours = [match for each in events for match in run.push(S, each.time, each.facts)]
        else:
            ours = list(run.push_batch(encoded(run, events) if way == "in batches" else events))
        theirs = list(plain.push_batch(events))
        assert sorted(comparable(ours), key=repr) == sorted(comparable(theirs), key=repr)
        found += len(ours)
        held.append(native(run).core.tecs.bytes + native(run).matchers.window.bytes)
    assert native(run) is not first
    assert found == run.stats["matches"] > 1000
    # Keys whose last price was not low enough wait for ever; all others have gone.
    assert max(held[20:]) < 4 * max(held[:10]) + 8 * groups(run) * 200
    assert str(run.why_not()) == str(plain.why_not())


def test_aggregates_follow_rows_that_take_all_groups_of_a_range() -> None:
    of = program(
        "SEQ((A : B){1} ; C)",
        "DEFINE GPM A ON s { [] :a ?x } DEFINE GPM B ON s { [] :b ?y FILTER(?y > ?x) } "
        "DEFINE GPM C ON s { [] :c ?z FILTER(?z = MIN(?y) && ?z = SUM(DISTINCT ?y)) }",
    )
    run, plain = of.start(), in_python(of)
    assert any(edge.whole for edge in native(run).tables.edges)
    for some in (run, plain):
        for number, facts in enumerate(("a 1", "a 2", "b 7", "a 3", "b 9")):
            push(some, number, f"k {facts}")
        assert push(some, 5, "k c 8") == []
        assert push(some, 6, "k c 9") == ["A@0 B@4 C@6", "A@1 B@4 C@6", "A@3 B@4 C@6"]
        assert push(some, 7, "k c 7") == ["A@0 B@2 C@7", "A@1 B@2 C@7"]


def test_a_long_stream_of_odd_values_comes_out_as_in_python() -> None:
    """Over several windows, in encoded batches, now and then saved and resumed."""
    of = program(
        "SEQ(B+ ; C)",
        "DEFINE GPM B ON s { ?k :b ?v FILTER(COALESCE(SUM(?v) < 40, COUNT(?v) < 3)) } "
        "DEFINE GPM C ON s { ?k :c ?z BIND(MAX(?v) AS ?m) BIND(COUNT(DISTINCT ?v) AS ?n) "
        "FILTER(?n < 4 || GROUP_CONCAT(?v) != FIRST(?v)) }",
        clauses="WITHIN 15 SECONDS",
    )
    chance = random.Random(7)
    run, plain = of.start(), in_python(of)
    events = []
    for number in range(400):
        subject = ox.NamedNode(f"{EX}k{chance.randint(0, 2)}")
        letter, value = ("c", TERMS[0]) if chance.random() < 0.3 else ("b", chance.choice(ODD))
        fact = (subject, ox.NamedNode(EX + letter), value)
        events.append(Event(S, timestamp(number * 1_000_000, NUMBER), 0, [fact]))
    found = 0
    for some in batches(events, chance):
        ours = list(run.push_batch(encoded(run, some)))
        theirs = list(plain.push_batch(some))
        assert sorted(comparable(ours), key=repr) == sorted(comparable(theirs), key=repr)
        found += len(ours)
        if chance.random() < 0.1:
            run = of.resume(run.save())
    assert found > 100
