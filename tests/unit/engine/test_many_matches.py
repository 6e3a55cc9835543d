"""The bound on the matches that one event gives a query: in every way in which they are listed."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

import pytest
from core_runs import encoded
from engine_runs import S, push, text, triples
from model.queries import run_plainly
from oracle import timestamp

import spaseq
from spaseq.errors import LimitExceeded
from spaseq.rdf.event import NUMBER, Event
from spaseq.rdf.limits import Limits
from spaseq.rdf.native._terms import attend, forget
from spaseq.results import Match
from spaseq.runs import Run

GPMS = (
    "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?k :b ?y } DEFINE GPM C ON s { ?k :c ?z }"
)
SEQ = "SEQ(A : B+ : C)"
GROUPS = " GROUP BY ?k OVER {} SECONDS"
CHANCES = 7
"""The events that an iteration may take or leave out."""
ALL = 2**CHANCES - 1
EVENTS = ["k a 1", *(f"k b {number}" for number in range(CHANCES)), "k c 1"]

LISTED = {
    "one by one": text(SEQ, GPMS),
    "computed": text(SEQ, GPMS, "SELECT (?x + ?z AS ?sum)"),
    "distinct": text(SEQ, GPMS, "SELECT DISTINCT ?k"),
    "construct": text(SEQ, GPMS, "CONSTRUCT { ?k :d ?z }"),
    "the first of each": text(SEQ, GPMS) + " LIMIT 1 PER ?k EVERY 60 SECONDS",
    "chosen by all": text("SEQ(A : B+ : C : !A)", GPMS, "SELECT * EMIT MAX"),
    "skipping": text(SEQ, GPMS, clauses="AFTER MATCH SKIP PAST LAST EVENT WITHIN 10 SECONDS"),
    "skipping to a step": text(SEQ, GPMS, clauses="AFTER MATCH SKIP TO LAST B WITHIN 10 SECONDS"),
    "groups": text(SEQ, GPMS, "SELECT ?k (COUNT(*) AS ?n)") + GROUPS.format(60),
    "groups of windows": text(SEQ, GPMS, "SELECT ?k (COUNT(*) AS ?n)")
    + " GROUP BY ?k OVER TUMBLING 60 SECONDS",
    "groups of choices": text(SEQ, GPMS, "SELECT ?k (COUNT(*) AS ?n)")
    + " GROUP BY (?x + ?z AS ?v) ?k OVER 60 SECONDS",
    "registered": text(SEQ, GPMS, "REGISTER STREAM :out AS CONSTRUCT { ?k :d ?z }"),
    "a window": text("SEQ(A : B+ : C : !A)", GPMS),
    "a deadline": text("SEQ(A : B+ : C : !A WITHIN 2 SECONDS)", GPMS),
    "optional": text("SEQ(A : B+ : C?)", GPMS),
    "two equal lists": text("SEQ(A : (B | B)+ : C)", GPMS),
    "ordered": text(SEQ, GPMS) + " LIMIT 1000",
}
Start = Callable[[spaseq.Program, Limits], Run]


def compiled(of: spaseq.Program, limits: Limits) -> Run:
    return of.start(max_matches=limits.matches, on_limit="shed" if limits.shed else "stop")


def plain(of: spaseq.Program, limits: Limits) -> Run:
    return run_plainly(of.start(), limits)


def one_by_one(run: Run) -> list[Match]:
    found: list[Match] = []
    for time, facts in enumerate(EVENTS):
        found += run.push(S, time, triples(facts))
    return found + run.finish()


def in_a_batch(run: Run) -> list[Match]:
    events = [
        Event(S, timestamp(time * 1_000_000, NUMBER), 0, [tuple(t) for t in triples(facts)])  # type: ignore[misc]
        for time, facts in enumerate(EVENTS)
    ]
    return [*run.push_batch(encoded(run, events)), *run.finish()]


@pytest.mark.parametrize("given", [one_by_one, in_a_batch])
@pytest.mark.parametrize("start", [compiled, plain])
@pytest.mark.parametrize("name", LISTED)
def test_too_many_matches_stop_the_query_by_name(
    name: str, start: Start, given: Callable[[Run], list[Match]]
) -> None:
    program = spaseq.compile(LISTED[name], names=["many"])
    if start is plain and program.queries[0].automaton.timed:
        pytest.skip("the model has no deadlines")
    free = given(start(program, Limits()))
    assert free
    enough = given(start(program, Limits(matches=2**20)))
    assert [str(match.to_json()) for match in enough] == [str(match.to_json()) for match in free]
    with pytest.raises(LimitExceeded) as caught:
        given(start(program, Limits(matches=40)))
    message = caught.value.diagnostic and caught.value.diagnostic.message
    assert message is not None
    assert message.startswith("more than 40 matches are complete at ")
    assert message.endswith(" (--max-matches)")
    assert "raise --max-matches" in str(caught.value)
    assert caught.value.name == "many"


@pytest.mark.parametrize("name", LISTED)
def test_matches_are_steps(name: str) -> None:
    program = spaseq.compile(LISTED[name])
    with pytest.raises(LimitExceeded, match=r"\(--max-steps\)"):
        in_a_batch(program.start(max_steps=40))


@pytest.mark.parametrize("given", [one_by_one, in_a_batch])
@pytest.mark.parametrize("start", [compiled, plain])
def test_shedding_drops_the_matches_beyond_the_bound(
    start: Start, given: Callable[[Run], list[Match]]
) -> None:
    program = spaseq.compile(LISTED["one by one"])
    every = {match.to_json() for match in given(start(program, Limits()))}
    run = start(program, Limits(matches=40, shed=True))
    found = given(run)
    assert len(found) == 40
    assert {match.to_json() for match in found} < every
    assert run.stats["shed_groups"] == 1


class Ended(Exception):
    """What another thread wants."""


@pytest.mark.parametrize("name", [name for name in LISTED if name != "ordered"])
def test_every_listing_can_be_ended(name: str) -> None:
    """2^60 matches; the loops call what attends to others, which ends them the second time.

    Matches that wait for their window are listed at each event, so an event of many suffices there.
    A LIMIT alone ends by itself: the core chooses its matches without a list of all.
    """
    calls: list[None] = []

    def attended() -> None:
        calls.append(None)
        if len(calls) == 2:
            raise Ended

    run = spaseq.compile(LISTED[name]).start()

    def listed() -> list[Match]:
        for time in range(61):
            run.push(S, time / 8, triples(f"k b {time}" if time else "k a 1"))
        return run.push(S, 8, triples("k c 1")) + run.finish()

    attend(get_ident(), attended)
    try:
        with pytest.raises(Ended):
            listed()
    finally:
        forget(get_ident())


@pytest.mark.parametrize("on_limit", ["stop", "shed"])
def test_the_bound_on_groups_holds_within_one_event(on_limit: Any) -> None:
    """2^40 matches begin to wait for their window at the last event."""
    program = spaseq.compile(LISTED["a window"])
    run = program.start(max_groups=1000, on_limit=on_limit)
    for time in range(41):
        run.push(S, time / 8, triples(f"k b {time}" if time else "k a 1"))
    if on_limit == "stop":
        with pytest.raises(LimitExceeded, match=r"groups of partial matches wait at 8 \(--max-g"):
            run.push(S, 8, triples("k c 1"))
    else:
        run.push(S, 8, triples("k c 1"))
        assert 0 < len(run.finish()) <= 1000


def test_a_choice_that_needs_no_list_is_not_bounded() -> None:
    program = spaseq.compile(text(SEQ, GPMS, "SELECT * EMIT MAX"))
    assert len(one_by_one(program.start(max_matches=1))) == 1


def test_an_answer_needs_one_match() -> None:
    program = spaseq.compile(text(SEQ, GPMS, "ASK"))
    assert [match.boolean for match in in_a_batch(program.start(max_matches=1))] == [True]


def test_the_other_queries_give_all_of_their_matches() -> None:
    quiet = text("SEQ(A : B)", GPMS.partition("DEFINE GPM C")[0])
    program = spaseq.compile([LISTED["one by one"], quiet, quiet], names=["many", "one", "equal"])
    run = program.start(max_matches=40)
    with pytest.raises(LimitExceeded) as caught:
        one_by_one(run)
    assert (caught.value.name, run.failing) == ("many", "many")
    without = spaseq.compile([quiet, quiet]).start(max_matches=40)
    assert len(one_by_one(without)) == 2 * CHANCES


@pytest.mark.parametrize("limit", ["max_matches", "max_steps", "max_groups"])
@pytest.mark.parametrize("is_first", [False, True])
def test_the_query_that_reaches_a_limit_is_named_after_the_matches_of_others(
    is_first: bool, limit: str
) -> None:
    """The other query has a match at the event at which the limit is reached."""
    quiet = text("SEQ(A)", "DEFINE GPM A ON s { ?k :b ?x }")
    texts = {"quiet": quiet, "many": LISTED["optional"]}
    names = sorted(texts, reverse=not is_first)
    run = spaseq.compile([texts[name] for name in names], names=names).start(**{limit: 40})  # type: ignore[arg-type]
    with pytest.raises(LimitExceeded) as caught:
        one_by_one(run)
    assert (caught.value.name, run.failing) == ("many", "many")


# ------------------------------------------------------------------ queries evaluated as one


def shared(kind: str, number: int) -> str:
    """One of many queries that differ in a constant, a threshold or their last step."""
    if kind == "constants":
        gpms = f"DEFINE GPM A ON s {{ :k{number} :a ?x }} DEFINE GPM B ON s {{ :k{number} :b ?y }}"
        return text("SEQ(A : B)", gpms)
    if kind == "thresholds":
        a = f"DEFINE GPM A ON s {{ ?k :a ?x FILTER(?x > {number}) }}"
        return text("SEQ(A : B)", a + " DEFINE GPM B ON s { ?k :b ?y }")
    c = f"DEFINE GPM C ON s {{ ?k :c{number} ?z }}"
    return text("SEQ(A : B : C)", GPMS.partition("DEFINE GPM C")[0] + c)


GIVEN = {
    "constants": ([f"k{n} a 1" for n in range(20)] + ["k3 a 1"] * 9, "k3 b 1, k4 b 1"),
    "thresholds": (["k a 1"] * 3 + ["k a 12"] * 9 + ["k a 30"], "k b 1"),
    "steps": (["k a 1"] * 4 + ["k b 1"] * 4, "k c3 1"),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_queries_that_are_evaluated_as_one_are_bounded_one_by_one(kind: str) -> None:
    texts = [shared(kind, number) for number in range(20)]
    names = [f"q{number}" for number in range(20)]
    program = spaseq.compile(texts, names=names)
    before, last = GIVEN[kind]
    run = program.start(max_matches=9)
    assert run.evaluation.listed.divisions
    free = program.start()
    for time, facts in enumerate(before):
        assert push(run, time / 8, facts) == push(free, time / 8, facts)
    counts = [len(free.push(S, 8, triples(last)))]
    assert counts[0] > 9
    with pytest.raises(LimitExceeded, match=r"more than 9 matches are complete at 8 ") as caught:
        run.push(S, 8, triples(last))
    assert caught.value.name == {"constants": "q3", "thresholds": "q0", "steps": "q3"}[kind]


def test_queries_whose_matches_can_double_are_evaluated_alone() -> None:
    ends = [f"DEFINE GPM C ON s {{ ?k :c :v{number} }}" for number in range(20)]
    gpms = GPMS.partition("DEFINE GPM C")[0]
    run = spaseq.compile([text(SEQ, gpms + end) for end in ends]).start()
    assert not run.evaluation.listed.divisions
