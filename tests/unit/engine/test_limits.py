"""Limits of a run: the errors, the state after shedding, and the state after a failure."""

from __future__ import annotations

import pickle
import random
import re
from collections import Counter
from collections.abc import Callable
from threading import get_ident

import pyoxigraph as ox
import pytest
from core_runs import encoded
from engine_runs import EX, R, S, program, push, shown, triples
from model.queries import run_plainly
from oracle import timestamp

import spaseq
from spaseq.errors import LimitExceeded, RunFailed
from spaseq.nfa.native.tables import looks_back
from spaseq.rdf.event import NUMBER, Event, Fact
from spaseq.rdf.limits import Limits
from spaseq.rdf.native._terms import EventBatch, attend, forget
from spaseq.runs import Run

KEYED = program("SEQ(A : B)")
"""A group for each subject."""
COMPARED = program(
    "SEQ(A : B)",
    "DEFINE GPM A ON s { [] :a ?x } DEFINE GPM B ON s { [] :b ?y FILTER(?y > ?x + 0) }",
)
"""A group for each value, each asked about every b."""
TRAILING = program("SEQ(A : !B)")
CONJOINED = program(
    "SEQ(A : (B & C))",
    "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { [] :b ?y } DEFINE GPM C ON s { [] :c ?z }",
)


def compiled(of: spaseq.Program, limits: Limits) -> Run:
    return of.start(
        max_groups=limits.groups,
        max_steps=limits.steps,
        max_memory=limits.memory,
        on_limit="shed" if limits.shed else "stop",
    )


def plain(of: spaseq.Program, limits: Limits) -> Run:
    return run_plainly(of.start(), limits)


TWO_STREAMS = (
    f"PREFIX : <{EX}> SELECT * WITHIN 10 SECONDS FROM STREAM s :s FROM STREAM r :r EMIT LAST "
    "WHERE { SEQ(A : B) DEFINE GPM A ON s { ?k :a ?x } "
    "DEFINE GPM B ON r { ?k :b ?y FILTER(?y > ?x + 0) } }"
)
Start = Callable[[spaseq.Program, Limits], Run]
both = pytest.mark.parametrize("start", [compiled, plain])


# ------------------------------------------------------------------ stopping


@both
def test_too_many_groups_stop_the_run_and_say_what_keeps_them_apart(start: Start) -> None:
    run = start(KEYED, Limits(groups=3))
    for key in range(3):
        push(run, key, f"k{key} a 1")
    with pytest.raises(LimitExceeded) as caught:
        push(run, 3, "k3 a 1")
    text = str(caught.value)
    assert re.match("query:1:[0-9]+: error: ", text)
    assert "more than 3 groups of partial matches wait at 3 (--max-groups)" in text
    assert "4 of them in place 2: A : B, distinguished by ?k (4 values)" in text
    assert re.search("hint: .*--on-limit shed", text)
    diagnostic = caught.value.diagnostic
    assert diagnostic is not None
    source = KEYED.sources[0].text
    assert source[diagnostic.span.start : diagnostic.span.end] == "B"
    assert str(pickle.loads(pickle.dumps(caught.value))) == text


@both
def test_the_bound_counts_what_the_window_has_not_passed_over(start: Start) -> None:
    run = start(KEYED, Limits(groups=11))
    for time in range(200):
        push(run, time, f"k{time} a 1")
    assert run.stats["shed_groups"] == 0


@both
def test_too_many_waiting_matches_stop_the_run(start: Start) -> None:
    run = start(TRAILING, Limits(groups=20))
    with pytest.raises(LimitExceeded, match="matches wait for their window to close"):
        push(run, 0, ", ".join(f"k a {value}" for value in range(21)))


@both
def test_too_many_steps_stop_the_run_and_name_the_place(start: Start) -> None:
    run = start(COMPARED, Limits(steps=10))
    for time in range(5):
        push(run, time, f"k a {2 * time}, k a {2 * time + 1}")
    assert len(push(run, 5, "k b 100")) == 10
    push(run, 6, "k a 100")
    with pytest.raises(LimitExceeded) as caught:
        push(run, 7, "k b 100")
    text = str(caught.value)
    assert "an event at 7 takes more than 10 steps (--max-steps)" in text
    assert "groups it is compared with in place 2: A : B" in text
    assert "spaseq explain" in text


