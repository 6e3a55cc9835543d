"""Several queries and streams in one compiled loop mean what the queries mean one after the other.

Drawn sets of queries over drawn streams go through the loop event by event, in encoded batches, in
sequences merged of batches, and with the state saved and restored between events. The matches must
be those of the evaluation that hands each event to each query, in the same order; and those of each
query must be those of a run of its own. `SPASEQ_EXAMPLES` is the number of cases (default 50),
`SPASEQ_SEED` the first.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import pyoxigraph as ox
import pytest
from core_runs import SECOND, encoded, event, knowledge
from engine_runs import EX, R, S, program, shown, text
from oracle import comparable
from strategies import Case, iri, plain_case, random_case

import spaseq
from spaseq.errors import EventError, LimitExceeded, QueryError
from spaseq.io.merge import merged_batches
from spaseq.rdf.event import Event
from spaseq.rdf.native._terms import EventBatch, EventSequence
from spaseq.results import Match
from spaseq.runs import Run

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "50"))
SEED = int(os.environ.get("SPASEQ_SEED", "0"))
CHUNK = 25
ONLY_A = "DEFINE GPM A ON s { ?k :a ?x }"
ONLY_B = "DEFINE GPM B ON s { ?k :b ?y }"
TYPE = ox.Triple(iri("a"), iri("type"), iri("x"))


class Several:
    """Queries of several cases over the streams of one of them."""

    def __init__(self, seed: int):
        chance = random.Random(seed)
        draw = plain_case if seed % 3 == 0 else random_case
        self.case: Case = draw(seed)
        texts = [self.case.query]
        texts += [draw(10_000 + 7 * seed + n).query for n in range(chance.randint(1, 4))]
        if chance.random() < 0.3:
            texts.append(chance.choice(texts))
        chance.shuffle(texts)
        self.texts = list(filter(self._is_valid, texts))
        self.program = spaseq.compile(self.texts) if len(self.texts) > 1 else None

    def _is_valid(self, text: str) -> bool:
        try:
            spaseq.compile(text)
        except QueryError:
            return False
        return True

    @property
    def events(self) -> list[Event]:
        """The events of the streams that some query reads, in the order of instants."""
        assert self.program is not None
        return [event for event in self.case.merged if event.stream in self.program.streams]

    def start(self, program: spaseq.Program | None = None) -> Run:
        return (program or self.program).start(kb=self.kb)  # type: ignore[union-attr]

    @property
    def kb(self) -> Any:
        """Every graph that a query may name, with the contents of the first case."""
        return {f"{EX}{name}": [TYPE] for name in ("kb", "more")} | knowledge(self.case)


Way = Callable[[Several, random.Random], list[Match]]


def in_turn(several: Several, chance: random.Random) -> list[Match]:
    """Each event by itself, to each query by itself."""
    run = several.start()
    run.evaluation.multi = lambda: None  # type: ignore[method-assign]
    found = [match for each in several.events for match in run.push_batch([each])]
    return found + run.finish()


def one_by_one(several: Several, chance: random.Random) -> list[Match]:
    run = several.start()
    found = [match for each in several.events for match in run.push_batch([each])]
    return found + run.finish()


def stretches(run: Run, events: Sequence[Event], chance: random.Random) -> Iterator[EventBatch]:
    """The events of a stream in batches of one to six."""
    rest = list(events)
    while rest:
        size = chance.randint(1, 6)
        yield encoded(run, rest[:size])
        rest = rest[size:]


def in_encoded_batches(several: Several, chance: random.Random) -> list[Match]:
    """The next events of one stream in each batch."""
    run = several.start()
    found: list[Match] = []
    for _, some in groupby(several.events, lambda event: event.stream):
        for batch in stretches(run, list(some), chance):
            found += run.push_batch(batch)
    return found + run.finish()


def merged(several: Several, chance: random.Random) -> list[Match]:
    """Batches of all streams, merged."""
    run = several.start()
    found: list[Match] = []
    sources = [
        stretches(run, [event for event in several.events if event.stream == iri], chance)
        for iri in sorted(several.case.streams)
    ]
    for sequence in merged_batches(sources):
        found += run.push_batch(sequence)
    return found + run.finish()


def saved_in_between(several: Several, chance: random.Random) -> list[Match]:
    run = several.start()
    found: list[Match] = []
    for each in several.events:
        found += run.push_batch(encoded(run, [each]))
        if chance.random() < 0.4:
            run = several.program.resume(run.save(), kb=several.kb)  # type: ignore[union-attr]
        elif chance.random() < 0.3:
            assert run.stats["matches"] == len(found)
            run.why_not()
        elif chance.random() < 0.3:
            found += run.advance(each.time)
    return found + run.finish()


def sorted_by_instant(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows, those of one query and one end in a fixed order.

    The order of the matches of one event is unspecified: a restored run enumerates its groups in
    the order of the saved state.
    """
    return [
        row
        for _, some in groupby(rows, key=lambda row: (row[0], row[2]))
        for row in sorted(some, key=repr)
    ]


