"""The protocols of sources and sinks of live runs.

A third-party package adds one by an entry point (`spaseq.live.registry`). Both protocols are small,
because the coordinator controls time, checkpoints and shutdown.

Positions and tokens are data of JSON: mappings, lists, strings, numbers, None. They are stored in
checkpoints and passed back, possibly to another process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from spaseq.live.waiting import Waiting
from spaseq.records import dataclass
from spaseq.results import Match
from spaseq.runs import Run

Position: TypeAlias = Mapping[str, Any]
"""Where a source continues to read. The position of a source of documents has the key `offset`, a
number of bytes; the coordinator may replace it by a smaller number."""


Message: TypeAlias = tuple[bytes, str | None, int | None]
"""(text, media type or None, time in microseconds since 1970 or None)."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of a source.

    A source of documents passes each document on in chunks of any length. A chunk of a source of
    messages is one message, or several (`together`).
    """

    data: bytes
    position: Position
    """The position after these bytes."""
    document: str | None = None
    """The name of the document that these bytes begin; None if they continue one."""
    path: str = "-"
    """The path of that document, for its syntax and its base IRI; `-` if it has none."""
    ends: bool = False
    """Whether the document ends with these bytes."""
    media_type: str | None = None
    """The media type of a message; None if the channel does not give it."""
    time: int | None = None
    """The time of a message according to the channel, in microseconds since 1970."""
    mark: bool = False
    """Whether this is only a position, from which the next message is read, and not a message."""
    together: Sequence[Message] = ()
    """Several messages, instead of `data`, `media_type` and `time`: they cost less together."""
    size: int = field(default=0, init=False)
    """The number of bytes."""

    def __post_init__(self) -> None:
        size = len(self.data)
        if self.together:
            size += sum([len(message[0]) for message in self.together])
        object.__setattr__(self, "size", size)


class Source(Protocol):
    """Reads one input. All calls come from one thread, except `acknowledge`."""

    messages: bool
    """Whether a chunk is a whole message, and a message an event."""
    replays: bool
    """Whether `open` can continue at an earlier position."""

    def open(self, position: Position | None) -> None:
        """Connect, and continue at a position of an earlier run; None: at the beginning."""

    def poll(self, timeout: float) -> Sequence[Chunk] | None:
        """The next chunks: none after `timeout` seconds without any; None at the end."""

    def acknowledge(self, position: Position) -> None:
        """Handle a checkpoint with this position: nothing before it will be requested again."""

    def close(self) -> None:
        """Release what `open` acquired."""


@runtime_checkable
class OrderingSource(Protocol):
    """A source that reads several queues at once, and can repeat the order of its chunks."""

    def order_after(self, position: Position) -> Position:
        """A position with what `open` needs to repeat the order of the chunks after it.

        The stream calls it for each checkpoint, from the thread of the coordinator.
        """


@runtime_checkable
class AcknowledgingSource(Protocol):
    """A source whose server keeps messages until they are acknowledged."""

    def expect_checkpoints(self) -> None:
        """Prepare for checkpoints; otherwise messages are acknowledged when they are received.

        Called before `open`.
        """


@runtime_checkable
class ReportingSource(Protocol):
    """A source that can lose its connection, and reconnects."""

    @property
    def problem(self) -> str | None:
        """The problem that prevents reading, for `/readyz`, or None. Any thread may call it."""


class Sink(Protocol):
    """Writes matches. All calls come from the thread of the coordinator.

    A checkpoint is made in this order: `prepare`, storage of the token in a file, `commit`.
    A sink can therefore be one checkpoint behind the newest one, but never ahead of it. No match is
    written between `prepare` and `commit`.
    """

    @property
    def written(self) -> int:
        """The number of matches written."""

    def resume(self, state: str, tokens: Mapping[int, Any]) -> int:
        """Return to a checkpoint, and discard the output after it.

        Args:
            state: The identifier of the state folder.
            tokens: What `prepare` returned for the checkpoints that can be resumed, by number.

        Returns:
            The number of the checkpoint with which the output agrees; 0 for none.

        Raises:
            StateError: if the output agrees with no checkpoint.
        """

    def attach(self, run: Run) -> None:
        """Prepare for the matches of a run, before its first event."""

    def write(self, match: Match) -> None:
        """Write a match."""

    def write_block(self) -> None:
        """Write matches that compiled code has formatted; called after each batch of events."""

    def prepare(self) -> Any:
        """Make all output durable, or ready to be committed; returns the token for `resume`."""

    def commit(self, number: int) -> None:
        """Checkpoint `number` is stored."""

    def close(self) -> None:
        """Write the rest; in a run with state, this output is not valid without `commit`."""


@runtime_checkable
class WaitingSink(Sink, Protocol):
    """A sink that retries while its server cannot be reached, and reports this."""

    waiting: Waiting


@runtime_checkable
class ContinuousSink(Sink, Protocol):
    """A sink that writes on while a checkpoint is stored: `resume` discards later output."""

    def mark(self) -> Any:
        """Like `prepare`, but nothing needs to be durable yet."""

    def sync(self) -> None:
        """Make the output up to the last `mark` durable. A copy of the process may call it."""
