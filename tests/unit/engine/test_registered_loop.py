"""Programs with registered streams in the compiled loop, against the same run in Python."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from core_runs import event, knowledge
from engine_runs import R, S, text, triples
from registered_chains import registered_chain

import spaseq
from spaseq.engine import instants
from spaseq.engine.evaluation import Evaluation
from spaseq.engine.multi_run import MultiRun
from spaseq.io.merge import merged_batches
from spaseq.rdf.event import Event
from spaseq.rdf.native._terms import EventBatch, EventSequence
from spaseq.results import Match

Row = tuple[object, ...]
REGISTER = ("CONSTRUCT", "REGISTER STREAM :up AS CONSTRUCT")


def writer(seq: str = "SEQ(A ; B)", clauses: str = "WITHIN 10 SECONDS") -> str:
    """A query that registers the rising values of a key on the stream `up`."""
    gpms = "DEFINE GPM A ON s { ?k :v ?x } DEFINE GPM B ON s { ?k :v ?y FILTER(?y > ?x) }"
    return text(seq, gpms, "CONSTRUCT { ?k :rose ?x }", clauses).replace(*REGISTER)


def reader(seq: str, *gpms: str, head: str = "SELECT *", clauses: str = "WITHIN 10 SECONDS") -> str:
    """A query that reads `up`, `s` and `r`, as far as its graph patterns name them."""
    defines = " ".join(f"DEFINE GPM {gpm}" for gpm in gpms)
    iris = {"u": ":up", "s": ":s", "r": ":r", "m": ":more"}
    named = [name for name in iris if any(f" ON {name} " in gpm for gpm in gpms)]
    streams = " ".join(f"FROM STREAM {name} {iris[name]}" for name in named)
    return text(seq, defines, head, clauses, streams)


RISE = writer()
LATE = writer("SEQ(A ; !B)", "WITHIN 2 SECONDS")
DEADLINE = writer("SEQ(A ; !B WITHIN 2 SECONDS)")
GROUPED = (
    text("SEQ(A)", "DEFINE GPM A ON s { ?k :v ?x }", "CONSTRUCT { ?k :rose ?n }")
    + " GROUP BY ?k OVER TUMBLING 3 SECONDS LET (COUNT(*) AS ?n)"
).replace(*REGISTER)
P, Q = "P ON u { ?k :rose ?p }", "Q ON u { ?k :rose ?q }"
V, HIGH = "V ON s { ?k :v ?v }", "V ON s { ?k :v ?v FILTER(?v > 3) }"
OTHER = text(gpms="DEFINE GPM A ON s { ?k :v ?x } DEFINE GPM B ON s { ?k :v ?y }")
TWICE = reader("SEQ(P ; Q)", P, Q)
MIXED = reader("SEQ(P ; V)", P, HIGH)
SIMULTANEOUS = reader("SEQ(P & V)", P, V)
STRICT = reader("SEQ(V , P)", P, V)
BEFORE = reader("SEQ(V : P)", V, P)
WITHOUT = reader("SEQ(P ; !V)", P, HIGH, clauses="WITHIN 3 SECONDS")
SOON = reader("SEQ(P ; !V WITHIN 2 SECONDS)", P, HIGH)
THREE = reader("SEQ(P ; V ; W)", P, V, "W ON r { ?k :v ?w }")
CHAIN = reader("SEQ(V : P)", V, P, head="REGISTER STREAM :more AS CONSTRUCT { ?k :twice ?p }")
ENDS = reader("SEQ(M , M2)", "M ON m { ?k :twice ?m }", "M2 ON m { ?k :twice ?n }")
LAST = reader("SEQ(P ; !Q)", P, "Q ON u { ?k :rose ?q FILTER(?q > 3) }", clauses="WITHIN 3 SECONDS")
AT_MOST = reader("SEQ(P ; !Q WITHIN 2 SECONDS)", P, "Q ON u { ?k :rose ?q FILTER(?q > 3) }")
FEW = reader("SEQ(P : V)", P, V, clauses="WITHIN 5 EVENTS")
TALLY = (
    reader("SEQ(P)", P, head="SELECT ?k (COUNT(*) AS ?n) (SUM(?p) AS ?sum)")
    + " GROUP BY ?k OVER TUMBLING 3 SECONDS"
)
ANSWER = reader("SEQ(P ; V)", P, HIGH, head="ASK")
FIRST = reader("SEQ(P : V)", P, V) + " LIMIT 1"
EITHER = reader("SEQ(V | P)", V, P)


def encoded(run: spaseq.Run, some: Sequence[Event]) -> Iterator[EventSequence]:
    """Events as readers encode and merge them."""
    batches: dict[str, EventBatch] = {}
    for each in some:
        if each.stream not in batches:
            batches[each.stream] = EventBatch(run.rows.matchers.dictionary, each.stream)
        batch, at = batches[each.stream], each.time
        batch.add(each.facts, at.micros, each.ordinal, each.name, at.term, False)
    return merged_batches([[batch] for batch in batches.values()])


def results(
    queries: Sequence[str],
    events: Sequence[Event],
    kb: Mapping[str, object] | None,
    seed: int,
    way: str,
) -> list[Row]:
    """All matches in their order; now and then the run is saved, advanced or inspected."""
    draw = random.Random(seed)
    program = spaseq.compile(list(queries))
    run = program.start(kb=kb)
    found: list[Match] = []
    while events:
        size = draw.randint(1, 8)
        some, events = events[:size], events[size:]
        if way == "push":
            found += [m for e in some for m in run.push(e.stream, e.time, e.facts, e.name)]
        else:
            found += [m for each in encoded(run, some) for m in run.push_batch(each)]
        turn = draw.random()
        if turn < 0.1:
            run = program.resume(run.save(), kb=kb)
        elif turn < 0.2:
            found += run.advance(some[-1].time)
        elif turn < 0.3:
            assert run.stats
    found += run.finish()
    return [_row(match) for match in found]


def _row(match: Match) -> Row:
    events = [(e.gpm, e.stream, e.time, e.ordinal, e.bindings) for e in match.events]
    shown = match.bindings, match.graph, match.boolean, match.results
    return match.query, match.start, match.end, events, shown, match.closed_by_end


class Loop:
    """Counts the events that the compiled loop processes."""

    def __init__(self, patch: pytest.MonkeyPatch):
        self.events = 0
        self._count = count = MultiRun.count

        def counted(run: MultiRun, events: EventSequence, first: int, after: int) -> None:
            self.events += after - first
            count(run, events, first, after)

        patch.setattr(MultiRun, "count", counted)


def in_python(
    queries: Sequence[str],
    events: Sequence[Event],
    kb: Mapping[str, object] | None,
    seed: int,
    way: str,
) -> list[Row]:
    """As `results`, without the compiled loop and with every registered match made in Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Evaluation, "multi", lambda self: None)
        patch.setattr(instants, "construct_maker", lambda *_: None)
        return results(queries, events, kb, seed, way)


