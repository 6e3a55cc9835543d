"""Live sessions that a script drives, in this thread and without waiting for any time.

The sources are in memory (`MemoryStream`), and each step of the script happens where the session
would wait for its sources. Everything else is that of every live run: the threads that read the
sources, the inbox, the decoders, the release of events, the sink and the state folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from unittest.mock import patch

from spaseq.io.read_options import ReadOptions
from spaseq.live import registry
from spaseq.live.coordinator import Timing
from spaseq.live.feeder import Inbox
from spaseq.live.protocols import Chunk, Position
from spaseq.live.session import LiveOptions, Session
from spaseq.program import Program

QUIET_SECONDS, IDLE_SECONDS = 1.0, 100.0
TIMING = Timing(quiet=QUIET_SECONDS, idle=IDLE_SECONDS, checkpoint=1e6)
PATIENCE_SECONDS = 60.0


class Crashed(Exception):
    """The session ends as if the process had been killed."""


@dataclass(slots=True)
class MemoryStream:
    """Documents of N-Quads, of which the last may grow; a session can read them from any place."""

    documents: list[bytearray] = field(default_factory=lambda: [bytearray()])
    ended: bool = False
    queue: SimpleQueue[Sequence[Chunk] | None] = field(default_factory=SimpleQueue)
    """What the reading thread gets next."""
    left: list[Chunk] = field(default_factory=list)
    """What was there when a session started, and is still to be read."""
    cuts: Sequence[float] = ()
    """Where to cut that, from 0 to 1: its pieces arrive one by one."""

    def open(self, position: Position) -> None:
        """Let what is there after a position arrive, as far as it is not cut."""
        chunks = self.since(position)
        for cut in self.cuts:
            chunks = [piece for chunk in chunks for piece in _cut(chunk, cut)]
        self.left = chunks if self.cuts else []
        self.queue.put([] if self.cuts else chunks)
        if self.ended and not self.left:
            self.queue.put(None)

    def add(self, text: bytes, ends: bool) -> Chunk:
        """Append to the last document; `ends`: nothing else will be in it."""
        number, start = len(self.documents) - 1, len(self.documents[-1])
        self.documents[-1] += text
        if ends:
            self.documents.append(bytearray())
        return self._chunk(number, start)

    def since(self, position: Position) -> list[Chunk]:
        """What is there after a position."""
        number, start = position.get("document", 0), position["offset"]
        places = [
            (number, start),
            *((later, 0) for later in range(number + 1, len(self.documents))),
        ]
        chunks = [self._chunk(number, start) for number, start in places]
        return [chunk for chunk in chunks if chunk.data or chunk.ends]

    def _chunk(self, number: int, start: int) -> Chunk:
        text, name = self.documents[number], f"{number}.nq"
        ends = number < len(self.documents) - 1
        position = {"document": number, "offset": len(text)}
        return Chunk(bytes(text[start:]), position, None if start else name, name, ends)


def _cut(chunk: Chunk, at: float) -> list[Chunk]:
    """A chunk in two pieces, if it is long enough."""
    count = int(len(chunk.data) * at)
    if not count:
        return [chunk]
    offset = chunk.position["offset"] - len(chunk.data) + count
    first = replace(
        chunk, data=chunk.data[:count], position={**chunk.position, "offset": offset}, ends=False
    )
    return [first, replace(chunk, data=chunk.data[count:], document=None)]


class MemorySource:
    """The source of the URL `memory:NUMBER`."""

    messages = False
    replays = True
    streams: Sequence[MemoryStream] = ()

    def __init__(self, url: str, log: Callable[[str], None]):
        self._stream = self.streams[int(url.removeprefix("memory:"))]

    def open(self, position: Position | None) -> None:
        self._stream.open(position or {"offset": 0})

    def poll(self, timeout: float) -> Sequence[Chunk] | None:
        return self._stream.queue.get()

    def acknowledge(self, position: Position) -> None:
        """Nothing: the document keeps everything."""

    def close(self) -> None:
        """Nothing is open."""


class DrivenInbox(Inbox):
    """An inbox whose waiting is the next step of a script, and whose silences the script sets."""

    def __init__(self, count: int, step: Callable[[], None], streams: Sequence[MemoryStream]):
        super().__init__(count)
        self._step = step
        self._streams = streams
        self._settled: SimpleQueue[None] = SimpleQueue()
        self.silences = [0.0] * count

    def hear(self, number: int, since: float | None) -> None:
        super().hear(number, since)
        if since is not None:
            self._settled.put(None)

    def put(self, number: int, chunks: Sequence[Chunk]) -> None:
        super().put(number, chunks)
        self._settled.put(None)

    def end(self, number: int, failure: BaseException | None) -> None:
        super().end(number, failure)
        self._settled.put(None)

    def settle(self, count: int = 1) -> None:
        """Wait until the reading threads have taken so many answers of their sources."""
        for _ in range(count):
            self._settled.get(timeout=PATIENCE_SECONDS)

    def silence(self, number: int, now: float) -> float:
        return self.silences[number]

    def wait(self, wanted: Sequence[int], timeout: float) -> None:
        self._step()

    def stop(self) -> None:
        super().stop()
        for stream in self._streams:
            stream.queue.put([])


Step = Callable[["DrivenSession"], None]


class DrivenSession:
    """Sessions one after the other over the same streams, output and state.

    Args:
        program: The queries.
        folder: Where output and state are.
        lateness: That of the streams, in microseconds.
        keeps: Whether there is a state folder.
        close: Whether the end of all streams closes every window.
        more: Other arguments of `Session`.
    """

    def __init__(
        self,
        program: Program,
        folder: Path,
        *,
        lateness: int | None = None,
        keeps: bool = False,
        close: bool = True,
        **more: Any,
    ):
        self._program = program
        self._more = more
        self._reading = ReadOptions(lateness=lateness)
        self.iris = list(program.streams)
        self.streams = [MemoryStream() for _ in self.iris]
        self.output, self.late = folder / "matches.jsonl", folder / "late.jsonl"
        self._options = LiveOptions(
            follow=True, timing=TIMING, output=str(self.output), late=str(self.late), close=close,
            state=str(folder / "state") if keeps else None, format="jsonl",
        )  # fmt: skip
        self._session: Session | None = None
        self._inbox: DrivenInbox | None = None
        self._left: Iterator[Step] = iter(())
        self._opened = False
        """Whether the text that the sources had at the start has arrived."""

    # ------------------------------------------------------------ running

    def go(self, steps: Iterable[Step], cuts: Sequence[float] = ()) -> None:
        """Take the steps, then stop, unless all streams have ended.

        Args:
            steps: The steps.
            cuts: Where to cut what the streams have already, for `read_on`.
        """
        self._left = iter(steps)
        sources = {iri: [f"memory:{number}"] for number, iri in enumerate(self.iris)}
        for stream in self.streams:
            stream.queue, stream.cuts = SimpleQueue(), cuts
        with _memory(self.streams):
            session = Session(self._program, sources, self._reading, self._options, **self._more)
            self._session = session
            self._inbox = DrivenInbox(len(self.iris), self._step, self.streams)
            session.coordinator.inbox = self._inbox
            self._opened = False
            try:
                session.go()
            except Crashed:
                pass
            finally:
                session.close()
                self._session = self._inbox = None

    def _step(self) -> None:
        assert self._inbox is not None
        assert self._session is not None
        if not self._opened:
            self._opened = True
            self._inbox.settle(len(self.streams))
            self._inbox.settle(sum(one.ended and not one.left for one in self.streams))
            return
        step = next(self._left, None)
        if step is None:
            self._session.stop()
        else:
            step(self)

    # ------------------------------------------------------------ steps

    def read_on(self, number: int) -> None:
        """Let the next piece arrive of what a stream had when the session started."""
        assert self._inbox is not None
        stream = self.streams[number]
        stream.queue.put([stream.left.pop(0)])
        self._inbox.settle()
        if stream.ended and not stream.left:
            stream.queue.put(None)
            self._inbox.settle()

    @property
    def unread(self) -> list[int]:
        """The streams with such pieces."""
        return [number for number, stream in enumerate(self.streams) if stream.left]

    def arrive(self, number: int, text: bytes, ends: bool = False) -> None:
        """Let text arrive; `ends`: it ends a document, so its last event is complete."""
        assert self._inbox is not None
        stream = self.streams[number]
        stream.queue.put([stream.add(text, ends)])
        self._inbox.settle()
        self._inbox.silences[number] = 0.0

    def quiet(self, number: int) -> None:
        """Let a stream be quiet for so long that its last event is complete."""
        assert self._inbox is not None
        self._inbox.silences[number] = QUIET_SECONDS

    def idle(self, number: int) -> None:
        """Let a stream be quiet for so long that the others do not wait for it."""
        assert self._inbox is not None
        self._inbox.silences[number] = IDLE_SECONDS

    def end(self, number: int) -> None:
        """End a stream."""
        assert self._inbox is not None
        self.streams[number].ended = True
        self.streams[number].queue.put(None)
        self._inbox.settle()

    def checkpoint(self) -> None:
        """Make a checkpoint."""
        assert self._session is not None
        checkpoints = self._session.coordinator.checkpoints
        assert checkpoints is not None
        checkpoints.make_last()

    def crash(self) -> None:
        """End the session without a checkpoint."""
        raise Crashed

    # ------------------------------------------------------------ results

    @property
    def is_open(self) -> bool:
        """Whether a session is open."""
        return self._session is not None

    @property
    def written(self) -> int:
        """The number of matches that the output has."""
        return self.output.read_bytes().count(b"\n")

    @property
    def matches(self) -> list[dict[str, Any]]:
        """The matches written so far."""
        return _json_lines(self.output)

    @property
    def late_events(self) -> list[dict[str, Any]]:
        """The late events written so far."""
        return _json_lines(self.late)


def _json_lines(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line, parse_float=Decimal) for line in lines]


@contextmanager
def _memory(streams: Sequence[MemoryStream]) -> Iterator[None]:
    """The scheme `memory:` for the streams."""
    schemes: Mapping[str, str] = {"memory": f"{__name__}:MemorySource"}
    with patch.dict(registry.SOURCES, schemes), patch.object(MemorySource, "streams", streams):  # type: ignore[arg-type]
        yield
