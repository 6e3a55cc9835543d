"""Encoded batches on the compiled core: errors within a batch, and runs that continue."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
from collections.abc import Callable, Iterator

import pyoxigraph as ox
import pytest
from core_runs import Taken, encoded
from engine_runs import EX, S, program, push, shown

import spaseq
from spaseq.errors import EventError
from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Timestamp
from spaseq.rdf.native._terms import EventBatch
from spaseq.results import Match


def event(
    seconds: int, letter: str, ordinal: int = 0, stream: str = S, dated: bool = False
) -> Event:
    kind = "dateTime" if dated else "integer"
    lexical = f"1970-01-01T00:00:{seconds:02}Z" if dated else str(seconds)
    stamp = ox.Literal(lexical, datatype=ox.NamedNode(f"http://www.w3.org/2001/XMLSchema#{kind}"))
    fact = ox.NamedNode(EX + "k"), ox.NamedNode(EX + letter), ox.Literal(seconds)
    time = Timestamp(seconds * 1_000_000, DATE_TIME if dated else NUMBER, stamp)
    return Event(stream, time, ordinal, [fact])


def started() -> tuple[spaseq.Run, Taken]:
    run = program().start()
    assert run.queries[0].native
    return run, Taken(run)


def test_a_whole_batch_is_taken_without_python() -> None:
    run, taken = started()
    some = [event(n, "xax"[n % 3]) for n in range(50)]
    assert list(run.push_batch(encoded(run, some))) == []
    assert (taken.events, taken.calls) == (50, 1)
    assert run.stats["events"] == 50


def test_a_match_comes_before_the_events_after_it_are_looked_at() -> None:
    run, taken = started()
    found = run.push_batch(encoded(run, [event(n, "ab"[n % 2]) for n in range(10)]))
    assert shown([next(found)]) == ["A@0 B@1"]
    assert run.stats["events"] == taken.events == 2
    assert shown(found) == ["A@2 B@3", "A@4 B@5", "A@6 B@7", "A@8 B@9"]


def test_a_run_may_be_looked_at_and_saved_between_two_matches() -> None:
    run, _ = started()
    some = [event(n, "ab"[n % 2]) for n in range(6)]
    found = run.push_batch(encoded(run, some))
    assert shown([next(found)]) == ["A@0 B@1"]
    assert (run.stats["events"], run.stats["matches"]) == (2, 1)
    again = program().resume(run.save())
    assert shown(again.push_batch(some[2:])) == shown(found) == ["A@2 B@3", "A@4 B@5"]


def test_matches_live_on_when_their_run_is_gone() -> None:
    run, _ = started()
    found = list(run.push_batch(encoded(run, [event(n, "ab"[n % 2]) for n in range(4)])))
    del run
    gc.collect()
    assert shown(found) == ["A@0 B@1", "A@2 B@3"]
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert again[0] != found[1]
    assert [match.to_json() for match in again] == [match.to_json() for match in found]
    assert repr(found[0]).startswith("<Match of ")


def test_equal_times_are_taken_by_their_ordinals() -> None:
    run, taken = started()
    some = [event(1, "a"), event(1, "b", 1), event(1, "a", 2), event(1, "b", 3)]
    assert shown(run.push_batch(encoded(run, some))) == ["A@1 B@1", "A@1 B@1"]
    assert taken.events == 4


def test_batches_go_on_where_single_events_stopped_and_the_other_way_round() -> None:
    run, taken = started()
    push(run, 1, "k a 1")
    assert shown(run.push_batch(encoded(run, [event(1, "b", 1), event(1, "a", 2)]))) == ["A@1 B@1"]
    assert push(run, 1, "k b 1") == ["A@1 B@1"]
    assert run.advance(5) == []
    assert shown(run.push_batch(encoded(run, [event(5, "a"), event(6, "b")]))) == ["A@5 B@6"]
    assert taken.events == 4


WRONG = {
    "late": ([event(1, "x")], "is late"),
    "an ordinal too great": ([event(4, "x", 1)], "says it is number 1"),
    "an ordinal twice": ([event(3, "x", 0)], "says it is number 0"),
    "a date": ([event(4, "x", dated=True)], "one kind for all streams"),
}


def consumed(found: Iterator[Match]) -> tuple[list[Match], str]:
    """The matches, and the message that ended them."""
    matches: list[Match] = []
    with pytest.raises(EventError) as error:
        matches.extend(found)
    return matches, str(error.value)


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("pusher", ["encoded", "plain"])
def test_a_wrong_event_is_refused_and_those_before_it_count(name: str, pusher: str) -> None:
    (wrong,), words = WRONG[name]
    run, taken = started()
    some = [event(1, "a"), event(2, "b"), event(3, "a"), wrong, event(4, "b")]
    given: EventBatch | list[Event] = encoded(run, some) if pusher == "encoded" else some
    found, message = consumed(run.push_batch(given))
    assert shown(found) == ["A@1 B@2"]
    assert words in message
    assert run.clock.events == 3
    assert taken.events == (3 if pusher == "encoded" else 0)
    # What comes right after it is taken as if nothing had been.
    before = run.save()
    assert shown(run.push_batch(encoded(run, [event(3, "x", 1), event(5, "b")]))) == ["A@3 B@5"]
    again = program().resume(before)
    assert shown(again.push_batch([event(3, "x", 1), event(5, "b")])) == ["A@3 B@5"]


def test_a_wrong_first_event_is_refused() -> None:
    run, taken = started()
    _, message = consumed(run.push_batch(encoded(run, [event(1, "a", 1)])))
    assert "says it is number 1" in message
    assert (run.clock.events, taken.events) == (0, 0)


def test_a_stream_that_nobody_reads_is_refused() -> None:
    run, taken = started()
    push(run, 1, "k a 1")
    _, message = consumed(run.push_batch(encoded(run, [event(2, "b", stream=EX + "other")])))
    assert "no query reads the stream" in message
    assert taken.events == 0
    assert push(run, 2, "k b 1") == ["A@1 B@2"]


@pytest.mark.parametrize(
    "end", [lambda run: run.finish(), lambda run: run.advance(9)], ids=["finished", "a watermark"]
)
def test_nothing_comes_after_its_time(end: Callable[[spaseq.Run], list[Match]]) -> None:
    run, taken = started()
    push(run, 1, "k a 1")
    assert end(run) == []
    _, message = consumed(run.push_batch(encoded(run, [event(2, "b")])))
    assert "finished" in message or "is late" in message
    assert (run.clock.events, taken.events) == (1, 0)


ENDS = {
    "finished": (lambda run: run.finish(), "the run is finished"),
    "a watermark": (lambda run: run.advance(9), "is late"),
    "a later event": (lambda run: push(run, 9, ""), "is late"),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_batch_whose_time_has_passed_goes_no_further(end: str) -> None:
    """Its matches are taken one by one, and the run goes on in between."""
    run, taken = started()
    found = run.push_batch(encoded(run, [event(n, "ab"[n % 2]) for n in range(6)]))
    assert shown([next(found)]) == ["A@0 B@1"]
    going_on, words = ENDS[end]
    assert not going_on(run)
    closed = run.clock.closed
    matches, message = consumed(found)
    assert (matches, words in message) == ([], True)
    assert taken.events == 2
    assert run.clock.closed == closed


def test_a_batch_goes_on_behind_events_that_came_in_between() -> None:
    run, _ = started()
    some = [event(n, "ab"[n % 4 > 1]) for n in (0, 2, 4, 5, 6)]
    found = run.push_batch(encoded(run, some))
    assert shown([next(found)]) == ["A@0 B@2"]
    assert push(run, 3, "k b 1") == []
    assert shown(found) == ["A@4 B@6", "A@5 B@6"]
    assert run.stats["events"] == 6


def test_a_batch_is_counted_behind_one_that_was_refused() -> None:
    run, _ = started()
    found = run.push_batch(encoded(run, [event(n, "ab"[n % 2]) for n in range(4)]))
    assert shown([next(found)]) == ["A@0 B@1"]
    consumed(run.push_batch(encoded(run, [event(1, "b", 5)])))
    assert shown(found) == ["A@2 B@3"]
    assert run.stats["events"] == 4
    assert run.clock.time is not None
    assert run.clock.time.micros == 3_000_000


def test_an_empty_batch_is_nothing() -> None:
    run, _ = started()
    assert list(run.push_batch(EventBatch(run.rows.matchers.dictionary, stream=S))) == []
    assert run.clock.events == 0


with_lock = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="Python has no lock to give away"
)


@pytest.fixture
def unyielding() -> Iterator[None]:
    """A thread gets the interpreter's lock only where another one gives it away."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