WAYS: list[Way] = [one_by_one, in_encoded_batches, merged, saved_in_between]


def listed(matches: Iterable[Match]) -> list[tuple[Any, ...]]:
    """The matches in their order."""
    return [row for match in matches for row in comparable([match])]


def alone(several: Several, number: int) -> list[Any]:
    """The matches of one query in a run of its own."""
    assert several.program is not None
    program = spaseq.compile(several.texts[number], names=[several.program.names[number]])
    run = several.start(program)
    events = [event for event in several.events if event.stream in program.streams]
    found = [match for event in events for match in run.push_batch([event])]
    return comparable(found + run.finish())


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES, CHUNK))
def test_the_loop_equals_the_queries_in_turn(first: int) -> None:
    seen = matches = 0
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES)):
        several = Several(seed)
        if several.program is None:
            continue
        seen += 1
        wanted = listed(in_turn(several, random.Random(seed)))
        matches += len(wanted)
        for way in WAYS:
            found = listed(way(several, random.Random(seed)))
            if way is saved_in_between:
                assert sorted_by_instant(found) == sorted_by_instant(wanted), seed
            else:
                assert found == wanted, (seed, way.__name__)
        for number, name in enumerate(several.program.names):
            of_one = sorted((row for row in wanted if row[0] == name), key=repr)
            assert of_one == alone(several, number), (seed, name)
    assert seen > 0.5 * (min(first + CHUNK, SEED + EXAMPLES) - first)
    assert matches > seen


# ------------------------------------------------------------------ cost


def queries(count: int, seq: str = "SEQ(A ; B)") -> spaseq.Program:
    """Query n wants the events with predicates `an` and `bn`."""
    return spaseq.compile(
        [
            text(seq, f"DEFINE GPM A ON s {{ ?k :a{n} ?x }} DEFINE GPM B ON s {{ ?k :b{n} ?y }}")
            for n in range(count)
        ]
    )


def touches(run: Run) -> int:
    """The number of queries that events were dispatched to."""
    loop = run.evaluation.multi()
    assert loop is not None
    return loop.driver.touches


def test_an_event_concerns_the_queries_that_can_use_it_and_no_others() -> None:
    run = queries(100).start()
    some = [event(t * SECOND, f"{'ab'[t % 2]}{t // 2 % 100}", "k", t) for t in range(200)]
    some += [event((200 + t) * SECOND, "other", "k", t) for t in range(50)]
    found = list(run.push_batch(encoded(run, some)))
    assert [match.query for match in found] == [f"query{n + 1}" for n in range(100)]
    assert touches(run) == 200


def test_a_query_is_not_dispatched_to_before_a_place_waits() -> None:
    run = queries(10).start()
    list(run.push_batch(encoded(run, [event(t * SECOND, "b3", "k", t) for t in range(20)])))
    assert touches(run) == 0
    list(
        run.push_batch(encoded(run, [event(20 * SECOND, "a3", "k"), event(21 * SECOND, "b3", "k")]))
    )
    assert touches(run) == 2


def classes(count: int) -> spaseq.Program:
    gpms = "DEFINE GPM A ON s {{ ?k a :C{0} ; :a ?x }} DEFINE GPM B ON s {{ :k{0} :a ?y }}"
    return spaseq.compile([text("SEQ(A ; B)", gpms.format(n)) for n in range(count)])


