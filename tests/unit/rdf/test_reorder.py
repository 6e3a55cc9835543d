"""Event time: late and early events, what may be released, and which streams are connected."""

from __future__ import annotations

import random

from spaseq.rdf.event import DATE_TIME, NUMBER
from spaseq.rdf.reorder import (
    BEFORE_ALL,
    Horizon,
    StreamTime,
    connected,
    holder_of,
    horizon,
    released_up_to,
)


class Stream(StreamTime):
    """A stream with waiting events."""

    def __init__(self, greatest: int | None, *, idle: bool = False, pending: int = 1):
        super().__init__()
        self.greatest, self.is_idle, self.pending = greatest, idle, pending


def test_an_event_at_the_watermark_is_not_late() -> None:
    stream = StreamTime(5)
    assert (stream.bound, stream.frontier, stream.late(-(10**15))) == (BEFORE_ALL, None, None)
    assert stream.reach(10) == 5
    assert stream.reach(7) == 5
    assert stream.late(5) is None
    assert stream.late(4) == ("lateness", 5)
    stream.promise(8)
    stream.promise(6)
    assert (stream.frontier, stream.late(8), stream.late(7)) == (8, None, ("watermark", 8))
    stream.floor = 9
    assert (stream.frontier, stream.late(9), stream.late(8)) == (8, None, ("idle", 9))
    stream.overtaken = "clock"
    assert stream.late(8) == ("clock", 9)
    stream.reach(20)
    assert (stream.frontier, stream.late(14)) == (15, ("lateness", 15))


def test_late_is_what_is_before_the_greatest_known_bound() -> None:
    draw = random.Random(1)
    for _ in range(300):
        stream = StreamTime(draw.randrange(4))
        stream.greatest, stream.promised, stream.floor = (
            draw.choice((None, draw.randrange(10))) for _ in range(3)
        )
        own = [] if stream.greatest is None else [stream.greatest - stream.lateness]
        others = [at for at in (stream.promised, stream.floor) if at is not None]
        bound = max(own + others, default=BEFORE_ALL)
        assert stream.bound == bound
        for at in range(-5, 12):
            assert (stream.late(at) is not None) == (at < bound)


def test_the_clock_goes_on_while_nothing_arrives() -> None:
    stream = Stream(100)
    stream.reached = 1_000
    assert stream.clock(1_050) == 150
    assert stream.clock(900) == 100  # the clock of the machine was set back
    assert stream.clock(0) == 100
    assert Stream(None).clock(1_000) is None
    limit = horizon([Stream(None), stream], 10, NUMBER, 1_050)
    assert limit.ahead(160) is None
    assert limit.ahead(170) is None  # the clock has reached 160
    assert limit.ahead(181) == ("ahead", 170)
    assert not limit.includes(181)
    assert limit.includes(180)


def test_the_clock_before_the_first_event() -> None:
    assert horizon([Stream(None)], 10, NUMBER, 1_000).ahead(10**18) is None
    assert horizon([Stream(None)], 10, DATE_TIME, 1_000).ahead(1_011) == ("ahead", 1_000)
    assert horizon([Stream(None)], 10, DATE_TIME, 0).ahead(10**18) is None
    first = Horizon(10, None)
    assert not first.includes(0)
    assert (first.ahead(50), first.ahead(61)) == (None, ("ahead", 50))


def test_streams_wait_for_the_slowest_that_is_not_idle() -> None:
    slow, fast, idle, silent = Stream(3), Stream(9), Stream(1, idle=True), Stream(None)
    assert released_up_to([slow, fast, idle]) == 3
    assert released_up_to([slow, fast, silent]) is None
    assert released_up_to([idle, Stream(7, idle=True)]) == 7
    assert released_up_to([Stream(None, idle=True)]) is None
    assert released_up_to([]) is None
    assert holder_of([fast, slow, idle]) is slow
    assert holder_of([fast, slow, silent]) is silent
    assert holder_of([fast, idle]) is None
    nothing = [Stream(3, pending=0), Stream(9, pending=0)]
    assert holder_of(nothing) is None
    assert holder_of(nothing, others_wait=True) is nothing[0]


def test_sets_are_connected_through_common_members() -> None:
    assert connected([]) == []
    assert connected([{"a"}, {"b"}, {"a", "c"}, {"d"}, {"c", "b"}]) == [[0, 1, 2, 4], [3]]
    draw = random.Random(2)
    for _ in range(200):
        sets = [{draw.choice("abcdefgh") for _ in range(draw.randrange(1, 3))} for _ in range(7)]
        groups = connected(sets)
        assert sorted(n for group in groups for n in group) == list(range(7))
        members = [set().union(*(sets[n] for n in group)) for group in groups]
        assert all(a.isdisjoint(b) for i, a in enumerate(members) for b in members[:i])
        for group in groups:
            reached, rest = set(sets[group[0]]), group[1:]
            while near := [n for n in rest if not sets[n].isdisjoint(reached)]:
                reached |= set().union(*(sets[n] for n in near))
                rest = [n for n in rest if n not in near]
            assert not rest
