"""What several streams can still deliver: which have ended, which wait, and how far they have come.

An event with an ordinal above 0, and results that need all matches of an instant, are certain once
every stream is past the instant. A stream passes it by an event or by a promise (`pass_streams`). A
stream that has ended is past its last event only; with an open end, the others wait for it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from operator import attrgetter
from typing import TYPE_CHECKING

from spaseq.engine.native._push import alone
from spaseq.engine.registered_streams import dependent
from spaseq.engine.stream_clock import StreamClock, late_event
from spaseq.rdf.checked import LEAST, PASSED
from spaseq.rdf.event import Event, Timestamp
from spaseq.results import Match

if TYPE_CHECKING:
    from spaseq.engine.evaluation import Evaluation
    from spaseq.engine.instants import QueryRun
    from spaseq.engine.pattern_rows import EventRows
    from spaseq.engine.run_queries import RunQueries
    from spaseq.engine.run_query import Executor


class StreamEnds:
    """The part of an `Evaluation` that knows how far its streams have come."""

    if TYPE_CHECKING:
        clock: StreamClock
        rows: EventRows
        listed: RunQueries

        @property
        def waiting(self) -> bool: ...

        @property
        def queries(self) -> list[QueryRun]: ...

        def _in_order(self) -> AbstractContextManager[None]: ...

        def _leave_loop(self) -> None: ...

        def _give_parts(self, found: list[Match]) -> None: ...

        def _collect(
            self, executor: Executor, found: list[Match], process: Callable[[list[Match]], None]
        ) -> None: ...

    def begin_streams(self) -> None:
        """Begin with streams that have not ended."""
        self.ended: dict[str, int] = {}
        """The time of the last event of each input stream that has ended before others."""
        self.ahead: list[Event] = []
        """Events of some streams that wait for earlier ones of others, by instant."""

    def end_stream(self, stream: str, last: int) -> None:
        """An input stream has ended before others, with an event at the time `last`."""
        last = self.ended[stream] = max(last, self.ended.get(stream, last))
        for query in self.inputs_of(stream):
            query.end_stream(stream, last)

    def go_on(self, stream: str, micros: int) -> None:
        """An input stream has an event at a time, even if it has ended before."""
        if micros > self.ended.get(stream, micros):
            del self.ended[stream]
            for query in self.inputs_of(stream):
                query.go_on(stream)

    def inputs_of(self, stream: str) -> list[QueryRun]:
        """The queries whose results depend on an input stream, also by registered streams."""
        return dependent(self.queries, stream)

    def pass_streams(self, reached: Mapping[str, int], found: list[Match]) -> None:
        """Some streams deliver no events before a time each, in microseconds.

        Instants of the current timestamp are thus certain; matches are added to `found`.
        """
        passed, time = self.clock.passing(reached), self.clock.time
        if not passed or not (self.waiting or any(query.output.waits for query in self.queries)):
            return
        assert time is not None
        with self._in_order():
            self._leave_loop()
            self.clock.ordinals.update(dict.fromkeys(passed, PASSED))
            for executor in self.listed.executors:
                query = executor.state
                own = [iri for iri in passed if query.reads(iri)]
                if own and executor.direct:
                    self._collect(
                        executor,
                        found,
                        lambda some: query.pass_streams(own, time, self.rows, some),  # noqa: B023
                    )
            self._give_parts(found)


class SeveralStreams:
    """The part of a `Run` by which readers of several streams tell how far these have come."""

    if TYPE_CHECKING:
        evaluation: Evaluation
        clock: StreamClock

        def _stop_feed(self) -> None: ...

        def _fail(self, error: BaseException, found: Sequence[Match] = ()) -> None: ...

        def _process(self, event: Event, found: list[Match]) -> None: ...

    def end_stream(self, stream: str, last: int | None) -> None:
        """One of several streams has ended.

        The matches of windows that close after its last event are `closed_by_end`, unless it has a
        later event, such as in a resumed run.

        Args:
            stream: Its IRI.
            last: The time of its last event in microseconds; None if it had none.
        """
        self.evaluation.end_stream(stream, LEAST if last is None else last)

    @alone
    def pass_streams(self, reached: Mapping[str, int]) -> list[Match]:
        """Some of several streams deliver no events before a time each.

        Args:
            reached: Per IRI, a time in microseconds.

        Returns:
            The matches that become certain.
        """
        return self._pass_streams(reached)

    def _pass_streams(self, reached: Mapping[str, int]) -> list[Match]:
        found: list[Match] = []
        self._stop_feed()
        try:
            self.evaluation.pass_streams(reached, found)
        except BaseException as error:
            self._fail(error, found)
            raise
        return found

    def wait(self, event: Event) -> None:
        """Keep an event that waits, since another stream has ended before it.

        The events of a stream come in their order. They are part of the state, and are processed
        before later events.
        """
        insort(self.evaluation.ahead, event, key=attrgetter("instant"))

    def _pass_waiting(self) -> list[Match]:
        """The matches that are certain because the next events of some streams wait."""
        reached: dict[str, int] = {}
        for event in self.evaluation.ahead:
            reached.setdefault(event.stream, event.time.micros)
        return self._pass_streams(reached)

    def _check_ahead(self, stream: str, time: Timestamp) -> None:
        """Raise an error if an event of a stream precedes one that waits."""
        for event in self.evaluation.ahead:
            if event.stream == stream and time.micros < event.time.micros:
                raise late_event(stream, time, event.time)

    def _wake(self, before: int | None, stream: str = "") -> list[Match]:
        """Process the events that wait before a time, and those of a stream at that time."""
        found: list[Match] = []
        ahead = self.evaluation.ahead
        while ahead and (
            before is None
            or ahead[0].time.micros < before
            or any(e.stream == stream and e.time.micros == before for e in ahead)
        ):
            event = ahead.pop(0)
            self.clock.check_event(event)
            self._process(event, found)
        return found