@both
def test_too_many_matches_to_list_stop_the_run(start: Start) -> None:
    run = start(program("SEQ(A : B)", head="SELECT DISTINCT *"), Limits(steps=5))
    for time in range(6):
        push(run, time, "k a 1")
    with pytest.raises(LimitExceeded, match="more than 5 matches are complete at 6"):
        push(run, 6, "k b 1")


@both
def test_candidates_of_guards_are_steps(start: Start) -> None:
    gpms = (
        "DEFINE GPM A ON s { [] :a ?x } DEFINE GPM B ON s { [] :b ?y } "
        "DEFINE GPM C ON s { [] :c ?z FILTER(?z > ?y + 0) } DEFINE GPM D ON s { [] :d ?v }"
    )
    run = start(program("SEQ(A : !(B : C) : D)", gpms), Limits(steps=12))
    push(run, 0, "k a 1")
    for time in range(1, 20):
        push(run, time / 10, "k b 1, k c 1")
    with pytest.raises(LimitExceeded, match=r"at 3 .*conjunctions and negations"):
        push(run, 3, "k d 1")
    assert run.stats["queries"]["query"]["shed_groups"] == 0
    assert run.why_not()


@both
def test_candidates_of_conjunctions_are_steps(start: Start) -> None:
    run = start(CONJOINED, Limits(steps=30))
    push(run, 0, "k a 1")
    push(run, 1, ", ".join(f"k b {value}" for value in range(10)))
    with pytest.raises(LimitExceeded, match="conjunctions and negations"):
        push(run, 1, ", ".join(f"k c {value}" for value in range(10)))


def test_a_bound_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="max_groups must be at least 1"):
        KEYED.start(max_groups=0)
    with pytest.raises(ValueError, match="on_limit"):
        KEYED.start(on_limit="drop")  # type: ignore[arg-type]


# ------------------------------------------------------------------ failing


@both
def test_a_run_that_has_failed_says_so_ever_after(start: Start) -> None:
    run = start(KEYED, Limits(groups=1))
    push(run, 0, "k0 a 1")
    with pytest.raises(LimitExceeded):
        push(run, 1, "k1 a 1")
    calls: list[Callable[[], object]] = [
        lambda: push(run, 2, "k1 b 1"),
        lambda: run.advance(5),
        lambda: run.finish(),
        lambda: run.save(),
        lambda: list(run.push_batch([Event(S, timestamp(3_000_000, NUMBER), 0, ())])),
    ]
    for call in calls:
        with pytest.raises(RunFailed, match=r"the run has failed.*\n?.*more than 1 group of"):
            call()
    assert run.stats["events"] == 2
    assert "SEQ" in run.why_not()


def test_an_error_in_the_midst_of_a_batch_leaves_the_run_failed_and_its_events_counted() -> None:
    run = KEYED.start(max_groups=3)
    events = [
        Event(S, timestamp(time * 1_000_000, NUMBER), 0, facts(f"k{time} a 1"))
        for time in range(10)
    ]
    with pytest.raises(LimitExceeded):
        list(run.push_batch(encoded(run, events)))
    assert run.stats["events"] == 3
    with pytest.raises(RunFailed):
        list(run.push_batch(encoded(run, events[5:])))


def test_the_query_that_failed_is_named_behind_equal_ones() -> None:
    text = KEYED.sources[0].text
    texts = [text, text, text.replace(":a ?x", ":c ?x"), text.replace(":a ?x", ":d ?x")]
    program = spaseq.compile(texts, names=["one", "equal", "quiet", "other"])
    run = program.start(max_groups=1)
    with pytest.raises(LimitExceeded) as raised:
        list(run.push_batch(batch_of(run, "k0 d 1", "k1 d 1")))
    assert (run.failing, raised.value.name) == ("other", "other")
    run = program.start(max_groups=1)
    push(run, 0, "k0 d 1")
    with pytest.raises(LimitExceeded):
        push(run, 1, "k1 d 1")
    assert run.failing == "other"


def batch_of(run: Run, *texts: str) -> EventBatch:
    """One event a second."""
    return encoded(
        run,
        [
            Event(S, timestamp(time * 1_000_000, NUMBER), 0, facts(text))
            for time, text in enumerate(texts)
        ],
    )


def test_matches_taken_one_by_one_end_at_the_event_that_fails() -> None:
    run = KEYED.start(max_groups=3)
    texts = ("k0 a 1", "k0 b 1", "k1 a 1, k2 a 1", "k3 a 1", "k0 b 2")
    matches = run.push_batch(batch_of(run, *texts))
    assert shown([next(matches)]) == ["A@0 B@1"]
    assert run.stats["events"] == 2
    with pytest.raises(LimitExceeded, match=r"more than 3 groups .* wait at 3 "):
        next(matches)
    assert run.stats["events"] == 3
    assert run.stats["matches"] == 1
    assert not list(matches)
    with pytest.raises(RunFailed):
        run.save()