def test_constant_objects_and_subjects_select_queries() -> None:
    run = classes(50).start()
    kind = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    some = []
    for t in range(100):
        (fact,) = event(0, "a", f"k{t // 2}", t).facts
        facts = [fact] if t % 2 else [fact, (fact[0], kind, ox.NamedNode(f"{EX}C{t // 2}"))]
        some.append(Event(S, event(t * SECOND, "a", "k").time, 0, facts))
    assert len(list(run.push_batch(encoded(run, some)))) == 50
    assert touches(run) == 100


def test_a_deadline_wakes_only_its_query() -> None:
    run = queries(20, "SEQ(A ; !B)").start()
    some = [event(t * SECOND, f"a{t}", "k", t) for t in range(20)]
    some += [event((20 + t) * SECOND, "other", "k", t) for t in range(20)]
    found = list(run.push_batch(encoded(run, some)))
    assert [match.query for match in found] == [f"query{n + 1}" for n in range(20)]
    assert [match.end.micros for match in found] == [(n + 10) * SECOND for n in range(20)]
    assert touches(run) == 20


# ------------------------------------------------------------------ the midst of a batch


def test_the_matches_of_an_event_are_in_the_order_of_the_queries() -> None:
    run = spaseq.compile([text("SEQ(A : B)"), text("SEQ(A ; B)"), text("SEQ(B)", ONLY_B)]).start()
    some = [event(t * SECOND, "aab"[t], "k", t) for t in range(3)]
    found = run.push_batch(encoded(run, some))
    assert [next(found).query for _ in range(2)] == ["query1", "query1"]
    assert run.stats["events"] == 3
    assert [match.query for match in found] == ["query2", "query2", "query3"]


def test_matches_must_be_consumed_before_the_run_goes_on() -> None:
    run = spaseq.compile([text("SEQ(A ; B)"), text("SEQ(B)", ONLY_B)]).start()
    some = [event(t * SECOND, "ab"[t % 2], "k", t) for t in range(4)]
    found = run.push_batch(encoded(run, some))
    assert next(found).query == "query1"
    run.advance(2)
    with pytest.raises(RuntimeError, match="consume the matches"):
        next(found)
    assert shown(run.push_batch(some[2:])) == ["A@2 B@3", "B@3"]


def test_a_late_event_ends_the_sequence_and_the_run_goes_on() -> None:
    run = queries(3).start()
    some = [event(t * SECOND, name, "k") for t, name in ((1, "a0"), (2, "b0"), (1, "a1"))]
    found = []
    with pytest.raises(EventError, match="is late"):
        found.extend(run.push_batch(encoded(run, some)))
    assert shown(found) == ["A@1 B@2"]
    assert (run.stats["events"], run.stats["matches"]) == (2, 1)
    rest = [event(3 * SECOND, "a1", "k"), event(4 * SECOND, "b1", "k")]
    assert shown(run.push_batch(encoded(run, rest))) == ["A@3 B@4"]


def test_a_limit_in_one_query_leaves_the_matches_before_it() -> None:
    wide = "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?k :a ?y FILTER(?y * ?x > -1) }"
    run = spaseq.compile(
        [text("SEQ(A)", ONLY_A), text("SEQ(A : B)", wide), text("SEQ(A)", ONLY_A)]
    ).start(max_steps=5)
    some = [event(t * SECOND, "a", "k", t) for t in range(10)]
    matches: list[Match] = []
    with pytest.raises(LimitExceeded):
        matches.extend(run.push_batch(encoded(run, some)))
    found = [match.query for match in matches]
    stopped = found.count("query1")
    assert found.count("query3") == stopped - 1
    assert found[-1] == "query1"
    with pytest.raises(spaseq.SpaseqError, match="failed"):
        run.save()


def test_shedding_under_a_limit_is_that_of_each_query() -> None:
    wide = "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?k :a ?y FILTER(?y * ?x > -1) }"
    texts = [text("SEQ(A : B)", wide), text("SEQ(A ; B)")]
    some = [event(t * SECOND, "ab"[t % 4 == 3], "k", t) for t in range(60)]
    results = []
    for looped in (True, False):
        run = spaseq.compile(texts).start(max_steps=6, on_limit="shed")
        if not looped:
            run.evaluation.multi = lambda: None  # type: ignore[method-assign]
        found = listed(run.push_batch(encoded(run, some)))
        results.append((found, [query.shed for query in run.queries]))
    assert results[0] == results[1]
    assert results[0][1][0] > 0


