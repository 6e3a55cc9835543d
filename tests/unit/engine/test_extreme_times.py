"""Times near the least and the greatest representable ones mean what they mean elsewhere.

A drawn case is moved so far that durations added to its times, or subtracted from them, may leave
64 bits. It has the results that it has near zero, moved as far. `SPASEQ_EXAMPLES` is the number of
cases of each sort (default 50).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from bounds import bounded
from deadlines import timed
from oracle import timestamp
from strategies import EXAMPLE, Case, random_case

import spaseq
from spaseq.rdf.checked import GREATEST, LEAST
from spaseq.rdf.event import NUMBER
from spaseq.results import Match

STEP = 60_000_000
"""The windows and groups of drawn cases that tumble are divisors of it."""
CASES = int(os.environ.get("SPASEQ_EXAMPLES", "50"))
"""Drawn cases of each sort; a fifth of them when each event is followed by saving and resuming."""
MARGIN = 1_000_000_000
"""More than the windows and deadlines of drawn cases together."""
Shown = tuple[object, ...]


def moved(case: Case, micros: int) -> Case:
    """The case, later by some microseconds."""
    return replace(
        case,
        streams={
            iri: [replace(e, time=timestamp(e.time.micros + micros, NUMBER)) for e in events]
            for iri, events in case.streams.items()
        },
    )


def results(case: Case, micros: int, *, close: bool, save: bool = False) -> list[Shown]:
    """The results of a case that is moved; their times are moved back."""
    there = moved(case, micros)
    program = spaseq.compile(there.query, names=["q"])
    run = program.start()
    found: list[Match] = []
    for event in there.merged:
        found += run.push_batch([event])
        if save:
            run = program.resume(run.save())
    found += run.finish(close=close)
    return sorted(
        (
            match.end.micros - micros,
            match.closed_by_end,
            str(match.bindings),
            [(e.gpm, e.stream, e.time.micros - micros, e.ordinal) for e in match.events],
        )
        for match in found
    )


def times(case: Case) -> list[int]:
    return [event.time.micros for event in case.merged] or [0]


@pytest.mark.parametrize("draw", [timed, bounded, random_case])
@pytest.mark.parametrize("save", [False, True])
def test_drawn_cases_near_both_ends(draw: Callable[[int], Case], save: bool) -> None:
    chance = random.Random(7)
    for seed in range(CASES // (5 if save else 1)):
        case = draw(seed)
        if case.kb or " AT " in case.query:
            continue  # AT binds the time, and filters compare it with constants
        low, high = LEAST - min(times(case)), GREATEST - max(times(case))
        if "TUMBLING" in case.query:
            low, high = -(-low // STEP) * STEP, high // STEP * STEP
        low += chance.choice((0, 0, STEP))
        for close in (False, True):
            wanted = results(case, 0, close=close, save=save)
            assert results(case, low, close=close, save=save) == wanted, f"{seed}\n{case.entry()}"
        # What the end of input closes beyond the greatest time is shown at that time.
        assert results(case, high, close=False) == results(case, 0, close=False), seed
        early = high - MARGIN // STEP * STEP
        assert results(case, early, close=True) == results(case, 0, close=True), seed


HEAD = f"PREFIX : <{EXAMPLE}> SELECT * WITHIN {{}} FROM STREAM S :S"
GPMS = "DEFINE GPM A ON S { [] :a ?a } DEFINE GPM B ON S { [] :b ?b }"


def answers(sequence: str, window: str, *events: tuple[str, int], close: bool = True) -> list[int]:
    """The ends of the matches of events such as ("a", time in microseconds)."""
    program = spaseq.compile(f"{HEAD.format(window)} WHERE {{ SEQ({sequence}) {GPMS} }}")
    run, found = program.start(), []
    for kind, micros in events:
        fact = f'<{EXAMPLE}e> <{EXAMPLE}{kind}> "1" .'
        found += run.push("S", timestamp(micros, NUMBER), fact)
    return [match.end.micros for match in [*found, *run.finish(close=close)]]


def test_what_lies_far_back_is_not_seen_from_the_other_end() -> None:
    far = ("a", LEAST), ("b", GREATEST)
    assert answers("A ; B WITHIN 5 SECONDS", "UNBOUNDED", *far) == []
    assert answers("A ; B", "UNBOUNDED", *far) == [GREATEST]
    assert answers("A ; B", "100 DAYS", *far) == []
    assert answers("(A ; B) WITHIN 5 SECONDS", "2 EVENTS", *far) == []
    assert answers("!A WITHIN 5 SECONDS ; B", "2 EVENTS", *far) == [GREATEST]
    assert answers("A ; B? WITHIN 5 SECONDS", "UNBOUNDED", *far) == [LEAST + 5_000_000]


def test_a_deadline_that_no_event_can_pass_waits_for_the_end() -> None:
    last = ("a", GREATEST - 1_000_000), ("b", GREATEST)
    assert answers("A ; !B WITHIN 5 SECONDS", "9 EVENTS", *last) == []
    assert answers("A ; !B WITHIN 5 SECONDS", "9 EVENTS", last[0], close=False) == []
    assert answers("A ; !B WITHIN 5 SECONDS", "9 EVENTS", last[0]) == [GREATEST]
    assert answers("A ; !B WITHIN 1 SECOND", "9 EVENTS", *last) == []
    assert answers("A ; !B WITHIN 1 SECOND", "9 EVENTS", last[0], ("x", GREATEST)) == [GREATEST]
    assert answers("A ; !B", "5 SECONDS", *last) == []
    assert answers("A ; !B", "5 SECONDS", last[0]) == [GREATEST]
    assert answers("A ; !B", "TUMBLING 5 SECONDS", last[0], ("x", GREATEST)) == [GREATEST]


def test_the_first_tumbling_window_begins_before_the_least_time() -> None:
    # The least time is …4.775808 s, so windows of 10 seconds begin at …0 s.
    second = 1_000_000
    border = -(-LEAST // (10 * second)) * 10 * second
    split = ("a", border - second), ("b", border)
    assert answers("A ; B", "TUMBLING 10 SECONDS", *split) == []
    assert answers("A ; B", "TUMBLING 10 SECONDS", ("a", LEAST), ("b", border - 1)) != []
    assert answers("A ; !B", "TUMBLING 10 SECONDS", *split) == [border]


def test_an_absence_in_front_looks_back_to_the_least_time() -> None:
    for start in (LEAST, LEAST + 500_000):
        both = ("a", start), ("b", start + 1_000_000)
        assert answers("!A WITHIN 3 SECONDS ; B", "10 SECONDS", *both) == []
        assert answers("!A ; B", "10 SECONDS", *both) == []
        assert answers("!A WITHIN 3 SECONDS ; B", "10 SECONDS", both[1]) == [start + 1_000_000]
