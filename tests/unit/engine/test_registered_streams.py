"""Queries that read what others write (`REGISTER STREAM`)."""

from __future__ import annotations

import random

import pytest
from core_runs import batches, encoded, event
from engine_runs import EX, S, shown, text, triples

import spaseq
from spaseq.engine.followers import Followers
from spaseq.engine.multi_run import MultiRun
from spaseq.errors import EventError, QueryError
from spaseq.rdf._sequence import EventSequence
from spaseq.rdf.event import Event
from spaseq.results import Match

RISE = "REGISTER STREAM :up AS " + text(
    head="CONSTRUCT { ?k :rose ?y }",
    gpms="DEFINE GPM A ON s { ?k :v ?x } DEFINE GPM B ON s { ?k :v ?y FILTER(?y > ?x) }",
)
RISE = f"PREFIX : <{EX}> {RISE.replace(f'PREFIX : <{EX}> ', '')}"


def push(run: spaseq.Run, time: int, facts: str) -> list[str]:
    """The matches of queries that register no stream."""
    return shown(m for m in run.push(S, time, triples(facts)) if m.graph is None)


TWICE = text(
    seq="SEQ(P ; Q)",
    gpms="DEFINE GPM P ON u { ?k :rose ?p } DEFINE GPM Q ON u { ?k :rose ?q }",
    streams="FROM STREAM u :up",
)


def test_derived_events_are_seen_when_their_timestamp_closes() -> None:
    run = spaseq.compile([RISE, TWICE]).start()
    assert push(run, 1, "k v 1") == []
    assert push(run, 2, "k v 2") == []
    assert push(run, 3, "k v 3") == []
    assert push(run, 4, "j v 1") == ["P@2 Q@3"]


def test_what_is_written_is_a_result_too() -> None:
    run = spaseq.compile([RISE, TWICE]).start()
    run.push(S, 1, triples("k v 1"))
    (match,) = run.push(S, 2, triples("k v 2"))
    assert match.graph is not None
    assert match.end.micros == 2_000_000


def test_the_end_closes_the_writer_before_the_reader() -> None:
    run = spaseq.compile([RISE, TWICE]).start()
    for time in (1, 2, 3):
        push(run, time, f"k v {time}")
    assert shown(m for m in run.finish() if m.graph is None) == ["P@2 Q@3"]


def test_the_order_of_the_texts_does_not_matter() -> None:
    program = spaseq.compile([TWICE, RISE])
    assert [q.plan.registers_stream for q in program.queries] == [EX + "up", None]
    run = program.start()
    for time in (1, 2, 3):
        push(run, time, f"k v {time}")
    assert shown(m for m in run.finish() if m.graph is None) == ["P@2 Q@3"]


def test_a_chain_of_three() -> None:
    middle = text(
        seq="SEQ(P)", head="CONSTRUCT { ?k :twice ?p }", clauses="WITHIN 1 HOUR",
        gpms="DEFINE GPM P ON u { ?k :rose ?p }", streams="FROM STREAM u :up",
    )  # fmt: skip
    middle = middle.replace("CONSTRUCT", "REGISTER STREAM :more AS CONSTRUCT")
    last = text(
        seq="SEQ(M)", gpms="DEFINE GPM M ON m { ?k :twice ?m }", streams="FROM STREAM m :more"
    )
    run = spaseq.compile([last, middle, RISE]).start()
    push(run, 1, "k v 1")
    push(run, 2, "k v 2")
    assert push(run, 3, "") == ["M@2"]
    counted = {name: query["matches"] for name, query in run.stats["queries"].items()}
    assert counted == {"query1": 1, "query2": 1, "query3": 1}


def test_a_reader_of_both_a_derived_and_an_outer_stream() -> None:
    both = text(
        seq="SEQ(P & Q)",
        gpms="DEFINE GPM P ON u { ?k :rose ?p } DEFINE GPM Q ON s { ?k :v ?q }",
        streams="FROM STREAM u :up FROM STREAM s :s",
    )
    run = spaseq.compile([RISE, both]).start()
    push(run, 1, "k v 1")
    push(run, 2, "k v 2")
    assert push(run, 3, "j v 2") == ["P@2 Q@2"]


def test_several_matches_of_one_instant_are_several_events() -> None:
    run = spaseq.compile([RISE.replace("SEQ(A ; B)", "SEQ(A : B)"), TWICE]).start()
    push(run, 1, "k v 1")
    push(run, 2, "k v 2")
    push(run, 3, "k v 3")
    assert shown(m for m in run.finish() if m.graph is None) == ["P@2 Q@3", "P@3 Q@3"]


def test_a_derived_stream_takes_no_events_from_outside() -> None:
    program = spaseq.compile([RISE, TWICE])
    assert program.streams == (S,)
    with pytest.raises(EventError, match="no query reads"):
        program.start().push(EX + "up", 1, triples("k rose 1"))


def test_a_cycle_is_an_error() -> None:
    loop = RISE.replace("FROM STREAM s :s", "FROM STREAM s :s FROM STREAM u :up").replace(
        "GPM A ON s", "GPM A ON s, u"
    )
    with pytest.raises(QueryError):
        spaseq.compile(loop)