def test_matches_taken_one_by_one_end_where_another_call_fails() -> None:
    run = KEYED.start(max_groups=1)
    matches = run.push_batch(batch_of(run, "k0 a 1, k0 a 2", "k0 b 1", "k0 b 2"))
    assert shown([next(matches)]) == ["A@0 B@1"]
    with pytest.raises(LimitExceeded):
        push(run, 5, "k1 a 1")
    with pytest.raises(RunFailed):
        next(matches)
    assert run.stats["events"] == 3


def facts(text: str) -> list[Fact]:
    return [(t.subject, t.predicate, t.object) for t in triples(text)]


def test_matches_found_before_a_failure_are_not_lost() -> None:
    """They were certain when the event came whose own instant failed."""
    run = spaseq.compile(TWO_STREAMS).start(max_steps=3)
    push(run, 0, "k a 1, k a 2")
    push(run, 1, "k b 3", R)
    with pytest.raises(LimitExceeded):
        push(run, 2, "k b 3, k b 4", R)
    assert shown(run.unreturned) == ["A@0 B@1"] * 2
    again = spaseq.compile(TWO_STREAMS).start(max_steps=3)
    events = [
        Event(S, timestamp(0, NUMBER), 0, facts("k a 1, k a 2")),
        Event(R, timestamp(1_000_000, NUMBER), 0, facts("k b 3")),
        Event(R, timestamp(2_000_000, NUMBER), 0, facts("k b 3, k b 4")),
    ]
    matches = again.push_batch(events)
    assert shown([next(matches), next(matches)]) == ["A@0 B@1"] * 2
    with pytest.raises(LimitExceeded):
        next(matches)
    assert not again.unreturned


# ------------------------------------------------------------------ shedding


@both
def test_the_oldest_groups_go_where_that_is_asked_for(start: Start) -> None:
    run = start(KEYED, Limits(groups=16, shed=True))
    for key in range(40):
        push(run, key / 10, f"k{key} a 1")
        assert run.stats["groups"] <= 16
    assert run.stats["shed_groups"] == 40 - run.stats["groups"]
    left = [key for key in range(40) if push(run, 5, f"k{key} b 1")]
    assert left == list(range(40 - len(left), 40))
    assert 14 <= len(left) <= 16
    assert run.stats["queries"]["query"]["shed_groups"] == run.stats["shed_groups"]


@both
def test_the_oldest_waiting_matches_go(start: Start) -> None:
    run = start(TRAILING, Limits(groups=16, shed=True))
    for time in range(40):
        push(run, time / 10, "k a 1")
    run.push(S, 4, triples("j b 1"))
    shed = run.stats["shed_groups"]
    assert 24 <= shed <= 26
    found = shown(run.finish())
    assert len(found) == 40 - shed
    assert {"A@3.9", "A@0"} & {*found} == {"A@3.9"}


def test_where_steps_run_out_half_of_the_groups_go_and_the_event_is_taken() -> None:
    run = COMPARED.start(max_steps=10, on_limit="shed")
    for time in range(35):
        push(run, time / 10, f"k a {time}")
    found = push(run, 4, "k b 100, k b 101")
    # 35 → 17 → 8 → 4 groups, of which two rows meet 8.
    assert run.stats["shed_groups"] == 31
    assert found == sorted(f"A@{time / 10:g} B@4" for time in range(31, 35) for _ in range(2))
    assert len(push(run, 4.5, "k b 100")) == 4


def test_an_event_of_one_triple_is_taken_back_in_the_midst_of_a_batch() -> None:
    run = COMPARED.start(max_steps=10, on_limit="shed")
    texts = [f"k a {time}" for time in range(35)] + ["k b 100", "k c 1", "k b 101"]
    events = [
        Event(S, timestamp(time * 100_000, NUMBER), 0, facts(text))
        for time, text in enumerate(texts)
    ]
    found = shown(run.push_batch(encoded(run, events)))
    # 35 → 17 → 8 groups, that both meet.
    assert run.stats["shed_groups"] == 27
    assert found == sorted(
        f"A@{time / 10:g} B@{end}" for time in range(27, 35) for end in (3.5, 3.7)
    )
    assert run.stats["events"] == 38