def meanwhile(done: Callable[[spaseq.Run], None]) -> bool:
    """Match a batch; whether another thread could do something with the run in the midst of it."""
    run, _ = started()
    begun, finished = threading.Event(), threading.Event()

    def other() -> None:
        begun.wait()
        done(run)
        finished.set()

    thread = threading.Thread(target=other)
    thread.start()
    batch = encoded(run, [event(n, "a") for n in range(5000)])
    begun.set()
    assert run.queries[0].native.step.run(batch, 0, 0, 0, 0) == 5000
    could = finished.is_set()
    thread.join()
    return could


@with_lock
def test_other_threads_go_on_while_a_batch_is_matched(unyielding: None) -> None:
    # The other thread may be slow to wake up, but not every time.
    assert any(meanwhile(lambda run: None) for _ in range(100))


@with_lock
@pytest.mark.parametrize(
    "use",
    [
        lambda run: run.push(S, 6000, []),
        lambda run: list(run.push_batch([event(6000, "b")])),
        lambda run: run.save(),
        lambda run: run.stats,
        lambda run: run.why_not(),
        lambda run: run.finish(),
    ],
    ids=["push", "push_batch", "save", "stats", "why_not", "finish"],
)
def test_a_run_is_for_one_thread_at_a_time(
    use: Callable[[spaseq.Run], object], unyielding: None
) -> None:
    refused: list[str] = []

    def tried(run: spaseq.Run) -> None:
        try:
            use(run)
        except RuntimeError as error:
            refused.append(str(error))

    assert any(meanwhile(tried) and refused for _ in range(100))
    assert set(refused) == {"a run is for one thread at a time"}
