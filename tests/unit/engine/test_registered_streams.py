"""Queries that read what others write (`REGISTER STREAM`)."""

from __future__ import annotations

import pytest
from engine_runs import EX, S, shown, text, triples

import spaseq
from spaseq.errors import EventError, QueryError

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


def test_a_replaced_reader_keeps_the_events_that_wait() -> None:
    run = spaseq.compile([RISE, TWICE]).start()
    found: list[str] = []
    for time in (1, 2, 3):
        found += push(run, time, f"k v {time}")
        run.replace("query2", spaseq.compile(TWICE, names=["query2"]), "keep")
    assert found + shown(m for m in run.finish() if m.graph is None) == ["P@2 Q@3"]