def test_what_cannot_take_an_event_back_refuses_to_shed_for_steps() -> None:
    with pytest.raises(LimitExceeded, match="has conjunctions, or negations that look back"):
        CONJOINED.start(max_steps=5, on_limit="shed")
    CONJOINED.start(max_steps=5)
    CONJOINED.start(max_groups=5, on_limit="shed")


def test_what_was_shed_is_told_by_a_resumed_run() -> None:
    run = KEYED.start(max_groups=4, on_limit="shed")
    for key in range(10):
        push(run, key, f"k{key} a 1")
    shed = run.stats["shed_groups"]
    assert shed > 0
    resumed = KEYED.resume(run.save(), max_groups=4, on_limit="shed")
    assert resumed.stats["shed_groups"] == shed
    for key in range(10, 20):
        push(resumed, key, f"k{key} a 1")
    assert resumed.stats["shed_groups"] > shed


@pytest.mark.parametrize("seed", range(42))
@both
def test_what_is_left_matches_as_it_would_have(start: Start, seed: int) -> None:
    """Matches of a run that sheds are matches of one that does not."""
    chance = random.Random(seed)
    text = chance.choice(
        (
            "SEQ(A : B)",
            "SEQ(A ; B)",
            "SEQ(A : A : B)",
            "SEQ(A ; !B : A)",
            "SEQ(A : !B)",
            "SEQ(A : (A & B))",
            "SEQ(A : !(A ; B) : B)",
        )
    )
    of = program(text, chance.choice((KEYS, VALUES)))
    limits = Limits(groups=chance.choice((3, 5, 9)), shed=True)
    if start is compiled and not looks_back(of.queries[0].automaton) and chance.random() < 0.5:
        limits = Limits(limits.groups, chance.choice((4, 8)), shed=True)
    free, bound = start(of, Limits()), start(of, limits)
    ours, theirs = Counter[str](), Counter[str]()
    for time in range(80):
        facts = ", ".join(
            f"k{chance.randint(0, 4)} {chance.choice('aab')} {chance.randint(0, 9)}"
            for _ in range(chance.choice((0, 1, 1, 2, 3)))
        )
        theirs.update(push(free, time, facts))
        ours.update(push(bound, time, facts))
        assert bound.stats["groups"] <= 9
    theirs.update(shown(free.finish()))
    ours.update(shown(bound.finish()))
    assert not ours - theirs


KEYS = "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?k :b ?y }"
VALUES = "DEFINE GPM A ON s { [] :a ?x } DEFINE GPM B ON s { [] :b ?y FILTER(?y > ?x + 0) }"


# ------------------------------------------------------------------ graph patterns

ONE_EVENT = f"PREFIX : <{EX}> SELECT * WITHIN 1 SECOND FROM STREAM s :s WHERE {{ SEQ(A) "
PRODUCT = "DEFINE GPM A ON s { %s ?b :p ?y . ?c :p ?z FILTER(?x + ?y + ?z < 0) } }"
IN_C = ONE_EVENT + PRODUCT % "?a :p ?x ."
IN_PYTHON = ONE_EVENT + PRODUCT % "{ SELECT ?a ?x { ?a :p ?x } LIMIT 999 }"
many = ", ".join(f"k{number} p {number}" for number in range(100))


@pytest.mark.parametrize("text", [IN_C, IN_PYTHON])
@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"max_steps": 50_000}, "more than 50,000 steps in GPM A (--max-steps)"),
        ({"max_memory": 200_000}, "more than 200,000 bytes for its rows in GPM A (--max-memory)"),
    ],
)
def test_a_graph_pattern_is_bounded(text: str, bounds: dict[str, int], said: str) -> None:
    run = spaseq.compile(text).start(**bounds)  # type: ignore[arg-type]
    with pytest.raises(LimitExceeded) as raised:
        push(run, 1, many)
    assert said in str(raised.value)
    assert raised.value.diagnostic is not None
    span = raised.value.diagnostic.span
    assert text[: span.end].endswith("SEQ(A")
    with pytest.raises(RunFailed):
        push(run, 2, "k0 p 0")


@pytest.mark.parametrize("text", [IN_C, IN_PYTHON])
def test_events_within_the_bounds_of_a_graph_pattern_count_anew(text: str) -> None:
    """The steps of an event do not count for the next one."""
    run = spaseq.compile(text).start(max_steps=3_000, max_memory=1_000_000)
    for time in range(20):
        assert push(run, time, ", ".join(f"k{number} p {number}" for number in range(10))) == []
    assert push(run, 20, "k0 p -1") != []


