"""The end of input: `at_end`, `finish(close=...)`, `--at-end`, and the mark `closedByEnd`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from deadlines import timed
from oracle import Reference, comparable
from strategies import EXAMPLE, Case, random_case

import spaseq
from spaseq.cli import main
from spaseq.errors import SpaseqError
from spaseq.parser import ast, parse

HEAD = "PREFIX : <http://example.org/>"
S, T = "http://example.org/S", "http://example.org/T"
ALONE = f"""{HEAD} SELECT ?x WITHIN 10 SECONDS FROM STREAM S :S
WHERE {{ SEQ(A ; !B) DEFINE GPM A ON S {{ ?x :a [] }} DEFINE GPM B ON S {{ [] :b [] }} }}"""
TWO = ALONE.replace("FROM STREAM S :S", "FROM STREAM S :S FROM STREAM T :T").replace(
    "B ON S", "B ON T"
)
Item = tuple[float, bytes]


def a(time: float, name: str = "x") -> Item:
    return time, f"<http://example.org/{name}> <http://example.org/a> <urn:o> .".encode()


def other(time: float) -> Item:
    return time, b"<urn:s> <urn:p> <urn:o> ."


def found(text: str, at_end: str = "close", **streams: list[Item]) -> list[tuple[str, bool]]:
    given = {f"http://example.org/{name}": items for name, items in streams.items()}
    matches = spaseq.run(text, given, at_end=at_end)  # type: ignore[arg-type]
    return [(m.bindings["x"].value[19:], m.closed_by_end) for m in matches]


# ------------------------------------------------------------------ one stream


def test_what_time_has_not_passed_is_closed_by_the_end() -> None:
    events = [a(0, "x"), a(3, "y"), other(13), a(20, "z")]
    # y closes at 13, after the events of that time, and 20 is later; z closes at 30.
    assert found(ALONE, S=events) == [("x", False), ("y", False), ("z", True)]
    assert found(ALONE, "open", S=events) == [("x", False), ("y", False)]
    assert found(ALONE, S=events[:3]) == [("x", False), ("y", True)]


def test_a_tumbling_window_closes_before_the_events_of_its_end() -> None:
    tumbling = ALONE.replace("WITHIN 10", "WITHIN TUMBLING 10")
    assert found(tumbling, S=[a(1), other(10)]) == [("x", False)]
    assert found(tumbling, S=[a(1), other(9)]) == [("x", True)]
    assert found(tumbling, "open", S=[a(1), other(9)]) == []


def test_groups_of_a_window_that_only_the_end_closes_are_marked() -> None:
    grouped = f"""{HEAD} SELECT ?x (COUNT(*) AS ?n) WITHIN 1 SECOND FROM STREAM S :S
    WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :a [] }} }} GROUP BY ?x OVER TUMBLING 10 SECONDS"""
    assert found(grouped, S=[a(1), a(12, "y")]) == [("x", False), ("y", True)]
    assert found(grouped, "open", S=[a(1), a(12, "y")]) == [("x", False)]
    sliding = grouped.replace("TUMBLING ", "")
    assert found(sliding, S=[a(1), a(12, "y")]) == [("x", False), ("y", False)]


def test_a_match_that_did_not_wait_is_not_marked() -> None:
    text = ALONE.replace("; !B", "").replace("DEFINE GPM B ON S { [] :b [] }", "")
    assert found(text, S=[a(0)]) == [("x", False)]
    assert found(text, "open", S=[a(0)]) == [("x", False)]


def test_an_instant_that_is_open_stays_open() -> None:
    text = ALONE.replace("; !B", "").replace("DEFINE GPM B ON S { [] :b [] }", "") + " LIMIT 1"
    assert found(text, S=[a(0)]) == [("x", False)]
    assert found(text, "open", S=[a(0), other(1)]) == [("x", False)]


def test_json_has_the_mark_behind_the_events() -> None:
    (match,) = spaseq.run(ALONE, {S: [a(0)]})
    data = json.loads(match.to_json())
    assert list(data) == ["query", "start", "end", "bindings", "events", "closedByEnd"]
    assert data["closedByEnd"] is True
    ask = ALONE.replace("SELECT ?x", "ASK")
    (answer,) = spaseq.run(ask, {S: [a(0)]})
    assert list(answer.to_dict()) == ["query", "end", "boolean", "closedByEnd"]


def test_equal_queries_have_the_mark() -> None:
    both = spaseq.compile([ALONE, ALONE], names=["p", "q"])
    marks = [(m.query, m.closed_by_end) for m in spaseq.run(both, {S: [a(0)]})]
    assert sorted(marks) == [("p", True), ("q", True)]


# ------------------------------------------------------------------ several streams


def test_a_stream_that_ended_has_not_passed_later_times() -> None:
    assert found(TWO, S=[a(0), other(30)], T=[other(5)]) == [("x", True)]
    assert found(TWO, S=[a(0), other(30)], T=[other(11)]) == [("x", False)]
    assert found(TWO, S=[a(0), other(30)], T=[]) == [("x", True)]


def test_events_wait_where_another_stream_has_ended() -> None:
    assert found(TWO, "open", S=[a(0), other(30)], T=[other(5)]) == []
    assert found(TWO, "open", S=[a(0), other(30)], T=[other(10)]) == []
    assert found(TWO, "open", S=[a(0), other(30)], T=[other(11)]) == [("x", False)]
    assert found(TWO, "open", S=[a(0), other(30)], T=[other(31)]) == [("x", False)]
    assert found(TWO, "open", S=[a(0), other(30)], T=[]) == []


def test_queries_of_different_streams_cannot_end_open() -> None:
    texts = [TWO, ALONE]
    with pytest.raises(SpaseqError, match="does not read all streams"):
        spaseq.run(texts, {S: [a(0)], T: []}, at_end="open")
    with pytest.raises(SpaseqError, match="'close' or 'open'"):
        spaseq.run(ALONE, {S: [a(0)]}, at_end="never")  # type: ignore[arg-type]


def test_readers_of_a_registered_stream() -> None:
    writer = ALONE.replace("SELECT ?x", "REGISTER STREAM <urn:d> AS CONSTRUCT { ?x :a 1 }")
    reader = ALONE.replace("FROM STREAM S :S", "FROM STREAM S <urn:d>")
    matches = list(spaseq.run([writer, reader], {S: [a(0), other(40)]}))
    assert [(m.query, m.end.micros // 10**6, m.closed_by_end) for m in matches] == [
        ("query1", 10, False),
        ("query2", 20, False),
    ]
    matches = list(spaseq.run([writer, reader], {S: [a(0), other(15)]}))
    assert [m.closed_by_end for m in matches] == [False, True]


# ------------------------------------------------------------------ drawn cases


def iterables(case: Case) -> dict[str, object]:
    return {iri: iter(events) for iri, events in case.streams.items()}


def test_marks_are_those_of_the_reference() -> None:
    marked = 0
    for case in (*map(random_case, range(250)), *map(timed, range(150))):
        query = parse(case.query)
        if isinstance(query.form, ast.Ask) or query.groups is not None:
            continue
        reference = Reference(query, case.streams, case.kb)
        known = {key: match for match in reference.matches for key in comparable([match])}
        program = spaseq.compile(case.query, names=["q"])
        for match in spaseq.run(program, iterables(case), kb=case.kb):
            (key,) = comparable([match])
            assert match.closed_by_end == reference.closed_by_end(known[key]), case.entry()
            marked += match.closed_by_end
    assert marked > 5


@pytest.mark.parametrize("drawn", [random_case, timed])
@pytest.mark.parametrize("seed", range(60))
def test_an_open_end_can_be_resumed(drawn: Callable[[int], Case], seed: int) -> None:
    case = drawn(seed)
    program = spaseq.compile(case.query, names=["q"])
    run, results = program.start(kb=case.kb), []
    half = len(case.merged) // 2
    results += run.push_batch(case.merged[:half])
    assert run.finish(close=False) == []
    run = program.resume(run.save(), kb=case.kb)
    results += [*run.push_batch(case.merged[half:]), *run.finish()]
    found = Reference(parse(case.query), case.streams, case.kb).objection(comparable(results))
    assert not found, f"{found}\n{case.entry()}"


# ------------------------------------------------------------------ the command line


def test_the_option(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    query, stream = tmp_path / "q.rq", tmp_path / "s.nq"
    query.write_text(ALONE)
    zero = '"0"^^<http://www.w3.org/2001/XMLSchema#integer>'
    stream.write_text(
        f"<urn:g> <http://www.w3.org/ns/prov#generatedAtTime> {zero} .\n"
        f'<{EXAMPLE}x> <{EXAMPLE}a> "1" <urn:g> .\n'
    )
    command = ["run", str(query), "--stream", f"S={stream}"]
    assert main(command) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["closedByEnd"] is True
    assert err == (
        "spaseq: 1 match was certain only because the input ended (closedByEnd); "
        "--at-end open omits them\n"
    )
    assert main([*command, "--at-end", "open"]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert err == ("spaseq: no match: 1 match waiting for the window to close (--why tells more)\n")