# ------------------------------------------------------------------ several streams


def test_simultaneous_events_of_two_streams_are_one_instant() -> None:
    gpms = "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON r { ?k :b ?y }"
    streams = "FROM STREAM s :s FROM STREAM r :r"
    run = program("SEQ(A , B)", gpms, streams=streams).start()
    ones = [event(t * SECOND, "a", "k", t) for t in (1, 2, 4)]
    others = [replace(event(t * SECOND, "b", "k"), stream=R) for t in (2, 3, 5)]
    found: list[Match] = []
    for sequence in merged_batches([[encoded(run, ones)], [encoded(run, others)]]):
        found += run.push_batch(sequence)
    assert shown(found) == ["A@1 B@2", "A@2 B@3", "A@4 B@5"]
    loop = run.evaluation.multi()
    assert loop is not None
    assert loop.driver.touches == 6


def test_events_that_wait_for_another_stream_are_held_until_their_timestamp_closes() -> None:
    """At some timestamps one stream has several events, and the other has few or none."""
    gpms = "DEFINE GPM A ON s, r { ?k :a ?x } DEFINE GPM B ON s, r { ?k :b ?y }"
    streams = "FROM STREAM s :s FROM STREAM r :r"
    texts = [
        text("SEQ(A ; B)", gpms, streams=streams),
        text("SEQ(A ; !B)", gpms, streams=streams),
        text("SEQ(A : B)", gpms, clauses="WITHIN 10 SECONDS EMIT MAX", streams=streams),
        text("SEQ(A ; B)"),
    ]
    chance = random.Random(1)
    events: dict[str, list[Event]] = {S: [], R: []}
    for time in range(60):
        for stream in (S, R):
            for ordinal in range(chance.choice((0, 1, 1, 2, 4))):
                one = event(time * SECOND, chance.choice("abx"), f"k{chance.randrange(3)}", time)
                events[stream].append(replace(one, stream=stream, ordinal=ordinal))
    program = spaseq.compile(texts)
    run, other = program.start(), program.start()
    other.evaluation.multi = lambda: None  # type: ignore[method-assign]
    batches = [[encoded(run, events[stream])] for stream in (S, R)]
    found: list[Match] = []
    for sequence in merged_batches(batches):
        found += run.push_batch(sequence)
        loop = run.evaluation.multi()
        assert loop is not None
        assert loop.driver.loaded
    merged = sorted(events[S] + events[R], key=lambda each: (each.instant, each.stream == R))
    wanted = list(other.push_batch(merged))
    assert listed(found) == listed(wanted)
    assert len(found) > 50
    again = program.resume(run.save())
    assert listed(again.finish()) == listed(run.finish()) == listed(other.finish())


def test_an_event_of_another_stream_releases_held_ones() -> None:
    gpms = "DEFINE GPM A ON s, r { ?k :a ?x } DEFINE GPM B ON s, r { ?k :b ?y }"
    run = program("SEQ(A ; B)", gpms, streams="FROM STREAM s :s FROM STREAM r :r").start()
    some = [event(SECOND, letter, "k", 1, n) for n, letter in enumerate("xb")]
    assert list(run.push_batch(EventSequence([encoded(run, some)]))) == []
    # A second event of r at this timestamp would be simultaneous with the B.
    assert list(run.push_batch([replace(event(SECOND, "a", "k"), stream=R)])) == []
    later = replace(event(2 * SECOND, "x", "k"), stream=R)
    assert shown(run.push_batch([later])) == ["A@1 B@1"]


def test_a_sequence_says_where_its_events_are() -> None:
    run = program().start()
    one = encoded(run, [event(t * SECOND, "a", "k") for t in (1, 3)])
    sequence = EventSequence([one])
    assert sequence.position(1) == (one, 1)
    assert sequence.parts(0, 2) == [(one, 0, 2)]
    with pytest.raises(IndexError):
        sequence.position(2)