def test_indexes_over_rows_count_as_their_memory() -> None:
    """Rows of 8 bytes fit the bound; the slots that tell them apart do not."""
    text = ONE_EVENT + "DEFINE GPM A ON s { ?a :p [] . ?b :p [] } }"
    facts = ", ".join(f"k{n} p 1" for n in range(64))
    rows = 64 * 64 * 4 * 4
    with pytest.raises(LimitExceeded, match="bytes for its rows in GPM A"):
        push(spaseq.compile(text).start(max_memory=rows + 1000), 1, facts)
    assert len(push(spaseq.compile(text).start(max_memory=4 * rows), 1, facts)) == 64 * 64


def test_a_pattern_that_scans_without_success_counts_what_it_scans() -> None:
    text = ONE_EVENT + "DEFINE GPM A ON s { :k0 :p ?x . ?b :q ?b } }"
    facts = ", ".join([*(f"k0 p {n}" for n in range(100)), *(f"k{n} q {n}" for n in range(100))])
    with pytest.raises(LimitExceeded, match="more than 5,000 steps in GPM A"):
        push(spaseq.compile(text).start(max_steps=5_000), 1, facts)


def test_a_pattern_that_two_queries_share_names_the_gpm_of_each() -> None:
    other = IN_C.replace("SEQ(A)", "SEQ(Much)").replace("GPM A", "GPM Much")
    run = spaseq.compile([other]).start(max_steps=50_000)
    with pytest.raises(LimitExceeded, match="in GPM Much"):
        push(run, 1, many)


# ------------------------------------------------------------------ several queries

IDLE = KEYED.sources[0].text.replace(":b", ":never")
LISTED = program("SEQ(A : B)", head="SELECT DISTINCT *")


@pytest.mark.parametrize(
    ("limited", "bounds", "events", "said"),
    [
        (KEYED, {"max_groups": 3}, ["k1 a 1", "k2 a 1", "k3 a 1", "k4 a 1"], "wait at 3 "),
        (COMPARED, {"max_steps": 2}, ["k a 1", "k a 2", "k a 3", "k b 9"], "an event at 3 takes"),
        (LISTED, {"max_steps": 2}, ["k a 1", "k a 1", "k a 1", "k b 1"], "are complete at 3 "),
    ],
)
def test_the_compiled_loop_of_several_queries_names_the_time_of_a_limit(
    limited: spaseq.Program, bounds: dict[str, int], events: list[str], said: str
) -> None:
    texts = [limited.sources[0].text, IDLE]
    run = spaseq.compile(texts).start(**bounds)  # type: ignore[arg-type]
    for time, facts in enumerate(events[:-1]):
        push(run, time, facts)
    with pytest.raises(LimitExceeded, match=said):
        push(run, len(events) - 1, events[-1])
    batch = [(time, triples(facts)) for time, facts in enumerate(events)]
    with pytest.raises(LimitExceeded, match=said):
        list(spaseq.run(texts, streams={S: batch}, **bounds))  # type: ignore[arg-type]


# ------------------------------------------------------------------ values


def doubling(expression: str, times: int) -> str:
    """A query that applies an expression of `{}` to its own result, over and over."""
    binds = " ".join(
        f"BIND({expression.format(f'?v{number}')} AS ?v{number + 1})" for number in range(times)
    )
    return (
        ONE_EVENT
        + f"DEFINE GPM A ON s {{ ?k :a ?v0 {binds} BIND(STRLEN(STR(?v{times})) AS ?n) }} }}"
    )


def nested(expression: str, times: int) -> str:
    """As `doubling`, in one expression."""
    whole = "STR(?v)"
    for _ in range(times):
        whole = expression.format(whole)
    return ONE_EVENT + f"DEFINE GPM A ON s {{ ?k :a ?v BIND(STRLEN({whole}) AS ?n) }} }}"


GROWING = {
    "native": doubling("CONCAT(STR({0}), STR({0}))", 40),
    "python": doubling("CONCAT(STR({0}), STR({0}), LCASE(STR({0})))", 40),
    "replaced": nested('REPLACE({0}, "1", "11")', 40),
    "replaced by groups": nested('REPLACE({0}, "(1)", "$1$1")', 40),
    "long replacement": ONE_EVENT
    + "DEFINE GPM A ON s { ?k :a ?v "
    + 'BIND(REPLACE("{}", "1", "{}") AS ?w) }} }}'.format("1" * 9000, "11" * 9000),
    "in a filter": ONE_EVENT
    + "DEFINE GPM A ON s { ?k :a ?v FILTER(STRLEN("
    + nested('REPLACE({0}, "1", "11")', 40).partition("STRLEN(")[2].partition(" AS ?n")[0]
    + " > 3) } }",
}


