"""Absences with a deadline: when results come out, how much state waits, what a run explains."""

from __future__ import annotations

import warnings

import pyoxigraph as ox
import pytest
from oracle import timestamp
from strategies import EXAMPLE, iri

import spaseq
from spaseq.rdf.event import NUMBER, Event, Fact
from spaseq.results import Match
from spaseq.runs import Run

HEAD = "PREFIX : <http://example.org/> SELECT * WITHIN {} FROM STREAM S :S"
DEFINES = {
    "A": "DEFINE GPM A ON S { ?k :a ?a }",
    "B": "DEFINE GPM B ON S { ?k :b ?b }",
    "N": "DEFINE GPM N ON S { ?k :n ?n }",
}


def query(sequence: str, window: str = "60 SECONDS", head: str = HEAD) -> str:
    used = sequence.replace("WITHIN", "").replace("SECONDS", "")
    defines = " ".join(text for name, text in DEFINES.items() if name in used)
    return f"{head.format(window)} WHERE {{ SEQ({sequence}) {defines} }}"


def event(text: str, ordinal: int = 0) -> Event:
    """An event such as `a1`: its kind and time."""
    kind, time = text[0], timestamp(int(float(text[1:]) * 1_000_000), NUMBER)
    facts: list[Fact] = [(iri("k"), iri(kind), ox.Literal(int(float(text[1:]))))]
    return Event(EXAMPLE + "S", time, ordinal, facts)


def pushed(run: Run, *some: str) -> list[Match]:
    return list(run.push_batch([event(text) for text in some]))


def ends(matches: list[Match]) -> list[int]:
    return [match.end.micros // 1_000_000 for match in matches]


def groups(run: Run) -> int:
    return sum(place.groups for place in run.queries[0].counters().places)


def test_a_match_comes_out_once_its_deadline_has_passed() -> None:
    run = spaseq.compile(query("A ; !N WITHIN 5 SECONDS")).start()
    assert pushed(run, "a1", "x6") == []
    assert ends(pushed(run, "x7")) == [6]
    assert pushed(run, "a8", "n13", "x20") == []


def test_the_end_of_input_reaches_a_deadline_unless_it_is_open() -> None:
    program = spaseq.compile(query("A ; !N WITHIN 5 SECONDS"))
    run = program.start()
    assert pushed(run, "a1") == []
    left = program.resume(run.save())
    assert [(ends([m]), m.closed_by_end) for m in run.finish()] == [([6], True)]
    assert left.finish(close=False) == []
    assert ends(pushed(program.resume(left.save()), "x7")) == [6]


def test_state_is_bounded_by_the_deadline_and_by_the_window() -> None:
    # Each A has a value of its own that N reads, so each is a group.
    apart = query("A ; !N WITHIN {} ; B").replace("?k :n ?n }", "?k :n ?n FILTER(?n > ?a + 1000) }")
    for deadline, window in (("5 SECONDS", 60), ("60 SECONDS", 5)):
        text = apart.replace("WITHIN {}", f"WITHIN {deadline}").replace("60 S", f"{window} S", 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = spaseq.compile(text).start()
        most = 0
        for second in range(300):
            pushed(run, f"a{second}")
            places = run.queries[0].counters().places
            most = max(most, *(place.groups for place in places if place.place.operator == "for"))
        assert most <= 8, (deadline, window)


def test_a_negated_event_removes_what_waits() -> None:
    run = spaseq.compile(query("A ; !N WITHIN 50 SECONDS ; B")).start()
    pushed(run, *(f"a{second}" for second in range(20)))
    assert groups(run) > 0
    pushed(run, "n20")
    assert groups(run) == 0


def test_the_next_deadline_is_known() -> None:
    run = spaseq.compile(query("A ; !N WITHIN 5 SECONDS")).start()
    pushed(run, "a1", "a3")
    (one,) = run.queries
    assert one.next_closing() == 6_000_000
    pushed(run, "x7")
    assert one.next_closing() == 8_000_000
    pushed(run, "n8")
    assert one.next_closing() is None


@pytest.mark.parametrize("others", [0, 3])
def test_a_deadline_wakes_a_query_among_others(others: int) -> None:
    texts = [query("A ; !N WITHIN 5 SECONDS"), *[query("B ; A")] * others]
    run = spaseq.compile(texts).start()
    found = pushed(run, "a1", "x6", "x7")
    assert [match.query for match in found] == ["query1" if others else "query"]
    assert ends(found) == [6]


def test_explain_names_the_deadline() -> None:
    text = spaseq.compile(query("A ; !N WITHIN 5 SECONDS ; B")).explain()
    assert "!N  for  5 s  > 3" in text
    assert "constant time per event" in text


@pytest.mark.parametrize(
    ("sequence", "window", "warning"),
    [
        ("A ; !N WITHIN 5 SECONDS", "3 SECONDS", "the window closes before this deadline"),
        ("A ; !N WITHIN 5 SECONDS ; B", "TUMBLING 3 SECONDS", "the window closes before"),
        ("A ; !N WITHIN 5 SECONDS", "5 SECONDS", ""),
        ("A , !N WITHIN 5 SECONDS , B", "9 SECONDS", ""),
    ],
)
def test_warnings(sequence: str, window: str, warning: str) -> None:
    text = query(sequence, window)
    found = [finding.message for finding in spaseq.compile(text).warnings]
    assert [warning in message for message in found] == [True] * bool(warning)


def test_what_follows_is_unbound_in_the_filters_of_an_absence() -> None:
    text = query("A ; !N WITHIN 5 SECONDS ; B").replace("?k :n ?n }", "?k :n ?n FILTER(?n > ?b) }")
    (finding,) = spaseq.compile(text).warnings
    assert "?b" in finding.message
