"""The streams of the server: waiting events, and their time.

An event waits until every connected stream that is not idle has reached its time, and with
`--lateness` also until its own stream is that much further. Then it is released to the runs, in
time order. An event before the time that a run of its stream has reached, or further behind its
stream than the lateness, is late, and one that is further ahead of the clock than `--max-ahead` is
set aside (`spaseq.rdf.reorder`). Both are counted and reported, but not matched.

Cost: see `spaseq.server.waiting`; Python code of constant size for a batch in order.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyoxigraph as ox

from spaseq.errors import EventError
from spaseq.io.read_options import TimeDomain
from spaseq.live.late import late_event
from spaseq.rdf.event import Timestamp
from spaseq.rdf.native._terms import EventBatch
from spaseq.rdf.reorder import AHEAD, Horizon, Refusal, StreamTime
from spaseq.rdf.time import from_value
from spaseq.records import dataclass
from spaseq.server.waiting import Released, WaitingEvents

_DATE = ox.NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")


@dataclass(frozen=True, slots=True)
class Late:
    """An event that is too late, or too far ahead."""

    stream: str
    batch: EventBatch
    index: int
    refusal: Refusal

    @property
    def is_ahead(self) -> bool:
        """Whether it is too far ahead, and not late."""
        return self.refusal.reason == AHEAD

    def to_dict(self) -> dict[str, Any]:
        """The event and the reason as JSON, as in the file of `spaseq run --late`."""
        return late_event(self.stream, self.batch, self.index, self.refusal)


MAX_NAMED_LATE = 20
"""The most late events that an answer lists."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The outcome of a body of events.

    Args:
        accepted: How many events can be matched.
        late: Those that are too late or too far ahead.
        rejected: How many malformed statements were skipped.
        errors: The first of their errors.
    """

    accepted: int
    late: list[Late]
    rejected: int
    errors: list[str]

    def to_dict(self, record: int) -> dict[str, Any]:
        """The answer to the client, as JSON."""
        ahead = sum(one.is_ahead for one in self.late)
        shown: dict[str, Any] = {
            "accepted": self.accepted,
            "late": len(self.late) - ahead,
            "rejected": self.rejected,
            "token": record,
        }
        if ahead:
            shown["ahead"] = ahead
        if self.late:
            shown["late_events"] = [
                {key: value for key, value in late.to_dict().items() if key != "triples"}
                for late in self.late[:MAX_NAMED_LATE]
            ]
        return shown | ({"errors": self.errors} if self.errors else {})


def time_of_json(value: Any) -> Timestamp:
    """A time in JSON: a number of seconds, or a text with a date and a time.

    Raises:
        EventError: for anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise EventError("a time is a number of seconds, or a date like 2026-01-01T00:00:00Z")
    return from_value(ox.Literal(value, datatype=_DATE) if isinstance(value, str) else value)


