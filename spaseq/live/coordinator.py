"""The loop of a live run, which controls time, checkpoints and shutdown.

Each turn takes the chunks that have arrived, decodes them, releases the events up to the least
frontier of the streams, runs the queries over them and writes the matches. Checkpoints are made
between two turns, so a checkpoint never divides a batch. All of this happens in one thread; each
source reads in a separate thread. A copy of the process writes the checkpoint
(`spaseq.live.checkpoints`).

A stream that is quiet for longer than `idle` no longer holds back the others. When it continues,
its events before the time that the run has reached are late. With `clock`, the time of a quiet
stream follows the clock of the machine.

If a source fails, the matches of all events before the failure are written before the error is
raised. Nothing is stored then: the last checkpoint remains valid.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spaseq.errors import InputError
from spaseq.live.checkpoints import Checkpoints
from spaseq.live.feeder import Feeder, Inbox
from spaseq.live.protocols import Position, Sink, Source, WaitingSink
from spaseq.live.state import StateFolder
from spaseq.live.status import INTERVAL_SECONDS, Status, StatusTaker
from spaseq.live.streams import Stream
from spaseq.pipeline import Observer, Progress
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.native._terms import EventBatch, EventSequence
from spaseq.rdf.native._terms import merge as merge_batches
from spaseq.rdf.reorder import Horizon, holder_of, horizon, released_up_to
from spaseq.rdf.time import from_micros
from spaseq.results import Match
from spaseq.runs import Run

MAX_PENDING_EVENTS = 1 << 16
"""The most events of a stream that may wait for other streams; then its source has to wait."""
MOST_WAIT = 0.05
"""Seconds after which the loop checks signals, quiet sources and checkpoints."""
HELD_BACK_SECONDS = 10.0
"""Seconds after which a stream that holds back the others is reported."""


@dataclass(slots=True)
class Timing:
    """Durations in seconds.

    Args:
        quiet: After this time without bytes, the open event is complete; None: never.
        idle: After this time without an event, a stream no longer holds back the others; None:
        never.
        checkpoint: Between two checkpoints.
        clock: A stream that has been quiet for this time follows the clock, less this time and less
            the lateness; None: only events advance the time.
        max_ahead: How far an event may be ahead of the clock of its streams; None: at any time.
    """

    quiet: float | None = 0.2
    idle: float | None = None
    checkpoint: float = 10.0
    clock: float | None = None
    max_ahead: float | None = None


@dataclass(slots=True)
class Input:
    """A source, its stream, and the position to continue at."""

    source: Source
    stream: Stream
    position: Position | None = None
    failure: BaseException | None = None
    warned: bool = field(default=False, repr=False)


class Coordinator:
    """One live run.

    Args:
        run: The run, which may have been resumed.
        inputs: The sources in the order in which the queries declare their streams.
        sink: The sink, which has been resumed.
        timing: When things happen.
        state: The state folder; None: no checkpoints.
        number: The number of the checkpoint that was resumed; 0 if there was none.
        header: The fields of a checkpoint's header besides the positions.
        limit: The number of matches after which the run stops.
        log: Reports idle streams.
        close: Whether the end of all sources closes every window, as for `Run.finish`.
    """

    def __init__(
        self,
        run: Run,
        inputs: Sequence[Input],
        sink: Sink,
        timing: Timing,
        state: StateFolder | None = None,
        number: int = 0,
        header: Callable[[], Mapping[str, Any]] = dict,
        limit: int | None = None,
        log: Callable[[str], None] = lambda text: None,
        close: bool = True,
    ):
        self.run = run
        self._close = close
        self.inputs = list(inputs)
        self._sink = sink
        self.output = sink.waiting if isinstance(sink, WaitingSink) else None
        """Knows why the output cannot be written; None if it never waits."""
        self._timing = timing
        self.checkpoints: Checkpoints | None = None
        """Makes the checkpoints; None without a state folder."""
        if state is not None:
            self.checkpoints = Checkpoints(
                state, sink, run.save, self._positions, header, self._acknowledge, number,
                timing.checkpoint, log,
            )  # fmt: skip
        self._limit = limit
        self._log = log
        self._observe: Observer | None = None
        self._watch: Callable[[Status], None] | None = None
        self.events = 0
        self.inbox = Inbox(len(self.inputs))
        self._stopping = False

    def stop(self) -> None:
        """Accept no more events, finish the batch and make a checkpoint. A signal may call this."""
        self._stopping = True

    @property
    def written(self) -> int:
        """The number of matches written."""
        return self._sink.written

    def go(
        self,
        observe: Observer | None = None,
        watch: Callable[[Status], None] | None = None,
    ) -> None:
        """Run until the sources end, `stop` is called or the limit is reached.

        `observe` is called after each batch of events; `watch` twice a second, and at the end.
        """
        self._observe, self._watch = observe, watch
        taker = StatusTaker(self) if watch is not None else None
        feeders = []
        for number, one in enumerate(self.inputs):
            feeders.append(Feeder(one.source, number, self.inbox, one.position))
        self._sink.attach(self.run)
        for one in self.inputs:
            one.stream.floor = self.run.clock.floor_of(one.stream.source.stream)
            if self._timing.clock is not None:
                one.stream.overtaken = "clock"
            if self._timing.max_ahead is not None:
                one.stream.horizon = self._horizon
        try:
            for feeder in feeders:
                feeder.start()
            if self._loop(taker):
                self._finish()
            if self.checkpoints is not None:
                self.checkpoints.make_last()
            if taker is not None and watch is not None:
                watch(taker.take())
        finally:
            self.inbox.stop()
            if self.checkpoints is not None:
                self.checkpoints.cancel()
            for feeder in feeders:
                feeder.join(2.0)

    def _loop(self, taker: StatusTaker | None) -> bool:
        """Process events; returns whether all sources have ended."""
        shown = 0.0
        while not self._stopping:
            self._take()
            bound, is_known = self._bound()
            if is_known:
                self._release(bound)
                if self._is_full():
                    return False
            self._raise_failure()
            if all(one.stream.ended or self._waits_for_end(one.stream) for one in self.inputs):
                return True
            now = time.monotonic()
            if self.checkpoints is not None:
                self.checkpoints.turn(now)
            self._report_holder(now)
            if taker is not None and self._watch is not None and now - shown >= INTERVAL_SECONDS:
                shown = now
                self._watch(taker.take())
            self._wait(now)
        return False

    # ------------------------------------------------------------ taking

    def _take(self) -> None:
        """Decode the chunks that have arrived."""
        inbox, now = self.inbox, time.monotonic()
        for number, one in enumerate(self.inputs):
            stream = one.stream
            if stream.ended:
                if not self._close:
                    self._notice_idle(stream, inbox.silence(number, now))
                continue
            if self._is_ahead(stream):
                continue
            for chunk in inbox.take(number):
                stream.take(chunk)
                if stream.failure is not None:
                    break
                if stream.is_idle:
                    stream.is_idle = False
                    self._log(f"the stream <{stream.source.stream}> is no longer idle")
            if stream.failure is not None:
                one.failure, stream.ended = stream.failure, True
            elif inbox.has_ended(number):
                one.failure, stream.ended = inbox.failure(number), True
                if one.failure is None:
                    stream.end()
                    one.failure = stream.failure
                    if self._close:
                        self.run.end_stream(stream.source.stream, stream.greatest)
            else:
                self._notice_silence(stream, inbox.silence(number, now))

    def _is_ahead(self, stream: Stream) -> bool:
        """Whether a stream must wait for others before more of it is read."""
        if stream.pending < MAX_PENDING_EVENTS:
            return False
        frontier = self._frontier(stream)
        return any(
            self._may_continue(other := one.stream)
            and not other.is_idle
            and (
                (limit := self._frontier(other)) is None
                or (frontier is not None and limit < frontier)
            )
            for one in self.inputs
            if one.stream is not stream
        )

    def _may_continue(self, stream: Stream) -> bool:
        """Whether a stream may have further events: a later run may continue one that has ended."""
        return not stream.ended or not self._close

    def _waits_for_end(self, stream: Stream) -> bool:
        """Whether no more of a stream is read, since another one has ended and may continue."""
        ended = any(one.stream.ended and not one.stream.is_idle for one in self.inputs)
        return not self._close and ended and self._is_ahead(stream)

    def _frontier(self, stream: Stream) -> int | None:
        """The time before which a stream has no further events; None: not known."""
        if stream.ended:
            return stream.greatest
        frontier, delay = stream.frontier, self._timing.clock
        if delay is None or not stream.has_read_again:
            return frontier
        # An event that is still open must not be overtaken.
        quiet = max(delay, self._timing.quiet or 0.0)
        if self.inbox.silence(stream.source.number, time.monotonic()) < quiet or not (
            stream.was_quiet
        ):
            return frontier
        now = time.time_ns() // 1000 - int(delay * 1e6) - stream.lateness
        return now if frontier is None else max(frontier, now)

    def _notice_silence(self, stream: Stream, silent: float) -> None:
        quiet = self._timing.quiet
        if quiet is not None and not stream.was_quiet and silent >= quiet:
            stream.quiet()
        self._notice_idle(stream, silent)

    def _notice_idle(self, stream: Stream, silent: float) -> None:
        idle = self._timing.idle
        if idle is not None and not stream.is_idle and silent >= idle:
            stream.is_idle = True
            self._log(
                f"the stream <{stream.source.stream}> is idle: it has been quiet for "
                f"{silent:.1f} s, and no longer holds the others back"
            )

    def _wait(self, now: float) -> None:
        """Wait for chunks, or until something is due."""
        timeout = MOST_WAIT
        quiet = self._timing.quiet
        wanted = []
        for number, one in enumerate(self.inputs):
            stream = one.stream
            if stream.ended or self._is_ahead(stream):
                continue
            wanted.append(number)
            if quiet is not None and not stream.was_quiet:
                timeout = min(timeout, max(0.001, quiet - self.inbox.silence(number, now)))
        self.inbox.wait(wanted, timeout)

    # ------------------------------------------------------------ time

    def _bound(self) -> tuple[int | None, bool]:
        """The time up to which events are released, None for all; and whether there is one."""
        active = [one.stream for one in self.inputs if self._may_continue(one.stream)]
        if not active:
            return None, True
        bound = released_up_to(active, self._frontier)
        return bound, bound is not None

    def holder(self) -> Stream | None:
        """The stream that holds back the others, if one does."""
        streams = [one.stream for one in self.inputs if not one.stream.ended]
        has_ended_waiting = any(one.stream.pending for one in self.inputs if one.stream.ended)
        return holder_of(streams, self._frontier, has_ended_waiting)

    def _horizon(self, kind: str) -> Horizon:
        """Which events are too far ahead, from the kind of their time."""
        most = int((self._timing.max_ahead or 0.0) * 1e6)
        streams = [one.stream for one in self.inputs]
        return horizon(streams, most, kind, time.time_ns() // 1000)

    def _report_holder(self, now: float) -> None:
        """Report once that a stream has held back the others for a while."""
        if self._timing.idle is not None or len(self.inputs) < 2:
            return
        for number, one in enumerate(self.inputs):
            silent = self.inbox.silence(number, now)
            if one.warned or one.stream.ended or silent < HELD_BACK_SECONDS:
                continue
            if self.holder() is one.stream:
                one.warned = True
                self._log(
                    f"the stream <{one.stream.source.stream}> has been quiet for {silent:.0f} s "
                    "and holds the others back (--idle DURATION lets them continue)"
                )

    # ------------------------------------------------------------ running

    def _release(self, bound: int | None) -> None:
        """Process all events up to a time; None: all events."""
        streams = [one.stream for one in self.inputs]
        for stream in streams:
            if stream.reorders:
                stream.order(bound)
        until = None if bound is None else (bound + 1, 0, 0)
        single = streams[0] if len(streams) == 1 else None
        while not self._is_full():
            if single is not None:
                batch, first = single.head
                if batch is None:
                    break
                if first == 0:
                    self._push(batch, len(batch))
                else:
                    sequence, _ = merge_batches([batch], [first], None)
                    self._push(sequence, len(sequence))
                single.advance(len(batch))
                continue
            heads = [stream.head for stream in streams]
            batches = [batch for batch, _ in heads]
            if not any(batch is not None for batch in batches):
                break
            sequence, after = merge_batches(batches, [first for _, first in heads], until)
            if not len(sequence):
                break
            self._push(sequence, len(sequence))
            for stream, (batch, _), index in zip(streams, heads, after, strict=True):
                if batch is not None:
                    stream.advance(index)
        self._pass_watermark(bound)
        for stream in streams:
            stream.floor = self.run.clock.floor_of(stream.source.stream)

    def _push(self, events: EventBatch | EventSequence, count: int) -> None:
        self._write(self.run.push_batch(events))
        self.events += count
        if self._observe is not None:
            if isinstance(events, EventBatch):
                last = EncodedEvent(events, count - 1)
            else:
                last = EncodedEvent(*events.position(count - 1))
            self._observe(Progress(self.events, self._sink.written, last))

    def _write(self, found: Iterable[Match | None]) -> None:
        sink, limit = self._sink, self._limit
        held = self.checkpoints is not None and self.checkpoints.holds
        for match in found:
            if held:
                assert self.checkpoints is not None
                held = self.checkpoints.hold(match)
            elif match is None:
                sink.write_block()
            else:
                sink.write(match)
            if limit is not None and sink.written >= limit:
                return
        if not held:
            sink.write_block()

    def _is_full(self) -> bool:
        return self._limit is not None and self._sink.written >= self._limit

    def _pass_watermark(self, bound: int | None) -> None:
        """Close the time before the bound, if no event has reached it."""
        clock = self.run.clock
        if (
            bound is None
            or clock.domain is None
            or (len(self.inputs) == 1 and not self._lateness() and self._timing.clock is None)
        ):
            return
        if clock.closed is None or bound > clock.closed:
            self._write(self.run.advance(from_micros(bound, clock.domain)))

    def _lateness(self) -> bool:
        return any(one.stream.lateness for one in self.inputs)

    def _finish(self) -> None:
        """Process the end of all streams; with an open end, their next events may wait."""
        if not self._close and len(self.inputs) > 1:
            streams = [one.stream for one in self.inputs]
            reached = {s.source.stream: t for s in streams if (t := s.next_time) is not None}
            self._write(self.run.pass_streams(reached))
        self._write(self.run.finish(self._close))

    def _raise_failure(self) -> None:
        for one in self.inputs:
            if one.failure is not None:
                if not isinstance(one.failure, InputError):
                    one.failure.add_note(f"in the source of <{one.stream.source.stream}>")
                raise one.failure

    # ------------------------------------------------------------ checkpoints

    def _positions(self) -> dict[str, Any]:
        return {one.stream.source.stream: one.stream.position() for one in self.inputs}

    def _acknowledge(self, positions: Mapping[str, Any]) -> None:
        for one in self.inputs:
            saved = positions[one.stream.source.stream]
            if saved is not None:
                one.source.acknowledge(saved["point"]["source"])
