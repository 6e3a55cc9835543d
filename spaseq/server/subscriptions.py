"""What a subscriber gets: matches, notices and progress, in the format that it asks for.

Each subscriber reads its query's topic at its own speed (`spaseq.server.topics`). A block of
matches is formatted once for all subscribers that are at the same place. A subscriber that falls
behind the buffer is cut off with an `error`; one that takes nothing for `SLOW_SECONDS`, without.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any

from spaseq.server.board import Channel
from spaseq.server.topics import Gone

HEARTBEAT_SECONDS = 15.0
PROGRESS_SECONDS = 0.2
"""The least time between two reports of progress to one subscriber."""
SLOW_SECONDS = 30.0


class Hub:
    """Wakes the subscribers. All calls come from the event loop, except `wake`."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop = loop
        self._waiting: dict[Channel, set[asyncio.Event]] = {}
        self.count = 0
        """The number of subscribers."""
        self.is_closing = False

    def wake(self, channels: Collection[Channel]) -> None:
        """Wake the subscribers of channels, from another thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, channels)

    def _wake(self, channels: Collection[Channel]) -> None:
        for channel in channels:
            for event in self._waiting.get(channel, ()):
                event.set()

    def close(self) -> None:
        """End all subscriptions."""
        self.is_closing = True
        self._wake(list(self._waiting))

    def join(self, channel: Channel) -> asyncio.Event:
        """Add a subscriber; its event is set when there is something new."""
        event = asyncio.Event()
        self._waiting.setdefault(channel, set()).add(event)
        self.count += 1
        return event

    def leave(self, channel: Channel, event: asyncio.Event) -> None:
        """Remove a subscriber."""
        events = self._waiting.get(channel, set())
        events.discard(event)
        self.count -= 1
        if not events:
            self._waiting.pop(channel, None)


class Format:
    """How a subscription is written.

    Args:
        media_type: The media type of the answer.
        matches: Lines of a topic → bytes.
        notice: (kind, what it says) → bytes.
        beginning: What comes first.
        heartbeat: What is sent when there is nothing to send.
    """

    def __init__(
        self,
        media_type: str,
        matches: Callable[[bytes], bytes],
        notice: Callable[[str, Mapping[str, Any]], bytes],
        beginning: bytes = b"",
        heartbeat: bytes = b"",
    ):
        self.media_type = media_type
        self.matches = matches
        self.notice = notice
        self.beginning = beginning
        self.heartbeat = heartbeat


def _split(line: bytes) -> tuple[bytes, bytes]:
    identifier, _, match = line.partition(b" ")
    return identifier, match


def _sse_matches(lines: bytes) -> bytes:
    found = []
    for line in lines.splitlines():
        identifier, match = _split(line)
        found.append(b"id: %b\nevent: match\ndata: %b\n\n" % (identifier, match))
    return b"".join(found)


def _sse_notice(kind: str, says: Mapping[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(says, ensure_ascii=False)}\n\n".encode()


def _lines_matches(lines: bytes) -> bytes:
    found = []
    for line in lines.splitlines():
        identifier, match = _split(line)
        found.append(b'{"id": "%b", %b\n' % (identifier, match[1:]))
    return b"".join(found)


def _lines_notice(kind: str, says: Mapping[str, Any]) -> bytes:
    return f"{json.dumps({kind: says}, ensure_ascii=False)}\n".encode()


def _messages_matches(lines: bytes) -> bytes:
    found = []
    for line in lines.splitlines():
        graph: str = json.loads(_split(line)[1])["graph"]
        found.append(graph.encode() + b"MESSAGE\n")
    return b"".join(found)


def _no_notice(kind: str, says: Mapping[str, Any]) -> bytes:
    return b"# " + json.dumps({kind: says}).encode() + b"\n"


SSE = Format("text/event-stream", _sse_matches, _sse_notice, b": spaseq\n\n", b": \n\n")
NDJSON = Format("application/x-ndjson", _lines_matches, _lines_notice, b"", b"\n")
MESSAGES = Format(
    "application/n-quads", _messages_matches, _no_notice, b'VERSION "1.1-messages"\n', b"#\n"
)


def frames(lines: bytes) -> list[str]:
    """The matches of a block as messages of a WebSocket."""
    return [
        f'{{"event": "match", "id": "{identifier.decode()}", "data": {match.decode()}}}'
        for identifier, match in map(_split, lines.splitlines())
    ]


class Subscription:
    """One subscriber's way through a channel.

    Args:
        hub: Wakes it.
        channel: What it reads.
        cursor: The number of the first match.
        limit: The number of matches after which it ends; None: never.
        follow: Whether it waits for more.
    """

    def __init__(
        self, hub: Hub, channel: Channel, cursor: int, limit: int | None = None, follow: bool = True
    ):
        self._hub = hub
        self._channel = channel
        self._cursor = cursor
        self._left = limit
        self._follows = follow
        self._noticed = channel.noticed
        self._shown: Any = None
        self._shown_at = 0.0
        self._event: asyncio.Event | None = hub.join(channel)

    def close(self) -> None:
        """Leave the channel; whoever made the subscription calls this."""
        if self._event is not None:
            self._hub.leave(self._channel, self._event)
            self._event = None

    async def items(self) -> AsyncIterator[tuple[str, Any]]:
        """(`match`, (cursor before, lines)), (`progress`, …), (`late`, …), (`error`, …), or
        (`heartbeat`, None), without end.
        """
        event = self._event
        assert event is not None
        try:
            while True:
                event.clear()
                channel, topic = self._channel, self._channel.topic
                # In this order: all matches before the watermark are before the end, and a query
                # that has drained has published its last one before it is removed.
                is_removed = channel.is_removed
                watermark, end = topic.watermark, topic.end
                if self._left is not None:
                    end = min(end, self._cursor + self._left)
                try:
                    while self._cursor < end:
                        before = self._cursor
                        lines, self._cursor = topic.read(before, end)
                        if self._left is not None:
                            self._left -= self._cursor - before
                        yield "match", (before, lines)
                except Gone:
                    yield "error", {"slow": "the subscriber is too slow: matches it has not seen "
                                    "are no longer there"}  # fmt: skip
                    return
                for kind, says in channel.since(self._noticed):
                    yield kind, says
                self._noticed = channel.noticed
                if is_removed or self._left == 0:
                    return
                wait = HEARTBEAT_SECONDS
                if watermark != self._shown:
                    wait = self._shown_at + PROGRESS_SECONDS - time.monotonic()
                    if wait <= 0 or not self._follows:
                        self._shown, self._shown_at = watermark, time.monotonic()
                        yield "progress", {"watermark": watermark}
                        wait = HEARTBEAT_SECONDS
                if not self._follows:
                    return
                if self._hub.is_closing:
                    yield "error", {"stopping": "the server is stopping"}
                    return
                try:
                    async with asyncio.timeout(wait):
                        await event.wait()
                except TimeoutError:
                    if wait == HEARTBEAT_SECONDS:
                        yield "heartbeat", None
        finally:
            self.close()

    async def chunks(self, format: Format) -> AsyncIterator[bytes]:
        """The items in a format."""
        if format.beginning:
            yield format.beginning
        async for kind, says in self.items():
            if kind == "match":
                yield self._formatted(format, *says)
            elif kind == "heartbeat":
                yield format.heartbeat
            else:
                yield format.notice(kind, says)

    def _formatted(self, format: Format, before: int, lines: bytes) -> bytes:
        """A block in a format; the last one of each format is remembered for other subscribers."""
        key = before, len(lines)
        known = self._channel.formatted.get(format.media_type)
        if known is None or known[0] != key:
            known = key, format.matches(lines)
            self._channel.formatted[format.media_type] = known
        return known[1]
