"""Event time: which events are too late, what waits, and up to what time events may be processed.

Every reader of streams uses these rules: files (`spaseq.io.source`), events of Python
(`spaseq.inputs`), live runs (`spaseq.live`) and the server (`spaseq.server.inputs`).

The *watermark* of a stream is the time before which it has no further events: its greatest time
less the lateness, or a greater time that was declared for it. An event before the watermark is
late. An event at the watermark is not: it follows the events of its timestamp.

Streams that queries connect wait for each other: their events are processed up to the least
watermark. A stream that is idle does not count. If all streams are idle, no event waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeVar

from spaseq.rdf.event import DATE_TIME

BEFORE_ALL = -(1 << 63)
"""A time before that of any event, in microseconds."""
AHEAD = "ahead"
"""The reason of events that are too far ahead of the clock."""


class Refusal(NamedTuple):
    """Why an event cannot be accepted.

    Args:
        reason: `lateness`, `watermark` or another name for the cause of the watermark, or `ahead`.
        bound: The time that the event is before, or the clock that it is too far ahead of, in
            microseconds.
    """

    reason: str
    bound: int


class StreamTime:
    """The time of one stream.

    Args:
        lateness: How many microseconds an event may be behind the greatest time.
    """

    def __init__(self, lateness: int = 0):
        self.lateness = lateness
        self.greatest: int | None = None
        """The greatest time of an event, in microseconds."""
        self.promised: int | None = None
        """The greatest watermark that was declared."""
        self.floor: int | None = None
        """The time before which events can no longer be processed."""
        self.overtaken = "idle"
        """The reason of events before the floor."""
        self.is_idle = False
        """Whether the other streams do not wait for this stream."""
        self.reached: int | None = None
        """When the greatest time arrived, in microseconds since 1970."""

    @property
    def frontier(self) -> int | None:
        """The watermark; None: not known."""
        own = None if self.greatest is None else self.greatest - self.lateness
        if self.promised is None or (own is not None and own > self.promised):
            return own
        return self.promised

    @property
    def bound(self) -> int:
        """The time before which an event is late."""
        greatest, bound = self.greatest, BEFORE_ALL
        if greatest is not None:
            bound = greatest - self.lateness
        if self.promised is not None and self.promised > bound:
            bound = self.promised
        if self.floor is not None and self.floor > bound:
            bound = self.floor
        return bound

    def late(self, micros: int) -> Refusal | None:
        """Why an event at a time is too late; None: it is not."""
        bound = self.bound
        if micros >= bound:
            return None
        if self.greatest is not None and bound == self.greatest - self.lateness:
            return Refusal("lateness", bound)
        return Refusal("watermark" if bound == self.promised else self.overtaken, bound)

    def reach(self, micros: int) -> int:
        """Count an event that is not late; returns the time before which events are late now."""
        if self.greatest is None or micros > self.greatest:
            self.greatest = micros
        return self.bound

    def promise(self, micros: int) -> None:
        """Record that no further event comes before a time."""
        if self.promised is None or micros > self.promised:
            self.promised = micros

    def clock(self, now: int) -> int | None:
        """The greatest time of the stream, and the time that has passed since it arrived.

        Args:
            now: The time of the machine, in microseconds since 1970; 0: not known.
        """
        known = [at for at in (self.greatest, self.promised) if at is not None]
        if not known:
            return None
        return max(known) + (max(0, now - self.reached) if self.reached else 0)


class Horizon:
    """The time beyond which an event is set aside, since it is too far ahead of the clock.

    The clock is the greatest time of connected streams. It goes on with the machine's clock while
    no event arrives, so a stream that continues after a pause is not ahead. Before the first event
    there is no clock for numbers; that for dates is the machine's.

    Args:
        most: How many microseconds an event may be ahead.
        clock: The clock when the events arrive, in microseconds; None: there is none.
    """

    def __init__(self, most: int, clock: int | None):
        self._most = most
        self._clock = clock

    def includes(self, last: int) -> bool:
        """Whether events up to a time are certainly not ahead."""
        return self._clock is not None and last - self._clock <= self._most

    def ahead(self, micros: int) -> Refusal | None:
        """Why an event at a time is too far ahead; None: it is not, and the clock reaches it."""
        clock = self._clock
        if clock is not None and micros - clock > self._most:
            return Refusal(AHEAD, clock)
        if clock is None or micros > clock:
            self._clock = micros
        return None


def horizon(streams: Iterable[StreamTime], most: int, kind: str, now: int) -> Horizon:
    """Which events of connected streams are too far ahead of their clock.

    Args:
        streams: The streams.
        most: How many microseconds an event may be ahead.
        kind: The kind of the time of the events.
        now: When they arrived, in microseconds since 1970; 0: not known.
    """
    clocks = [stream.clock(now) for stream in streams]
    clock = max((at for at in clocks if at is not None), default=None)
    if clock is None and kind == DATE_TIME and now:
        clock = now
    return Horizon(most, clock)


# ---------------------------------------------------------------- several streams


class Timed(Protocol):
    """A stream among others."""

    @property
    def frontier(self) -> int | None: ...

    @property
    def is_idle(self) -> bool: ...

    @property
    def pending(self) -> int: ...


_S = TypeVar("_S", bound=Timed)
_FRONTIER: Callable[[Timed], int | None] = attrgetter("frontier")


def released_up_to(
    streams: Sequence[_S], frontier: Callable[[_S], int | None] = _FRONTIER
) -> int | None:
    """The time up to which the events of connected streams are processed; None: not known yet.

    Args:
        streams: The streams that have not ended.
        frontier: The watermark of a stream.
    """
    speaking = [stream for stream in streams if not stream.is_idle]
    if not speaking:
        # No stream holds back another one. Late events may still arrive.
        known = [time for stream in streams if (time := frontier(stream)) is not None]
        return max(known, default=None)
    least: int | None = None
    for stream in speaking:
        time = frontier(stream)
        if time is None:
            return None
        least = time if least is None else min(least, time)
    return least


def holder_of(
    streams: Sequence[_S],
    frontier: Callable[[_S], int | None] = _FRONTIER,
    others_wait: bool = False,
) -> _S | None:
    """The stream that holds back connected streams whose events wait, if one does.

    Args:
        streams: The streams that have not ended.
        frontier: The watermark of a stream.
        others_wait: Whether events of streams that have ended wait.
    """
    speaking = [stream for stream in streams if not stream.is_idle]
    if len(speaking) < 2 or not (others_wait or any(stream.pending for stream in streams)):
        return None
    least, holder = None, speaking[0]
    for stream in speaking:
        time = frontier(stream)
        if time is None:
            return stream
        if least is None or time < least:
            least, holder = time, stream
    return holder


# ---------------------------------------------------------------- which streams are connected


def connected(sets: Iterable[Collection[str]]) -> list[list[int]]:
    """The numbers of the sets in groups: sets with a common member are in one group.

    The groups are in the order of their first sets. Cost: about linear in the members.
    """
    parent: list[int] = []
    first: dict[str, int] = {}

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    for number, members in enumerate(sets):
        parent.append(number)
        for member in members:
            known = root(first.setdefault(member, number))
            own = root(number)
            parent[max(known, own)] = min(known, own)
    groups: dict[int, list[int]] = {}
    for number in range(len(parent)):
        groups.setdefault(root(number), []).append(number)
    return list(groups.values())
