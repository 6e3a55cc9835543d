"""Subscriptions: matches, notices and progress, in the format that a subscriber requests.

Each subscriber reads its query's topic at its own speed (`spaseq.server.topics`). A block of
matches is formatted once for all subscribers at the same position. HTTP subscribers that have
caught up are written to together (`spaseq.server.following`). A subscriber that falls behind the
buffer is disconnected with an `error`; one that reads nothing for `SLOW_SECONDS` is disconnected
without it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from functools import partial
from typing import Any

from spaseq.server.board import Channel
from spaseq.server.following import HEARTBEAT_SECONDS, PROGRESS_SECONDS, Following, Outlet
from spaseq.server.topics import Gone

SLOW_SECONDS = 30.0


class Hub:
    """Wakes the subscribers. All calls come from the event loop, except `wake`."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop = loop
        self._waiting: dict[Channel, set[asyncio.Event]] = {}
        self._followings: dict[Channel, Following] = {}
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
            following = self._followings.get(channel)
            if following is not None:
                following.wake()

    def close(self) -> None:
        """End all subscriptions."""
        self.is_closing = True
        for following in list(self._followings.values()):
            following.close()
        self._wake(list(self._waiting))

    def join(self, channel: Channel) -> asyncio.Event:
        """Add a subscriber; its event is set when there is new content."""
        event = asyncio.Event()
        self.wait(channel, event)
        self.count += 1
        return event

    def leave(self, channel: Channel, event: asyncio.Event) -> None:
        """Remove a subscriber."""
        self._forget(channel, event)
        self.count -= 1

    def wait(self, channel: Channel, event: asyncio.Event) -> None:
        """Set an event when there is new content."""
        self._waiting.setdefault(channel, set()).add(event)

    def _forget(self, channel: Channel, event: asyncio.Event) -> None:
        events = self._waiting.get(channel, set())
        events.discard(event)
        if not events:
            self._waiting.pop(channel, None)

    def follow(self, channel: Channel, follower: Subscription, event: asyncio.Event) -> None:
        """Let a subscriber that has all matches follow; `Subscription.leave` ends that."""
        self._forget(channel, event)
        event.clear()  # from now on, only `leave` sets it
        following = self._followings.get(channel)
        if following is None:
            following = Following(self._loop, channel, partial(self._end_following, channel))
            self._followings[channel] = following
        following.add(follower)
        following.wake()

    def _end_following(self, channel: Channel) -> None:
        del self._followings[channel]

    def unfollow(self, channel: Channel, follower: Subscription) -> None:
        """Stop a subscriber from following."""
        following = self._followings.get(channel)
        if following is not None:
            following.remove(follower)


class Format:
    """The format of a subscription.

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
    # `error` is an event of EventSource itself: its handlers would get both.
    kind = "problem" if kind == "error" else kind
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
    """One subscriber's reading of a channel.

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
        self.cursor = cursor
        """The number of the next match."""
        self._left = limit
        self._follows = follow
        self.noticed = channel.noticed
        """The number of the next notice."""
        self.shown: Any = None
        """The watermark that was reported last."""
        self._shown_at = 0.0
        self._event: asyncio.Event | None = hub.join(channel)
        self._format: Format | None = None
        self.outlet: Outlet | None = None
        """The connection; None: only the task of the answer can write to it."""

    def close(self) -> None:
        """Leave the channel; the creator of the subscription calls this."""
        if self._event is not None:
            self._hub.unfollow(self._channel, self)
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
                # The order matters: all matches before the watermark precede the end, and a query
                # that has drained publishes its last match before it is removed.
                is_removed = channel.is_removed
                watermark, end, noticed = topic.watermark, topic.end, channel.noticed
                if self._left is not None:
                    end = min(end, self.cursor + self._left)
                try:
                    while self.cursor < end:
                        before = self.cursor
                        lines, self.cursor = topic.read(before, end)
                        if self._left is not None:
                            self._left -= self.cursor - before
                        yield "match", (before, lines)
                except Gone:
                    yield "error", {"slow": "the subscriber is too slow: matches it has not seen "
                                    "are no longer there"}  # fmt: skip
                    return
                for kind, says in channel.notices_of(self.noticed, noticed):
                    yield kind, says
                self.noticed = noticed
                if is_removed or self._left == 0:
                    return
                wait = HEARTBEAT_SECONDS
                if watermark != self.shown:
                    wait = self._shown_at + PROGRESS_SECONDS - time.monotonic()
                    if wait <= 0 or not self._follows:
                        self.shown, self._shown_at = watermark, time.monotonic()
                        yield "progress", {"watermark": watermark}
                        wait = HEARTBEAT_SECONDS
                if not self._follows:
                    return
                if self._hub.is_closing:
                    yield "error", {"stopping": "the server is stopping"}
                    return
                if self._left is None and self.outlet is not None and self.outlet.takes_more:
                    self._hub.follow(self._channel, self, event)
                    await event.wait()
                    continue
                try:
                    async with asyncio.timeout(wait):
                        await event.wait()
                except TimeoutError:
                    if wait == HEARTBEAT_SECONDS:
                        yield "heartbeat", None
        finally:
            self.close()

    # ------------------------------------------------------------ following

    @property
    def place(self) -> Any:
        """Followers with equal keys get equal blocks."""
        return self.cursor, self.noticed, self.shown, self._format

    def block(self, end: int, noticed: int, watermark: Any) -> tuple[bytes, int] | None:
        """The new content, and the number of the next match after it.

        Args:
            end: The number after the last match to take.
            noticed: The number after the last notice to take.
            watermark: The watermark to report if the block has all these matches; None: none.

        Returns:
            None if the topic no longer holds the next match.
        """
        format, cursor, parts = self._format, self.cursor, []
        assert format is not None
        if cursor < end:
            try:
                lines, after = self._channel.topic.read(cursor, end)
            except Gone:
                return None
            parts.append(self._formatted(format, cursor, lines))
            cursor = after
        parts += [format.notice(*each) for each in self._channel.notices_of(self.noticed, noticed)]
        if cursor == end and watermark is not None and watermark != self.shown:
            parts.append(format.notice("progress", {"watermark": watermark}))
        return b"".join(parts), cursor

    @property
    def heartbeat(self) -> bytes:
        """The heartbeat, which is sent when there is nothing else to send."""
        return b"" if self._format is None else self._format.heartbeat

    def leave(self) -> None:
        """Continue in the task of the response, since following has ended."""
        if self._event is not None:
            self._hub.wait(self._channel, self._event)
            self._event.set()

    # ------------------------------------------------------------ formats

    async def chunks(self, format: Format, outlet: Outlet | None = None) -> AsyncIterator[bytes]:
        """The items in a format; those for followers go directly to the outlet."""
        self._format, self.outlet = format, outlet
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
        """A block in a format; the last one of each format is cached for other subscribers."""
        key = before, len(lines)
        known = self._channel.formatted.get(format.media_type)
        if known is None or known[0] != key:
            known = key, format.matches(lines)
            self._channel.formatted[format.media_type] = known
        return known[1]