def drawn(seed: int, streams: Sequence[str]) -> list[Event]:
    """Events of a few keys, several at some times, with rising values now and then."""
    draw = random.Random(seed)
    found, time, ordinals = [], 0, dict.fromkeys(streams, 0)
    for _ in range(90):
        step = draw.choice([0, 1, 1, 1, 2, 5])
        time, ordinals = time + step, dict.fromkeys(streams, 0) if step else ordinals
        stream = draw.choice(streams)
        some = event(time * 1_000_000, "v", draw.choice("kj"), draw.randrange(6), ordinals[stream])
        ordinals[stream] += 1
        found.append(replace(some, stream=stream))
    found.sort(key=lambda each: (each.instant, streams.index(each.stream)))
    return found


@pytest.mark.parametrize("way", ["batches", "push"])
@pytest.mark.parametrize(
    "queries",
    [
        [RISE, TWICE],
        [RISE, TWICE, OTHER],
        [OTHER, RISE, MIXED, OTHER, TWICE],
        [RISE, SIMULTANEOUS, STRICT, BEFORE],
        [RISE, WITHOUT, SOON],
        [RISE, THREE],
        [LATE, TWICE, MIXED, OTHER],
        [DEADLINE, MIXED, STRICT],
        [GROUPED, MIXED, EITHER],
        [RISE, LAST, AT_MOST, TALLY],
        [LATE, FEW, ANSWER, FIRST],
        [RISE, CHAIN, ENDS, MIXED],
        [LATE, CHAIN, ENDS],
    ],
    ids=lambda queries: str(len(queries)),
)
def test_the_loop_keeps_readers_of_all_streams(
    monkeypatch: pytest.MonkeyPatch, queries: list[str], way: str
) -> None:
    loop, given = Loop(monkeypatch), 0
    names: set[object] = set()
    streams = [S, R] if THREE in queries else [S]
    for seed in range(3):
        events = drawn(seed, streams)
        found = results(queries, events, None, seed, way)
        assert found == in_python(queries, events, None, seed, way)
        names |= {row[0] for row in found}
        given += len(events)
    assert names == {f"query{number + 1}" for number in range(len(queries))}
    assert way == "push" or loop.events == given


@pytest.mark.parametrize("way", ["batches", "push"])
@pytest.mark.parametrize("first", range(0, 20, 5))
def test_drawn_chains_equal_those_in_python(
    monkeypatch: pytest.MonkeyPatch, first: int, way: str
) -> None:
    loop, given = Loop(monkeypatch), 0
    for seed in range(first, first + 5):
        queries, case = registered_chain(seed)
        found = results(queries, case.merged, knowledge(case), seed, way)
        assert found == in_python(queries, case.merged, knowledge(case), seed, way)
        given += len(case.merged)
    assert way == "push" or loop.events > 0.8 * given


def test_pushed_events_stay_in_the_loop() -> None:
    run = spaseq.compile([LATE, CHAIN, MIXED, OTHER]).start()
    for time in range(10):
        run.push(S, time, triples(f"k v {time % 3}"))
        assert run.evaluation._multi is not None
        assert run.evaluation._multi.driver.loaded


def test_only_events_that_a_reader_can_use_reach_it() -> None:
    """The loop dispatches the input events of a reader as those of other queries."""
    queries = [RISE, reader("SEQ(P ; V)", P, "V ON s { ?k :rare ?v }")]
    run = spaseq.compile(queries).start()
    batch = EventBatch(run.rows.matchers.dictionary, S)
    for time in range(200):
        letter = "rare" if time % 50 == 49 else "v"
        one = event(time * 1_000_000, letter, "k", 200 - time)
        batch.add(one.facts, one.time.micros, 0, None, one.time.term)
    assert list(run.push_batch(batch)) == []
    multi = run.evaluation._multi
    assert multi is not None
    # The writer has 196 events, and the reader the rare ones whose timestamp has closed.
    assert multi.driver.touches == 196 + 3


def test_events_of_a_reader_are_released_when_their_timestamp_closes() -> None:
    """What waits does not grow with the stream, even if some event always waits."""
    run = spaseq.compile([LATE, MIXED, CHAIN]).start()
    for time in range(500):
        run.push(S, time, triples(f"k v {time % 7}"))
    run.evaluation.sync()
    assert max(len(each.delayed) for each in run.evaluation.listed.executors) <= 3
