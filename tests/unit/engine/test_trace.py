"""The trace: one line per transition, and no effect on results."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.engine.tracing import VARIABLE

E = "http://example.org/"
QUERY = f"""PREFIX : <{E}>
SELECT ?s ?x ?y WITHIN 10 SECONDS FROM STREAM S :S
WHERE {{ SEQ(A ; B+ : (C & D))
  DEFINE GPM A ON S {{ ?s :a ?x }} DEFINE GPM B ON S {{ ?s :b ?y }}
  DEFINE GPM C ON S {{ ?s :c [] }} DEFINE GPM D ON S {{ ?s :d [] }} }}"""
CHAIN = f"""PREFIX : <{E}>
SELECT * WITHIN 10 SECONDS FROM STREAM S :S
WHERE {{ SEQ(A : B : C)
  DEFINE GPM A ON S {{ ?a :a ?x }} DEFINE GPM B ON S {{ ?b :b ?y FILTER(?y != ?x) }}
  DEFINE GPM C ON S {{ ?c :c ?z }} }}"""
SKIPPED = f"""PREFIX : <{E}>
SELECT * WITHIN 10 SECONDS FROM STREAM S :S
WHERE {{ SEQ(A ; !B) DEFINE GPM A ON S {{ ?s :a ?x }} DEFINE GPM B ON S {{ ?s :b ?y }} }}"""


def results(query: str, *events: tuple[int, str]) -> int:
    """Push events, each a time and the predicate of its triple; the number of matches."""
    run = spaseq.compile(query).start()
    found = 0
    for time, predicate in events:
        fact = ox.NamedNode(E + "s"), ox.NamedNode(E + predicate), ox.Literal(time)
        found += len(list(run.push(E + "S", time, [fact])))
    return found + len(list(run.finish()))


def test_each_transition_is_a_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    events = [(1, "a"), (2, "b"), (3, "b"), (3, "x"), (4, "c"), (4, "d")]
    without = results(QUERY, *events)
    assert capfd.readouterr().err == ""
    monkeypatch.setenv(VARIABLE, "1")
    assert results(QUERY, *events) == without == 2
    lines = capfd.readouterr().err.splitlines()
    s = f"[s = <{E}s>]"
    assert lines == [
        f"trace query: 1 #0: place 1 -A-> place 2 {s}",
        f"trace query: 2 #0: place 2 -B (begins B+)-> place 3 {s}",
        f"trace query: 2 #0: place 2 -B (begins B+)-> place 4 {s}",
        f"trace query: 3 #0: place 3 -B (again in B+)-> place 3 {s}",
        f"trace query: 3 #0: place 3 -B (again in B+)-> place 4 {s}",
        # One transition extends both partial matches that wait in place 4.
        "trace query: 4 #1: place 4 -C & D-> accept",
    ]


def test_a_traced_chain_is_joined_eagerly(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    assert results(CHAIN, (1, "a"), (2, "b"), (3, "c")) == 1
    assert [
        line.split(": ", 2)[2].split(" [")[0] for line in capfd.readouterr().err.splitlines()
    ] == [
        "place 1 -A-> place 2",
        "place 2 -B-> place 3",
        "place 3 -C-> accept",
    ]


def test_a_match_that_waits_for_its_window_is_a_transition(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    assert results(SKIPPED, (1, "a")) == 1
    assert "place 1 -A-> accept at the closing of the window [s = <" in capfd.readouterr().err


@pytest.mark.parametrize("value", ["", "0"])
def test_other_values_switch_it_off(
    value: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, value)
    assert results(CHAIN, (1, "a"), (2, "b"), (3, "c")) == 1
    assert capfd.readouterr().err == ""