@pytest.mark.parametrize("name", GROWING)
def test_an_expression_makes_no_text_without_end(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Replacing millions of characters takes seconds.
    monkeypatch.setattr("spaseq.gpm.python.regular.MOST_TEXT_BYTES", 1 << 18)
    monkeypatch.setattr("spaseq.gpm.python.regular._AT_ONCE", 1 << 12)
    run = spaseq.compile(GROWING[name], names=["long"]).start()
    with pytest.raises(LimitExceeded) as caught:
        push(run, 3, "k a 1111")
    assert "an expression makes a text of more than 16,777,216 bytes at 3" in str(caught.value)
    assert caught.value.name == "long"


def test_texts_of_an_event_count_towards_the_memory() -> None:
    text = doubling("CONCAT(STR({0}), STR({0}))", 12)
    run = spaseq.compile(text).start(max_memory=200_000)
    for time in range(20):
        assert push(run, time, "k a 1111")
    run = spaseq.compile(text).start(max_memory=20_000)
    with pytest.raises(LimitExceeded, match=r"20,000 bytes for its rows in GPM A \(--max-memory\)"):
        push(run, 0, "k a 1111")


def test_a_number_without_end_is_an_error_of_its_expression() -> None:
    text = doubling("{0} * {0}", 30).replace("STRLEN(STR(?v30))", "?v30 > 0")
    run = spaseq.compile(text).start()
    (match,) = run.push(S, 1, triples("k a 9999"))
    names = set(match.bindings)  # the assertion must not show the numbers
    assert "v18" in names
    assert names.isdisjoint(("v19", "v30", "n"))


# ------------------------------------------------------------------ paths

RING = [(f"n{number}", "q", f"n{(number + 1) % 60}") for number in range(60)]


@pytest.mark.parametrize(
    "where",
    [
        "GRAPH :kb { ?k :q* ?o }",
        "GRAPH :kb { ?k (:q|^:q)* ?o }",
        "FILTER EXISTS { GRAPH :kb { ?m (:q|^:q)+ ?o FILTER(?o = :nowhere) } }",
        "GRAPH :kb { :n1 (:q/:q)* :nowhere }",
    ],
)
def test_paths_over_a_knowledge_base_count_steps(where: str) -> None:
    named = ox.NamedNode
    facts = [ox.Triple(*(named(EX + name) for name in fact)) for fact in RING]
    text = (
        f"PREFIX : <{EX}> SELECT ?k WITHIN 1 SECOND FROM STREAM s :s FROM NAMED :kb "
        "WHERE { SEQ(A) "
        f"DEFINE GPM A ON s {{ ?k :a ?x {where} }} }}"
    )
    kb = {EX + "kb": facts}
    free = spaseq.compile(text).start(kb=kb)
    enough = spaseq.compile(text).start(kb=kb, max_steps=100_000)
    assert push(free, 0, "n1 a 1") == push(enough, 0, "n1 a 1")

    def bounded() -> list[str]:
        # Searches that no event takes part in are done at the start.
        return push(spaseq.compile(text).start(kb=kb, max_steps=50), 0, "n1 a 1")

    with pytest.raises(LimitExceeded, match=r"more than 50 steps .*\(--max-steps\)"):
        bounded()


def test_a_search_of_paths_can_be_ended() -> None:
    """Without a bound; a ring of 3,000 nodes has nine million pairs."""
    facts = [
        ox.Triple(
            ox.NamedNode(f"{EX}n{number}"),
            ox.NamedNode(EX + "q"),
            ox.NamedNode(f"{EX}n{(number + 1) % 3000}"),
        )
        for number in range(3000)
    ]
    text = (
        f"PREFIX : <{EX}> SELECT ?k WITHIN 1 SECOND FROM STREAM s :s FROM NAMED :kb "
        "WHERE { SEQ(A) DEFINE GPM A ON s { ?k :a ?x GRAPH :kb { ?a (:q|^:q)* ?b } } }"
    )
    program = spaseq.compile(text)

    def end() -> None:
        raise InterruptedError

    attend(get_ident(), end)
    try:
        with pytest.raises(InterruptedError):
            program.start(kb={EX + "kb": facts})
    finally:
        forget(get_ident())
