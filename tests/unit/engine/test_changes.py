"""Queries added to a run, replaced and removed: matches of runs that never had another query.

A query that begins between two events has the matches of a run of its own over the events from
then on. A query that is not touched has the matches, and their order, of a run without changes.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.engine.moved_state import moved
from spaseq.errors import ArgumentError, ChangeError, KbError
from spaseq.io.merge import merged_batches
from spaseq.rdf.event import NUMBER, Event
from spaseq.rdf.native._terms import EventBatch, EventSequence
from spaseq.rdf.time import from_micros

EX = "http://example.org/"
S, R = EX + "s", EX + "r"
EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "40"))
SEED = int(os.environ.get("SPASEQ_SEED", "0"))


def query(
    sequence: str,
    gpms: str,
    select: str = "SELECT *",
    window: str = "WITHIN 8 SECONDS",
    tail: str = "",
    streams: str = "s",
) -> str:
    sources = " ".join(f"FROM STREAM {name} :{name}" for name in streams.split())
    return f"PREFIX : <{EX}> {select} {window} {sources} WHERE {{ SEQ({sequence}) {gpms} }} {tail}"


A = "DEFINE GPM A ON s { ?x :p ?v } "
B = "DEFINE GPM B ON s { ?x :p ?w } "
HIGHER = "DEFINE GPM B ON s { ?x :p ?w FILTER(?w > ?v) } "
Q = "DEFINE GPM Q ON s { ?y :q ?u } "
POOL = (
    query("A ; B", A + B),
    query("A ; B", A + HIGHER, "SELECT ?x ?w"),
    query("A : Q", A + Q, window="WITHIN 3 SECONDS"),
    query("A , Q", A + Q),
    query("A ; B", "DEFINE GPM A ON s { :x1 :p ?v } DEFINE GPM B ON s { :x1 :p ?w }"),
    query("A : B", "DEFINE GPM A ON s { ?x :p 2 } DEFINE GPM B ON s { ?x :q ?w }"),
    query("A : B", A + "DEFINE GPM B ON s { ?y :q ?w FILTER(?y = :x2 && ?v < 3) }"),
    query("A ; !Q ; B", A + B + Q),
    query("A ; !Q", A + Q, window="WITHIN 4 SECONDS"),
    query("A? ; Q", A + Q),
    query("A+ ; Q", A + Q, "SELECT (SUM(?v) AS ?sum) (LAST(?v) AS ?end)"),
    query("(A & Q)", A + Q),
    query("(A AND Q)", A + Q, window="WITHIN 3 SECONDS"),
    query("A ; B", A + B, window="WITHIN 4 EVENTS"),
    query("A ; Q", A + Q, "SELECT DISTINCT ?x", window="WITHIN 5 EVENTS"),
    query("A ; B", A + HIGHER, window="WITHIN TUMBLING 5 SECONDS"),
    query("A ; Q", A + Q, window="WITHIN UNBOUNDED"),
    query("A ; B", A + B, window="WITHIN 8 SECONDS PARTITION BY ?x EMIT NEXT"),
    query("A , B", A + B, window="WITHIN 8 SECONDS PARTITION BY ?x"),
    query("A ; B", A + B, tail="AFTER MATCH SKIP PAST LAST EVENT LIMIT 1"),
    query("A", "DEFINE GPM A ON s { ?x ?any ?v }"),
    query("A", "DEFINE GPM A ON s { ?x :p ?v FILTER(STRLEN(MD5(STR(?v))) > ?v) }"),
    query("A ; B", A + "DEFINE GPM B ON s { ?x :q ?w FILTER NOT EXISTS { ?z :p ?v } }"),
    query("A ; C", A + "DEFINE GPM C ON r { ?x :p ?w }", streams="s r"),
    query("(A & C)", A + "DEFINE GPM C ON r { ?y :q ?w }", streams="s r"),
    query("C : C", "DEFINE GPM C ON r { ?x :q ?w }", streams="r"),
    query("A", A, "ASK"),
    query("A : B", A + B, "CONSTRUCT { ?x :both ?v , ?w }"),
    query("A", A, "SELECT ?x (COUNT(*) AS ?n)", tail="GROUP BY ?x OVER 5 SECONDS"),
    query("A", A, "SELECT ?x (SUM(?v) AS ?n)", tail="GROUP BY ?x OVER TUMBLING 4 SECONDS"),
)


def events(draw: random.Random, count: int) -> list[Event]:
    """Events of two streams, in order; some share their timestamp."""
    found: list[Event] = []
    second, ordinals = 0, {S: 0, R: 0}
    for number in range(count):
        step = draw.choice((0, 1, 1, 2, 5))
        if step:
            second, ordinals = second + step, {S: 0, R: 0}
        stream = draw.choice((S, S, S, R))
        facts = tuple(
            (
                ox.NamedNode(f"{EX}x{draw.randrange(3)}"),
                ox.NamedNode(EX + draw.choice("ppq")),
                ox.Literal(draw.randrange(4)),
            )
            for _ in range(draw.randrange(1, 3))
        )
        time = from_micros(second * 10**6, NUMBER)
        name = ox.NamedNode(f"{EX}e{number}")
        found.append(Event(stream, time, ordinals[stream], facts, name))
        ordinals[stream] += 1
    return found


def shown(match: spaseq.Match) -> str:
    """A match without the name of its query."""
    data = json.loads(match.to_json())
    del data["query"]
    return json.dumps(data, sort_keys=True)


@dataclass
class Feed:
    """A run and the way in which events reach it."""

    run: spaseq.Run
    way: str

    def give(self, some: Sequence[Event]) -> list[spaseq.Match]:
        if self.way == "push":
            pushed = [self.run.push(e.stream, e.time, _triples(e), e.name) for e in some]
            return [match for found in pushed for match in found]
        if self.way == "objects":
            return list(self.run.push_batch(some))
        return [m for each in encoded(self.run, some) for m in self.run.push_batch(each)]


def _triples(event: Event) -> list[ox.Triple]:
    return [ox.Triple(*fact) for fact in event.facts]


def encoded(run: spaseq.Run, some: Sequence[Event]) -> Iterator[EventSequence]:
    """Events as readers encode and merge them."""
    batches: dict[str, EventBatch] = {}
    for event in some:
        batch, at = batches.get(event.stream), event.time
        if batch is None:
            batch = EventBatch(run.rows.matchers.dictionary, event.stream)
            batches[event.stream] = batch
        batch.add(event.facts, at.micros, event.ordinal, event.name, at.term, False, event.size, 0)
    return merged_batches([[batch] for batch in batches.values()])


class Alone:
    """The run of one query over the events from some event on."""

    def __init__(self, text: str):
        self.program = spaseq.compile(text, names=["q"])
        self.run = self.program.start()
        self.expected: list[str] = []
        self.found: list[str] = []

    def give(self, event: Event) -> None:
        if event.stream in self.program.streams:
            found = self.run.push(event.stream, event.time, _triples(event), event.name)
        else:
            found = self.run.advance(event.time)
        self.expected += map(shown, found)


@pytest.mark.parametrize("seed", range(SEED, SEED + EXAMPLES))
def test_changed_runs_have_the_matches_of_runs_of_one_query(seed: int) -> None:
    draw = random.Random(seed)
    stream = events(draw, 40)
    texts = {f"q{n}": draw.choice(POOL) for n in range(draw.randrange(1, 4))}
    fed = Feed(
        spaseq.compile(list(texts.values()), names=list(texts)).start(),
        draw.choice(("push", "objects", "encoded")),
    )
    still = dict(texts)
    unchanged = Feed(spaseq.compile(list(texts.values()), names=list(texts)).start(), fed.way)
    alone = {name: Alone(text) for name, text in texts.items()}
    ended: list[Alone] = []
    kept: list[spaseq.Match] = []
    chunks: list[Sequence[Event]] = []
    number, at = len(texts), 0
    while at < len(stream):
        size = draw.choice((1, 2, 5))
        while at + size < len(stream) and stream[at + size].time == stream[at + size - 1].time:
            size += 1  # a query that begins within a timestamp counts its ordinals from there
        some = stream[at : at + size]
        at += size
        chunks.append(some)
        readers = set(fed.run.clock.streams)
        given = [event for event in some if event.stream in readers]
        for match in fed.give(given):
            alone[match.query].found.append(shown(match))
            kept.append(match)
        for event in given:
            for each in alone.values():
                each.give(event)
        kinds = ["add", "add", "remove", "replace", "keep", "save", "bind"]
        for kind in draw.choices(kinds, k=draw.choice((0, 0, 1, 2))):
            if kind == "add":
                name, text = f"q{number}", draw.choice(POOL)
                number += 1
                fed.run.add(name, spaseq.compile(text, names=[name]), new_streams=True)
                alone[name], texts[name] = Alone(text), text
            elif kind == "remove" and len(alone) > 1:
                name = draw.choice(list(alone))
                fed.run.remove(name)
                ended.append(alone.pop(name))
                still.pop(name, None)
            elif kind == "replace":
                name, text = draw.choice(list(alone)), draw.choice(POOL)
                fed.run.replace(name, spaseq.compile(text, names=[name]), new_streams=True)
                ended.append(alone[name])
                alone[name], texts[name] = Alone(text), text
                still.pop(name, None)
            elif kind == "keep":
                name = draw.choice(list(alone))
                fed.run.replace(name, spaseq.compile(texts[name], names=[name]), "keep")
                still.pop(name, None)
            elif kind == "save" and set(fed.run.program.streams) == set(fed.run.clock.streams):
                names = list(alone)
                program = spaseq.compile([texts[n] for n in names], names=names)
                order = [q.plan.name for q in fed.run.program.queries]
                program = spaseq.compile([texts[n] for n in order], names=order)
                fed.run = program.resume(fed.run.save())
    for match in fed.run.finish():
        alone[match.query].found.append(shown(match))
        kept.append(match)
    for each in alone.values():
        each.expected += map(shown, each.run.finish())
    for each in (*alone.values(), *ended):
        assert sorted(each.found) == sorted(each.expected)
    readers = set(unchanged.run.clock.streams)
    before = []
    for some in chunks:
        before += unchanged.give([event for event in some if event.stream in readers])
    before += unchanged.run.finish()
    assert [shown(m) + m.query for m in kept if m.query in still] == [
        shown(m) + m.query for m in before if m.query in still
    ]


# ------------------------------------------------------------------ single cases


def triple(subject: str, predicate: str, value: object) -> list[ox.Triple]:
    term = value if isinstance(value, ox.NamedNode) else ox.Literal(value)  # type: ignore[arg-type]
    return [ox.Triple(ox.NamedNode(EX + subject), ox.NamedNode(EX + predicate), term)]


def started(*texts: str, **options: object) -> spaseq.Run:
    names = [f"q{n}" for n in range(len(texts))]
    return spaseq.compile(texts, names=names).start(**options)  # type: ignore[arg-type]


ONE = query("A", A, "SELECT ?x ?v")
PAIR = query("A ; B", A + B, "SELECT ?x ?v ?w", window="WITHIN 100 SECONDS")


def test_a_query_sees_the_events_from_then_on() -> None:
    run = started(PAIR)
    run.push(S, 1, triple("a", "p", 1))
    run.add("later", spaseq.compile(PAIR))
    assert [m.query for m in run.push(S, 2, triple("a", "p", 2))] == ["q0"]
    assert [m.query for m in run.push(S, 3, triple("a", "p", 3))] == ["q0", "later"]
    run.remove("q0")
    (match,) = run.push(S, 4, triple("a", "p", 4))
    assert match.query == "later"
    assert [e.time.micros for e in match.events] == [3_000_000, 4_000_000]
    assert [q.plan.name for q in run.program.queries] == ["later"]
    assert run.stats["events"] == 4


def test_a_query_can_begin_between_two_events_of_a_timestamp() -> None:
    run = started(ONE)
    run.push(S, 1, triple("a", "p", 1))
    run.add("q1", spaseq.compile(PAIR))
    assert [m.query for m in run.push(S, 1, triple("a", "p", 2))] == ["q0"]
    found = run.push(S, 1, triple("a", "p", 3))
    assert [m.query for m in found] == ["q0", "q1"]
    assert [e.ordinal for e in found[1].events] == [1, 2]


def test_queries_change_while_the_matches_of_a_batch_are_consumed() -> None:
    run = started(ONE)
    batch = EventBatch(run.rows.matchers.dictionary, S)
    for second in range(6):
        facts = [(ox.NamedNode(EX + "a"), ox.NamedNode(EX + "p"), ox.Literal(second))]
        batch.add(facts, second * 10**6, stamp=ox.Literal(second))
    found = []
    for match in run.push_batch(batch):
        found.append((match.query, match.end.micros // 10**6))
        if found[-1] == ("q0", 1):
            run.add("q1", spaseq.compile(ONE))
        elif found[-1] == ("q1", 3):
            run.remove("q0")
    assert found == [("q0", 0), ("q0", 1), ("q0", 2), ("q1", 2), ("q0", 3), ("q1", 3), ("q1", 4),
                     ("q1", 5)]  # fmt: skip


def test_keep_continues_the_partial_matches() -> None:
    run = started(PAIR, ONE)
    run.push(S, 1, triple("a", "p", 1))
    run.replace("q0", spaseq.compile(PAIR.replace("?x ?v ?w", "?w")), "keep")
    first, other = run.push(S, 2, triple("a", "p", 2))
    assert (first.query, dict(first.bindings)) == ("q0", {"w": ox.Literal(2)})
    assert other.query == "q1"
    assert run.stats["matches"] == 3
    run.replace("q0", spaseq.compile(PAIR), "fresh")
    assert [m.query for m in run.push(S, 3, triple("a", "p", 3))] == ["q1"]


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        (PAIR.replace("100 SECONDS", "99 SECONDS"), "WITHIN"),
        (PAIR.replace("A ; B", "A : B"), "automaton"),
        (PAIR.replace("?x :p ?w", "?y :p ?w"), "graph pattern B"),
        (PAIR.replace("WHERE", "EMIT NEXT WHERE"), "EMIT"),
        (PAIR.replace("?w }", "?w FILTER(?w > ?v) }"), "filters or BINDs of B"),
        (PAIR.replace("(A ; B)", "(A ; B ; B)"), "steps"),
        (PAIR.replace("SELECT", "SELECT DISTINCT"), "DISTINCT"),
        (PAIR.replace("WHERE", "AFTER MATCH SKIP TO NEXT WHERE"), "AFTER MATCH"),
        (PAIR + "LIMIT 1 PER ?x", "LIMIT"),
        (PAIR + "LIMIT 2 EVERY 5 SECONDS", "LIMIT"),
        (PAIR.replace("?x ?v ?w", "?x") + "GROUP BY ?x OVER 5 SECONDS", "GROUP"),
        (PAIR.replace(" ?w WITHIN", " (?v AS ?u) WITHIN").replace("SELECT", "SELECT"), ""),
    ],
)
def test_keep_names_what_differs(other: str, differs: str) -> None:
    run = started(PAIR)
    run.push(S, 1, triple("a", "p", 1))
    program = spaseq.compile(other)
    if differs:
        with pytest.raises(ChangeError, match=differs):
            run.replace("q0", program, "keep")
        assert len(run.push(S, 2, triple("a", "p", 2))) == 1
    else:
        run.replace("q0", program, "keep")
        assert len(run.push(S, 2, triple("a", "p", 2))) == 1


@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [
        ("LIMIT 1 EVERY 5 SECONDS", "LIMIT 1 EVERY 6 SECONDS", "LIMIT"),
        ("LIMIT 1 PER ?x EVERY 5 SECONDS", "LIMIT 1 PER ?v EVERY 5 SECONDS", "LIMIT"),
        ("GROUP BY ?x OVER 5 SECONDS", "GROUP BY ?x OVER 6 SECONDS", "GROUP"),
        ("GROUP BY ?x OVER 5 SECONDS", "GROUP BY ?x OVER TUMBLING 5 SECONDS", "GROUP"),
    ],
)
def test_what_limits_and_groups_remember_must_fit(before: str, after: str, differs: str) -> None:
    pair = PAIR.replace("?x ?v ?w", "?x")
    run = started(pair + before)
    with pytest.raises(ChangeError, match=differs):
        run.replace("q0", spaseq.compile(pair + after), "keep")
    run.replace("q0", spaseq.compile(pair + before), "keep")


def test_keep_continues_the_spans_of_a_limit() -> None:
    limited = ONE + "LIMIT 1 PER ?x EVERY 5 SECONDS"
    run = started(limited)
    assert len(run.push(S, 1, triple("a", "p", 1))) == 1
    assert run.push(S, 2, triple("a", "p", 1)) == []
    run.replace("q0", spaseq.compile(limited.replace("SELECT ?x ?v", "SELECT ?v")), "keep")
    assert run.push(S, 3, triple("a", "p", 1)) == []
    assert len(run.push(S, 4, triple("b", "p", 1))) == 1
    assert len(run.push(S, 6, triple("a", "p", 1))) == 1
    other = ONE.replace("?x ?v", "(?v + 1 AS ?k)") + "LIMIT 1 PER ?k EVERY 5 SECONDS"
    run = started(other)
    with pytest.raises(ChangeError, match="LIMIT"):
        run.replace("q0", spaseq.compile(other.replace("+ 1", "+ 2")), "keep")


def test_a_number_that_a_new_pattern_takes_is_no_longer_that_of_the_old_one() -> None:
    old = query("A", "DEFINE GPM A ON s { ?x :q ?v }")
    run = spaseq.compile(query("A", A), names=["a"]).start()
    run.add("old", spaseq.compile(old))
    run.remove("old")
    gpms = "DEFINE GPM A ON s { ?x :r ?v } DEFINE GPM B ON s { ?x :q ?w } "
    run.add("new", spaseq.compile(query("A ; B", gpms)))
    for second, predicate in enumerate(("r", "r", "q")):
        fact = ox.Triple(ox.NamedNode(EX + "x"), ox.NamedNode(EX + predicate), ox.Literal(1))
        found = run.push(S, second, [fact])
    assert [match.query for match in found] == ["new", "new"]


def test_one_of_equal_queries_can_be_changed_alone() -> None:
    run = started(PAIR, PAIR, PAIR)
    run.push(S, 1, triple("a", "p", 1))
    run.remove("q0")
    run.replace("q2", spaseq.compile(PAIR), "fresh")
    assert [m.query for m in run.push(S, 2, triple("a", "p", 2))] == ["q1"]
    assert [m.query for m in run.push(S, 3, triple("a", "p", 3))] == ["q1", "q2"]
    names = [q.plan.name for q in run.program.queries]
    again = spaseq.compile([PAIR, PAIR], names=names).resume(run.save())
    assert [m.query for m in again.push(S, 4, triple("a", "p", 4))] == ["q1", "q2"]


def test_equal_queries_of_different_age_do_not_share_a_saved_state() -> None:
    run = started(query("A ; B", A + B, window="WITHIN UNBOUNDED"))
    text = query("A ; B", A + B, window="WITHIN UNBOUNDED")
    run.push(S, 1, triple("a", "p", 1))
    run.add("q1", spaseq.compile(text))
    again = spaseq.compile([text, text], names=["q0", "q1"]).resume(run.save())
    for each in (run, again):
        assert [m.query for m in each.push(S, 2, triple("a", "p", 2))] == ["q0"]


def test_bound_variables_change_and_partial_matches_stay() -> None:
    above = "DEFINE GPM A ON s { ?x :p ?v FILTER(?v > ?least) } "
    text = query("A ; Q", above + Q, "SELECT ?v", window="WITHIN 100 SECONDS")
    program = spaseq.compile([text, ONE], names=["q0", "q1"])
    run = program.start(bind={"least": 5})
    run.push(S, 1, triple("a", "p", 6))
    run.bind(least=30)
    run.push(S, 2, triple("a", "p", 7))
    (match,) = run.push(S, 3, triple("b", "q", 1))
    assert match.bindings["v"] == ox.Literal(6)
    run.add("q2", spaseq.compile(text))
    again = spaseq.compile([text, ONE, text], names=["q0", "q1", "q2"]).resume(run.save())
    for each in (run, again):
        each.push(S, 4, triple("a", "p", 31))
        each.push(S, 5, triple("a", "p", 29))
        assert [m.query for m in each.push(S, 6, triple("b", "q", 1))] == ["q0", "q2"]
    with pytest.raises(ChangeError, match="binds other variables; bind the variable where"):
        run.bind(v=1)
    assert run.evaluation.bound == {"least": ox.Literal(30)}
    with pytest.raises(ValueError, match=r"\?most"):
        run.bind(most=1)
    with pytest.raises(ValueError, match="is not a term"):
        run.bind(least=object())
    run.remove("q0")
    run.remove("q2")
    spaseq.compile([ONE], names=["q1"]).resume(run.save())


def test_what_does_not_fit_changes_nothing() -> None:
    run = started(PAIR, ONE)
    run.push(S, 1, triple("a", "p", 1))
    other = query("C", "DEFINE GPM C ON r { ?x :q ?w }", streams="r")
    known = query("A", "DEFINE GPM A ON s { ?x :p ?v GRAPH :kb { ?x :of ?z } }").replace(
        " WHERE", " FROM NAMED :kb WHERE"
    )
    registers = "REGISTER QUERY name AS " + ONE.partition("> ")[2]
    for refused, error, text in [
        (lambda: run.add("q0", spaseq.compile(ONE)), ChangeError, "has a query q0 already"),
        (lambda: run.add("", spaseq.compile(ONE)), ArgumentError, "a name that is not empty"),
        (lambda: run.add(7, spaseq.compile(ONE)), ArgumentError, "not 7"),  # type: ignore[arg-type]
        (lambda: run.add("n", spaseq.compile(other)), ChangeError, "new_streams=True"),
        (lambda: run.add("n", spaseq.compile(known)), KbError, "kb"),
        (lambda: run.add("n", spaseq.compile([ONE, PAIR])), ChangeError, "2 queries"),
        (
            lambda: run.add("n", spaseq.compile(f"PREFIX : <{EX}> {registers}")),
            ChangeError,
            "registers the name name",
        ),
        (lambda: run.add("n", ONE), TypeError, "a str is not a program: spaseq.compile"),  # type: ignore[arg-type]
        (lambda: run.remove("n"), ChangeError, "no query n; it has q0, q1"),
        (lambda: run.replace("n", spaseq.compile(ONE)), ChangeError, "no query n"),
        (lambda: run.replace("q0", spaseq.compile(ONE), "drop"), ValueError, "keep"),  # type: ignore[arg-type]
    ]:
        with pytest.raises(error, match=text):
            refused()
    assert [m.query for m in run.push(S, 2, triple("a", "p", 2))] == ["q0", "q1"]
    run.remove("q0")
    with pytest.raises(ChangeError, match="only query"):
        run.remove("q1")
    run.finish()
    with pytest.raises(ChangeError, match="finished"):
        run.add("n", spaseq.compile(ONE))


def test_readers_keep_what_added_queries_need() -> None:
    wanted = query("Q", Q)
    run = started(ONE)
    run.add("q1", spaseq.compile(wanted))  # nothing has been read with `relevance`
    run = started(ONE)
    assert run.relevance is not None
    run.add("q1", spaseq.compile(query("B", B)))
    with pytest.raises(ChangeError, match="prune=False"):
        run.add("q2", spaseq.compile(wanted))
    run = started(ONE, prune=False)
    assert run.relevance.everything
    run.add("q1", spaseq.compile(wanted))
    assert [m.query for m in run.push(S, 1, triple("a", "q", 1))] == ["q1"]


def test_streams_that_queries_register() -> None:
    derived = f"<{EX}d>"
    makes = (
        f"PREFIX : <{EX}> REGISTER STREAM {derived} AS CONSTRUCT {{ ?x :high ?v }} "
        f"WITHIN 9 SECONDS FROM STREAM s :s WHERE {{ SEQ(A) {A} }}"
    )
    reads = (
        f"PREFIX : <{EX}> SELECT ?v WITHIN 9 SECONDS FROM STREAM d :d "
        "WHERE { SEQ(H) DEFINE GPM H ON d { ?x :high ?v } }"
    )
    run = started(ONE)
    with pytest.raises(ChangeError, match="does not have"):
        run.add("reads", spaseq.compile(reads))
    run.add("makes", spaseq.compile(makes))
    run.push(S, 1, triple("a", "p", 1))
    run.add("reads", spaseq.compile(reads))
    run.push(S, 2, triple("a", "p", 2))
    with pytest.raises(ChangeError, match="remove reads first"):
        run.remove("makes")
    found = run.push(S, 3, triple("a", "p", 3)) + run.advance(4)
    assert [m.bindings["v"] for m in found if m.query == "reads"] == [ox.Literal(2), ox.Literal(3)]
    # The state of a run does not mention a stream that no query registers any more.
    run.remove("reads")
    run.remove("makes")
    resumed = spaseq.compile(ONE, names=["q0"]).resume(run.save())
    resumed.add("makes", spaseq.compile(makes))
    resumed.add("reads", spaseq.compile(reads))
    found = resumed.push(S, 5, triple("a", "p", 5)) + resumed.finish()
    assert [m.bindings["v"] for m in found if m.query == "reads"] == [ox.Literal(5)]
    run = started(query("C", "DEFINE GPM C ON d { ?x :q ?w }", streams="d"))
    with pytest.raises(ChangeError, match="input stream"):
        run.add("makes", spaseq.compile(makes), new_streams=True)


@pytest.mark.parametrize("way", ["added", "resumed", "moved"])
def test_a_reader_of_a_registered_stream_begins_at_an_open_timestamp(way: str) -> None:
    """Its events wait until the timestamp closes, so nothing of it is open before."""
    makes = (
        f"PREFIX : <{EX}> REGISTER STREAM :d AS CONSTRUCT {{ ?x :high ?v }} "
        f"WITHIN 9 SECONDS FROM STREAM s :s WHERE {{ SEQ(A) {A} }}"
    )
    reads = query("A ; H", A + "DEFINE GPM H ON d { ?x :high ?h }", "SELECT ?v ?h", streams="s d")
    run = started(makes)
    run.push(S, 1, triple("a", "p", 1))
    run.push(S, 1, triple("a", "p", 2))
    if way != "moved":
        run.add("reads", spaseq.compile(reads))
    program = spaseq.compile([makes, reads], names=["q0", "reads"])
    if way == "moved":
        run = program.resume(moved(run.save(), program.start().evaluation, {"q0": "q0"}))
    elif way == "resumed":
        run = program.resume(run.save())
    found = run.push(S, 1, triple("a", "p", 3)) + run.push(S, 2, triple("a", "p", 4))
    found += run.push(S, 3, triple("b", "p", 5)) + run.finish()
    pairs = [(m.values["v"], m.values["h"]) for m in found if m.query == "reads"]
    assert pairs == [(3, 4)]


@pytest.mark.parametrize("names", [("writer", "reader"), ("reader", "writer")])
@pytest.mark.parametrize("kept", ["writer", "reader"])
def test_a_query_keeps_its_own_state_wherever_its_text_is(
    names: tuple[str, str], kept: str
) -> None:
    """Writers of streams are evaluated before readers, also if their texts come later."""
    texts = {
        "writer": f"PREFIX : <{EX}> REGISTER STREAM :r AS CONSTRUCT {{ ?x :p ?v }} "
        f"WITHIN 8 SECONDS FROM STREAM s :s WHERE {{ SEQ(A ; Q) {A} {Q} }}",
        "reader": query("C ; C", "DEFINE GPM C ON r { ?x :p ?w }", streams="r"),
    }
    program = spaseq.compile([texts[name] for name in names], names=names)
    run = program.start()
    for second, predicate in enumerate("pqp"):
        run.push(S, second, triple("x1", predicate, 1))
    run = program.resume(moved(run.save(), program.start().evaluation, {kept: kept}))
    found = []
    for second, predicate in enumerate("qpq", 3):
        found += run.push(S, second, triple("x1", predicate, 1))
    starts = sorted((m.query, m.start.micros // 10**6) for m in found + run.finish())
    expected = {
        "writer": [("reader", 3), ("writer", 2), ("writer", 4)],
        "reader": [("reader", 1), ("writer", 4)],
    }
    assert starts == expected[kept]


def test_knowledge_and_entailment_cover_added_queries() -> None:
    sub = ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#subClassOf")
    kind = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    kb = {EX + "kb": [ox.Triple(ox.NamedNode(EX + "Dog"), sub, ox.NamedNode(EX + "Animal"))]}
    asks = query("A", "DEFINE GPM A ON s { ?x a :Animal }")
    of = query("A", "DEFINE GPM A ON s { ?x :p ?v GRAPH :kb { ?c ?s :Animal } }", "SELECT ?c")
    dog = [ox.Triple(ox.NamedNode(EX + "x"), kind, ox.NamedNode(EX + "Dog"))]
    for entail, expected in ((None, []), ("rdfs", ["q1"])):
        run = started(PAIR, kb=kb, entail=entail)
        run.push(S, 1, triple("a", "p", 1))
        run.add("q1", spaseq.compile(asks))
        run.add("q2", spaseq.compile(of))
        assert [m.query for m in run.push(S, 2, dog)] == expected
        found = run.push(S, 3, triple("a", "p", 2))
        assert [m.query for m in found] == ["q0", "q2"]
        assert found[1].bindings["c"] == ox.NamedNode(EX + "Dog")
        run.kb.replace({EX + "kb": []})
        assert run.push(S, 4, dog) == []


def test_constants_that_partial_matches_hold_already() -> None:
    run = started(query("A ; B", "DEFINE GPM A ON s { ?x :p ?v } DEFINE GPM B ON s { ?y :q ?v }"))
    run.push(S, 1, triple("a", "p", ox.NamedNode(EX + "held")))
    run.push(S, 1, triple("a", "p", 7))
    for number, value in enumerate((":held", "7")):
        text = query("C", f"DEFINE GPM C ON s {{ ?y :q {value} }}", "SELECT ?y")
        run.add(f"n{number}", spaseq.compile(text))
    held = run.push(S, 2, triple("a", "q", ox.NamedNode(EX + "held")))
    seven = run.push(S, 2, triple("a", "q", 7))
    assert [m.query for m in (*held, *seven)] == ["q0", "n0", "q0", "n1"]


def test_the_state_of_queries_that_come_and_go_is_bounded() -> None:
    run = started(PAIR)
    for number in range(40):
        text = query("A", f"DEFINE GPM A ON s {{ ?x :p ?v FILTER(?v != {number}) }}")
        run.add(f"n{number}", spaseq.compile(text))
        assert [m.query for m in run.push(S, number, triple("a", "p", number + 1))][-1] == (
            f"n{number}"
        )
        run.remove(f"n{number}")
    assert len(run.rows.matchers.patterns) <= 3
    assert "n39" not in run.explain()
    assert run.why_not()


def test_keep_continues_what_a_guard_looks_back_at() -> None:
    """Partial matches are stored by their instants where a guard reads both sides."""
    guarded = query(
        "A ; !Q ; B", A + B + "DEFINE GPM Q ON s { ?y :q ?u FILTER(?u > ?v && ?u < ?w) }"
    )
    run = started(guarded)
    run.push(S, 1, triple("a", "p", 1))
    run.push(S, 2, triple("a", "q", 3))
    run.replace("q0", spaseq.compile(guarded.replace("*", "?v ?w", 1)), "keep")
    assert run.push(S, 3, triple("a", "p", 5)) == []
    run.push(S, 4, triple("a", "q", 6))
    run.replace("q0", spaseq.compile(guarded), "keep")
    (match,) = run.push(S, 5, triple("a", "p", 6))
    assert match["v"] == 5


# ------------------------------------------------------------------ draining

CHOOSING = ("EMIT", "LIMIT", "DISTINCT", "GROUP", "ASK")
"""Later matches of these queries decide about earlier ones."""


@pytest.mark.parametrize("seed", range(SEED, SEED + EXAMPLES))
def test_draining_queries_have_the_matches_that_began_before(seed: int) -> None:
    draw = random.Random(seed)
    stream = events(draw, 40)
    old, new, other = (draw.choice(POOL) for _ in range(3))
    program = spaseq.compile([old, other], names=["q", "other"])
    fed = Feed(program.start(), draw.choice(("push", "objects", "encoded")))
    before, after = Alone(old), Alone(new)
    asked = draw.randrange(len(stream))
    while 0 < asked < len(stream) and stream[asked].time == stream[asked - 1].time:
        asked += 1
    found: list[spaseq.Match] = []
    expected: list[str] = []
    replaces = draw.random() < 0.6
    last = stream[asked - 1].time.micros if asked else -1

    def take(matches: list[spaseq.Match], into: list[str]) -> None:
        into += [shown(m) for m in matches if m.start.micros <= last]

    for at, event in enumerate(stream):
        if at == asked:
            if replaces:
                made = spaseq.compile(new, names=["q"])
                fed.run.replace("q", made, "drain", new_streams=True)
            else:
                fed.run.remove("q", drain=True)
            assert set(fed.run.draining.values()) <= {"q"}
        if event.stream in fed.run.clock.streams:
            found += fed.give([event])
            take(_given(before, event), expected)
            if at >= asked and replaces:
                expected += map(shown, _given(after, event))
        streams = set(fed.run.program.streams) == set(fed.run.clock.streams)
        if streams and draw.random() < 0.1:
            fed.run = fed.run.program.resume(fed.run.save())
    found += fed.run.finish()
    take(before.run.finish(), expected)
    if replaces:
        expected += map(shown, after.run.finish())
    of_query = [match for match in found if match.query == "q"]
    if any(word in text for word in CHOOSING for text in (old, new)):
        return
    assert sorted(map(shown, of_query)) == sorted(expected)


def _given(alone: Alone, event: Event) -> list[spaseq.Match]:
    if event.stream in alone.program.streams:
        return alone.run.push(event.stream, event.time, _triples(event), event.name)
    return alone.run.advance(event.time)


def test_a_query_drains_until_its_window_is_over() -> None:
    run = started(POOL[0])
    run.push(S, 1, triple("x1", "p", 1))
    run.replace("q0", spaseq.compile(POOL[1], names=["q0"]), "drain")
    assert run.draining == {"q0 (draining)": "q0"}
    found = run.push(S, 2, triple("x1", "p", 2))
    assert [(match.query, match.start.micros) for match in found] == [("q0", 1_000_000)]
    assert {match.query for match in run.push(S, 9, triple("x1", "p", 3))} == {"q0"}
    assert run.draining
    run.push(S, 10, triple("x1", "p", 3))
    run.push(S, 11, triple("x1", "p", 3))
    assert not run.draining
    assert [query.plan.name for query in run.program.queries] == ["q0"]


def test_a_query_without_partial_matches_goes_at_once() -> None:
    """Also without a window, once its groups have gone."""
    endless = query("A : Q", A + Q, window="WITHIN UNBOUNDED")
    run = started(endless, POOL[0])
    run.push(S, 1, triple("y", "r", 1))
    run.remove("q0", drain=True)
    run.push(S, 2, triple("x1", "p", 2))
    run.push(S, 3, triple("x1", "q", 2))
    assert not run.draining
    run.add("q0", spaseq.compile(endless, names=["q0"]))
    run.push(S, 4, triple("x1", "p", 2))
    run.remove("q0", drain=True)
    for time_ in range(5, 50):
        run.push(S, time_, triple("x1", "p", 3))
    (match,) = [m for m in run.push(S, 50, triple("x1", "q", 2)) if m.query == "q0"]
    assert match.start.micros == 4_000_000
    assert run.draining
    run.remove("q0 (draining)")
    assert not run.draining


def test_several_versions_drain_beside_each_other() -> None:
    later = query("A : B", A + B)
    run = started(later, later)
    run.push(S, 1, triple("x1", "p", 1))
    for number in (2, 3):
        run.replace("q0", spaseq.compile(later, names=["q0"]), "drain")
        run.push(S, number, triple("x1", "p", 1))
    assert run.draining == {"q0 (draining)": "q0", "q0 (draining 2)": "q0"}
    resumed = run.program.resume(run.save())
    assert resumed.draining == run.draining
    for each in (run, resumed):
        found = each.push(S, 4, triple("x1", "p", 1))
        assert sorted((m.query, m.start.micros // 10**6) for m in found) == [
            ("q0", 1), ("q0", 2), ("q0", 3), ("q1", 1), ("q1", 2), ("q1", 3),
        ]  # fmt: skip


def test_equal_queries_that_drain_may_share_a_resumed_state() -> None:
    pair = query("A : B", A + B)
    run = started(pair, pair, query("A : Q", A + Q))
    run.push(S, 1, triple("x1", "p", 1))
    for name in ("q0", "q1"):
        run.remove(name, drain=True)
    resumed = run.program.resume(run.save())
    assert len(resumed.evaluation.queries) == 2
    for each in (run, resumed):
        assert each.draining == {"q0 (draining)": "q0", "q1 (draining)": "q1"}
        assert [m.query for m in each.push(S, 2, triple("x1", "p", 1))] == ["q0", "q1"]
        for second in (20, 30, 40):
            each.push(S, second, triple("x1", "p", 1))
        assert not each.draining
        assert list(each.stats["queries"]) == ["q2"]


def test_what_cannot_drain() -> None:
    writer = f"PREFIX : <{EX}> REGISTER STREAM :r AS CONSTRUCT {{ ?x :p ?v }} "
    writer += "WITHIN 8 SECONDS FROM STREAM s :s WHERE { SEQ(A) " + A + "}"
    reader = query("C", "DEFINE GPM C ON r { ?x :p ?w }", streams="r")
    run = started(writer, reader, POOL[0])
    for name in ("q0", "q1"):
        with pytest.raises(ChangeError, match="cannot drain, since it registers a stream or reads"):
            run.remove(name, drain=True)
    run.push(S, 1, triple("x1", "p", 1))
    run.remove("q2", drain=True)
    with pytest.raises(ChangeError, match=r"q2 \(draining\) drains already"):
        run.remove("q2 (draining)", drain=True)


def test_the_only_query_drains_and_remains_until_there_is_another_one() -> None:
    run = started(POOL[0])
    run.push(S, 1, triple("x1", "p", 1))
    run.remove("q0", drain=True)
    assert [match.query for match in run.push(S, 2, triple("x1", "p", 2))] == ["q0"]
    assert run.push(S, 100, triple("x1", "p", 3)) == []
    assert run.push(S, 101, triple("x1", "p", 4)) == []
    assert run.draining == {"q0 (draining)": "q0"}
    run.add("q0", spaseq.compile(POOL[0]))
    run.push(S, 102, triple("x1", "p", 5))
    run.push(S, 103, triple("x1", "p", 6))
    assert not run.draining
