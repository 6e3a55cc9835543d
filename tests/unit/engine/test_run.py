"""The rules of `push`, `advance` and `finish`: order, time, streams, and when results come."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from engine_runs import EX, GPMS, R, S, program, push, shown, triples

import spaseq
from spaseq.errors import EventError
from spaseq.rdf.event import Event
from spaseq.rdf.time import from_value

TWO = "FROM STREAM s :s FROM STREAM r :r"
BOTH = "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON r { ?k :b ?y }"


# ------------------------------------------------------------------ when results come


def test_a_match_is_there_when_its_last_event_is() -> None:
    run = program().start()
    assert push(run, 1, "k a 1") == []
    assert push(run, 2, "k b 2") == ["A@1 B@2"]
    assert run.finish() == []


CHOOSING = {"seq": "SEQ(A : B)", "clauses": "WITHIN 10 SECONDS EMIT NEXT"}


def test_of_one_stream_an_instant_is_one_event_and_known_at_once() -> None:
    run = program(**CHOOSING).start()
    push(run, 1, "k a 1")
    push(run, 2, "k a 1")
    assert push(run, 3, "k b 2") == ["A@1 B@3"]


@pytest.mark.parametrize(
    "close",
    [
        lambda run: run.push(S, 4, ()),
        lambda run: run.push(R, 3, ()),
        lambda run: run.advance(4),
        lambda run: run.finish(),
    ],
    ids=["a later event", "the other stream's event", "a watermark", "the end"],
)
def test_emit_waits_until_every_stream_is_past_the_instant(
    close: Callable[[spaseq.Run], list[spaseq.Match]],
) -> None:
    run = program(**CHOOSING, gpms=BOTH.replace("r {", "s, r {"), streams=TWO).start()
    push(run, 1, "k a 1")
    push(run, 2, "k a 1")
    assert push(run, 3, "k b 2") == []
    assert run.advance(3) == []
    assert shown(close(run)) == ["A@1 B@3"]


def test_a_trailing_negation_waits_for_its_window_and_ends_there() -> None:
    run = program(seq="SEQ(A ; !B)", head="SELECT ?x").start()
    push(run, 1, "k a 1")
    assert run.advance(11) == []
    (match,) = run.advance(12)
    assert match.end.micros == 11_000_000
    assert match.start.micros == 1_000_000
    push(run, 20, "k a 2")
    push(run, 25, "k b 2")
    push(run, 26, "j a 2")
    assert run.advance(35) == []
    assert shown(run.finish()) == ["A@26"]


def test_a_tumbling_window_closes_before_the_events_at_its_end() -> None:
    run = program(seq="SEQ(A ; !B)", head="SELECT ?x", clauses="WITHIN TUMBLING 10 SECONDS").start()
    push(run, 1, "k a 1")
    assert shown(run.advance(10)) == ["A@1"]


def test_an_empty_event_is_a_heartbeat() -> None:
    run = program(seq="SEQ(A , B)").start()
    push(run, 1, "k a 1")
    push(run, 2, "")
    assert push(run, 3, "k b 2") == []


# ------------------------------------------------------------------ several streams


def test_simultaneous_events_do_not_follow_each_other() -> None:
    run = program(gpms=BOTH, streams=TWO).start()
    push(run, 1, "k a 1")
    assert push(run, 1, "k b 2", R) == []
    assert push(run, 2, "k b 3", R) == ["A@1 B@2"]


def test_the_order_in_which_streams_arrive_does_not_matter() -> None:
    for order in ((0, 1), (1, 0)):
        run = program(gpms=BOTH, streams=TWO).start()
        push(run, 1, "k a 1")
        events = [(2, "k b 1", R), (2, "j a 1", S)]
        found = [match for n in order for match in push(run, *events[n])]
        found += push(run, 3, "j b 1, k b 1", R)
        assert sorted(found) == ["A@1 B@2", "A@2 B@3"]


def test_a_greater_ordinal_waits_for_the_other_streams() -> None:
    """The second event of a timestamp waits until no other stream can have a second one there."""
    gpms = "DEFINE GPM A ON r { ?k :a ?x } DEFINE GPM B ON s { ?k :b ?y }"
    run = program(gpms=gpms, streams=TWO).start()
    push(run, 1, "j b 0")
    assert push(run, 1, "k b 1") == []
    assert push(run, 1, "k a 1", R) == []
    assert push(run, 2, "j c 0", R) == ["A@1 B@1"]
    run = program(gpms=gpms, streams=TWO).start()
    push(run, 1, "k a 1", R)
    push(run, 1, "j b 0")
    assert push(run, 1, "k b 1") == []
    assert push(run, 2, "j c 0", R) == ["A@1 B@1"]


def test_a_stream_that_stays_behind_is_waited_for_until_time_passes() -> None:
    run = program(streams=TWO, gpms=GPMS + " DEFINE GPM C ON r { ?k :c ?z }", seq="SEQ(A ; B ; C?)")
    started = run.start()
    push(started, 1, "k a 1")
    push(started, 1, "k b 1")
    assert push(started, 2, "") == []
    assert shown(started.advance(20)) == ["A@1 B@1"]


def test_two_events_of_one_timestamp_and_stream_follow_each_other() -> None:
    run = program().start()
    push(run, 1, "k a 1")
    assert push(run, 1, "k b 1") == ["A@1 B@1"]


# ------------------------------------------------------------------ what is refused


def refused(run: spaseq.Run, time: object, facts: str = "k a 1", stream: str = S) -> str:
    """The message of an event that is refused; nothing else may have changed."""
    before = run.save()
    with pytest.raises(EventError) as error:
        run.push(stream, time, triples(facts))
    assert run.save() == before
    return str(error.value)


def test_an_unknown_stream_lists_the_known_ones() -> None:
    run = program(gpms=BOTH, streams=TWO).start()
    message = refused(run, 1, stream=EX + "other")
    assert f"<{EX}other>" in message
    assert f"<{S}>, <{R}>" in message


def test_a_closed_timestamp_is_late() -> None:
    run = program(gpms=BOTH, streams=TWO).start()
    push(run, 5, "k a 1")
    assert "late" in refused(run, 4, stream=R)
    assert push(run, 5, "k b 1", R) == []
    run.advance(7)
    assert "has reached 7" in refused(run, 6.5)
    assert push(run, 7, "k b 2", R) == ["A@5 B@7"]


def test_times_of_two_kinds_are_not_mixed() -> None:
    run = program().start()
    push(run, 5, "k a 1")
    message = refused(run, datetime(2026, 1, 1, tzinfo=UTC))
    assert "one kind" in message
    with pytest.raises(EventError, match="one kind"):
        run.advance(datetime(2026, 1, 1, tzinfo=UTC))
    other = program().start()
    other.advance(datetime(2026, 1, 1, tzinfo=UTC))
    refused(other, 5)


def test_nothing_comes_after_the_end() -> None:
    run = program().start()
    push(run, 5, "k a 1")
    run.finish()
    assert run.finish() == []
    assert "start a new one" in refused(run, 6)


@pytest.mark.parametrize("time", ["yesterday", None, float("nan"), float("inf"), 1e300, 0.0000001])
def test_a_time_that_is_none(time: object) -> None:
    run = program().start()
    refused(run, time)


def test_a_refused_event_does_not_disturb_what_waits() -> None:
    run = program().start()
    push(run, 1, "k a 1")
    for time, stream in ((0, S), (2, EX + "other")):
        refused(run, time, stream=stream)
    assert push(run, 2, "k b 1") == ["A@1 B@2"]


def test_watermarks_never_go_back() -> None:
    run = program().start()
    run.advance(10)
    assert run.advance(5) == []
    assert "10" in refused(run, 7)


# ------------------------------------------------------------------ times


def test_times_are_datetimes_numbers_or_timestamps() -> None:
    noon = datetime(2026, 1, 5, 12, tzinfo=UTC)
    elsewhere = (noon + timedelta(seconds=2)).astimezone(timezone(timedelta(hours=5)))
    run = program().start()
    push(run, noon, "k a 1")
    (match,) = run.push(S, elsewhere, triples("k b 1"))
    assert match.end.micros - match.start.micros == 2_000_000
    run = program().start()
    push(run, from_value(1), "k a 1")
    assert push(run, 1.5, "k b 1") == ["A@1 B@1.5"]


def test_negative_times() -> None:
    run = program().start()
    push(run, -5, "k a 1")
    assert push(run, -4.5, "k b 1") == ["A@-5 B@-4.5"]


# ------------------------------------------------------------------ batches


def events(*times: int) -> list[Event]:
    out = []
    for time in times:
        facts = tuple((t.subject, t.predicate, t.object) for t in triples(f"k {'ab'[time % 2]} 1"))
        out.append(Event(S, from_value(time), 0, facts))
    return out


def test_a_batch_is_processed_as_its_matches_are_taken() -> None:
    run = program().start()
    found = run.push_batch(events(2, 3, 4, 5))
    assert shown([next(found)]) == ["A@2 B@3"]
    assert run.clock.events == 2
    assert shown(found) == ["A@4 B@5"]


def test_a_batch_that_goes_back_keeps_what_came_before() -> None:
    run = program().start()
    with pytest.raises(EventError, match="late"):
        list(run.push_batch(events(2, 1, 3)))
    assert push(run, 3, "k b 1") == ["A@2 B@3"]


def test_an_ordinal_must_be_the_next() -> None:
    run = program().start()
    (event,) = events(2)
    with pytest.raises(EventError, match="number 1"):
        list(run.push_batch([Event(S, event.time, 1, event.facts)]))
    assert run.clock.events == 0