def test_state_between_writer_and_reader_is_saved() -> None:
    program = spaseq.compile([RISE, TWICE])
    run = program.start()
    for time in (1, 2, 3):
        push(run, time, f"k v {time}")
        run = program.resume(run.save())
    assert shown(m for m in run.finish() if m.graph is None) == ["P@2 Q@3"]


# ------------------------------------------------------------------ the compiled loop

LAST = text(
    seq="SEQ(A ; !B)",
    gpms="DEFINE GPM A ON u { ?k :rose ?x } DEFINE GPM B ON u { ?k :rose ?y FILTER(?y > 3) }",
    streams="FROM STREAM u :up",
    clauses="WITHIN 3 SECONDS",
)
DEADLINE = text(
    seq="SEQ(A ; !B WITHIN 2 SECONDS)",
    gpms="DEFINE GPM A ON u { ?k :rose ?x } DEFINE GPM B ON u { ?k :rose ?y FILTER(?y > 3) }",
    streams="FROM STREAM u :up",
)
GROUPED = (
    text(
        seq="SEQ(A)",
        head="SELECT ?k (COUNT(*) AS ?n) (SUM(?x) AS ?sum)",
        gpms="DEFINE GPM A ON u { ?k :rose ?x }",
        streams="FROM STREAM u :up",
    )
    + " GROUP BY ?k OVER TUMBLING 3 SECONDS"
)
CHAIN = text(
    seq="SEQ(P)",
    head="CONSTRUCT { ?k :twice ?p }",
    gpms="DEFINE GPM P ON u { ?k :rose ?p }",
    streams="FROM STREAM u :up",
).replace("CONSTRUCT", "REGISTER STREAM :more AS CONSTRUCT")
ENDS = text(
    seq="SEQ(M , M)", gpms="DEFINE GPM M ON m { ?k :twice ?m }", streams="FROM STREAM m :more"
)
OTHER = text(gpms="DEFINE GPM A ON s { ?k :v ?x } DEFINE GPM B ON s { ?k :v ?y }")
WAITS = text(
    seq="SEQ(A ; !B)",
    gpms="DEFINE GPM A ON s { ?k :v ?x } DEFINE GPM B ON s { ?k :v ?y FILTER(?y > 3) }",
    clauses="WITHIN 2 SECONDS",
)


def results(
    queries: list[str], events: list[Event], seed: int, *, one_by_one: bool = False
) -> list[tuple[object, ...]]:
    """All matches in their order; the events come in batches of random length, or one by one."""
    draw = random.Random(seed)
    run = spaseq.compile(queries).start()
    found: list[Match] = []
    if one_by_one:
        for each in events:
            found += run.push(each.stream, each.time, each.facts)
    else:
        for some in batches(events, draw):
            found += run.push_batch(encoded(run, some))
            if draw.random() < 0.1:
                run = spaseq.compile(queries).resume(run.save())
    found += run.finish()
    return [
        (match.query, match.start, match.end, [e.time for e in match.events], match.bindings)
        for match in found
    ]


def drawn(seed: int) -> list[Event]:
    """Events of a few keys, several at some times, with rising values now and then."""
    draw = random.Random(seed)
    found, time, ordinal = [], 0, -1
    for _ in range(90):
        step = draw.choice([0, 1, 1, 1, 2, 5])
        time, ordinal = time + step, 0 if step else ordinal + 1
        some = event(time * 1_000_000, "v", draw.choice("kj"), draw.randrange(6), ordinal)
        found.append(some)
    return found


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize(
    "queries",
    [
        [RISE, TWICE],
        [RISE, OTHER, TWICE],
        [OTHER, RISE, LAST, TWICE],
        [RISE, WAITS, DEADLINE],
        [RISE, OTHER, GROUPED],
        [RISE, CHAIN, ENDS, LAST],
    ],
    ids=["twice", "other", "window", "deadline", "groups", "chain"],
)
def test_readers_follow_the_compiled_loop(
    monkeypatch: pytest.MonkeyPatch, queries: list[str], one_by_one: bool
) -> None:
    taken: list[int] = []
    count = MultiRun.count

    def counted(self: MultiRun, events: EventSequence, first: int, after: int) -> None:
        taken.append(after - first)
        count(self, events, first, after)

    monkeypatch.setattr(MultiRun, "count", counted)
    for seed in range(5):
        events = drawn(seed)
        found = results(queries, events, seed, one_by_one=one_by_one)
        with monkeypatch.context() as patch:
            patch.setattr(Followers, "can_follow", lambda self: False)
            assert found == results(queries, events, seed, one_by_one=one_by_one)
        assert {row[0] for row in found} >= {"query1", f"query{len(queries)}"}
    assert one_by_one or sum(taken) > 100


def test_a_query_behind_a_reader_keeps_its_place() -> None:
    """Matches are in the order of queries, so the loop does not take such a program."""
    run = spaseq.compile([RISE, TWICE, OTHER]).start()
    for time in (1, 2, 3):
        push(run, time, f"k v {time}")
    assert run.evaluation._multi is None