class InputStream(StreamTime):
    """One stream.

    Args:
        iri: Its IRI.
        number: Its number among the streams of the server, for labels of blank nodes.
        lateness: How many microseconds an event may be behind the greatest time of the stream.
    """

    def __init__(self, iri: str, number: int, lateness: int):
        super().__init__(lateness)
        self.iri = iri
        self.number = number
        self.domain = TimeDomain()
        """The kind of its times; connected streams have the same one."""
        self._waiting = WaitingEvents()
        self.heard = time.monotonic()
        """The time of the last push, on the monotonic clock."""
        self.events = self.late_events = self.ahead_events = self.rejected = 0
        self.released = 0
        """The number of events released to the runs."""

    # ------------------------------------------------------------ time

    @property
    def pending(self) -> int:
        """The number of waiting events."""
        return len(self._waiting)

    @property
    def next_time(self) -> int:
        """The least time of an event that is yet to be released, as far as it is known."""
        waiting = self._waiting.first_time
        return self.bound if waiting is None else min(waiting, self.bound)

    @property
    def first_record(self) -> int | None:
        """The first record of the journal with a waiting event."""
        return self._waiting.first_record

    # ------------------------------------------------------------ events

    def take(
        self,
        batch: EventBatch,
        record: int,
        first: int = 0,
        horizon: Horizon | None = None,
        arrived: int = 0,
    ) -> list[Late]:
        """Let the events of a batch wait; returns those that are too late or too far ahead.

        Args:
            batch: The events.
            record: The record of the journal that has them.
            first: The number of the first one among the events of the record.
            horizon: Which events are too far ahead; None: none are.
            arrived: The time of the machine, in microseconds since 1970.
        """
        before = self.greatest
        times = list(map(batch.micros, range(len(batch))))
        in_order = times == sorted(times) and (not times or times[0] >= self.bound)
        if times and in_order and (horizon is None or horizon.includes(times[-1])):
            self._waiting.add_all(times, record, first, batch)
            self.reach(times[-1])
            self.events += len(times)
            refused = []
        else:
            refused = self._take_each(times, batch, record, first, horizon)
        if self.greatest != before:
            self.reached = arrived
        return refused

    def _take_each(
        self,
        times: Sequence[int],
        batch: EventBatch,
        record: int,
        first: int,
        horizon: Horizon | None,
    ) -> list[Late]:
        """Like `take`, for events that are out of order, late or perhaps ahead."""
        refused: list[Late] = []
        for index, at in enumerate(times):
            refusal = self.late(at)
            if refusal is None and horizon is not None:
                refusal = horizon.ahead(at)
            if refusal is not None:
                refused.append(Late(self.iri, batch, index, refusal))
                continue
            self._waiting.add(at, record, first + index, batch, index)
            self.reach(at)
        ahead = sum(one.is_ahead for one in refused)
        self.late_events += len(refused) - ahead
        self.ahead_events += ahead
        self.events += len(times) - len(refused)
        return refused

    def wait_again(self, batch: EventBatch, record: int, first: int, only: frozenset[int]) -> None:
        """Let those events of a batch wait that waited at a checkpoint.

        Args:
            batch: The events.
            record: The record of the journal that has them.
            first: The number of the first one among the events of the record.
            only: The numbers of the events that waited.
        """
        for index in range(len(batch)):
            if first + index in only:
                self._waiting.add(batch.micros(index), record, first + index, batch, index)

    def release(self, bound: int) -> list[Released]:
        """The waiting events up to a time in their final order."""
        ready = self._waiting.release(bound)
        self.released += sum(end - start for _, start, end in ready)
        return ready

    def begin_anew(self) -> None:
        """Forget the time and the waiting events, since no query reads the stream any longer."""
        self._waiting.clear()
        self.greatest = self.promised = self.floor = self.reached = None
        self.domain.kind = self.domain.origin = ""

    # ------------------------------------------------------------ checkpoints

    def state(self) -> dict[str, Any]:
        """The stream as data, for `restore`."""
        return {
            "iri": self.iri,
            "number": self.number,
            "greatest": self.greatest,
            "promised": self.promised,
            "reached": self.reached,
            "domain": [self.domain.kind, self.domain.origin],
            "idle": self.is_idle,
            "counts": [
                self.events, self.late_events, self.rejected, self.released, self.ahead_events,
            ],
            "waiting": sorted(self._waiting.places()),
        }  # fmt: skip

    def restore(self, saved: Mapping[str, Any]) -> dict[int, frozenset[int]]:
        """Continue at a checkpoint; returns the waiting events: record → numbers."""
        self.greatest, self.promised = saved["greatest"], saved["promised"]
        self.reached, self.is_idle = saved["reached"], saved["idle"]
        self.domain.kind, self.domain.origin = saved["domain"]
        (
            self.events, self.late_events, self.rejected, self.released, self.ahead_events,
        ) = saved["counts"]  # fmt: skip
        found: dict[int, set[int]] = {}
        for record, number in saved["waiting"]:
            found.setdefault(record, set()).add(number)
        return {record: frozenset(numbers) for record, numbers in found.items()}
