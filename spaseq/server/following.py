"""Followers: subscribers that have caught up, whose connections are written to without a task.

A subscription that has caught up follows its channel. New content is formatted once, and the same
bytes are written to the connections of all followers in one call. A follower whose connection
accepts no more leaves: its own task sends the rest, waits for the connection, and closes it if it
accepts nothing. A slow subscriber therefore costs the others nothing.

Writes to one channel are `TICK_SECONDS` apart, and at least twice as long as they take: under load
each write has more matches, and the event loop has time for other requests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from spaseq.server.board import Channel

if TYPE_CHECKING:
    from spaseq.server.subscriptions import Subscription

TICK_SECONDS = 0.02
"""The least time between two writes to one channel."""
PROGRESS_SECONDS = 0.2
"""The least time between two reports of progress to one subscriber."""
HEARTBEAT_SECONDS = 15.0


class Outlet(Protocol):
    """The connection of a response that has begun."""

    @property
    def takes_more(self) -> bool:
        """Whether it is open, and everything written has been passed on."""

    def frame(self, data: bytes) -> bytes:
        """A part of the response as bytes of the connection; the same for all outlets."""

    def write(self, framed: bytes) -> None:
        """Write a part of the response."""


class Following:
    """The followers of one channel; all calls come from the event loop.

    Args:
        loop: The event loop.
        channel: What they follow.
        ended: Called when the last one has left.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, channel: Channel, ended: Callable[[], None]
    ):
        self._loop = loop
        self._channel = channel
        self._ended = ended
        self._followers: dict[Subscription, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0.0
        """When the next write may begin, on the monotonic clock."""
        self._reported = 0.0
        """When progress was reported last."""
        self._written = time.monotonic()
        self._heartbeat: asyncio.TimerHandle = loop.call_later(HEARTBEAT_SECONDS, self._beat)

    def add(self, follower: Subscription) -> None:
        self._followers[follower] = None

    def remove(self, follower: Subscription) -> None:
        """Let a follower leave, if it follows."""
        if follower in self._followers:
            del self._followers[follower]
            follower.leave()
            if not self._followers:
                self._heartbeat.cancel()
                if self._timer is not None:
                    self._timer.cancel()
                self._ended()

    def close(self) -> None:
        """Let all leave."""
        for follower in list(self._followers):
            self.remove(follower)

    def wake(self) -> None:
        """Schedule a write, since there is new content."""
        if self._channel.is_removed:
            self.close()
        elif self._timer is None:
            wait = self._next - time.monotonic()
            if wait <= 0:
                self._write()
            else:
                self._timer = self._loop.call_later(wait, self._write)

    def _write(self) -> None:
        """Write the new content to all followers."""
        begun = time.monotonic()
        self._timer = None
        # The order matters: all matches before the watermark precede the end.
        channel, topic = self._channel, self._channel.topic
        watermark, end, noticed = topic.watermark, topic.end, channel.noticed
        reports = begun >= self._reported + PROGRESS_SECONDS
        blocks: dict[Any, tuple[bytes, int] | None] = {}
        is_behind = waits = False
        for follower in list(self._followers):
            outlet, place = follower.outlet, follower.place
            assert outlet is not None
            if place not in blocks:
                made = follower.block(end, noticed, watermark if reports else None)
                blocks[place] = made and (made[0] and outlet.frame(made[0]), made[1])
            block = blocks[place]
            if block is None or not outlet.takes_more:
                self.remove(follower)
                continue
            data, follower.cursor = block
            if data:
                outlet.write(data)
            follower.noticed = noticed
            if follower.cursor < end:
                is_behind = True
            elif reports:
                follower.shown = watermark
            elif follower.shown != watermark:
                waits = True
        now = time.monotonic()
        self._written = now
        if reports:
            self._reported = begun
        self._next = begun + max(TICK_SECONDS, 2 * (now - begun))
        if self._followers and (is_behind or waits):
            at = self._next if is_behind else max(self._next, self._reported + PROGRESS_SECONDS)
            self._timer = self._loop.call_later(at - now, self._write)

    def _beat(self) -> None:
        """Send heartbeats to the followers of a silent channel."""
        self._heartbeat = self._loop.call_later(HEARTBEAT_SECONDS, self._beat)
        if time.monotonic() - self._written < HEARTBEAT_SECONDS / 2:
            return
        for follower in list(self._followers):
            outlet, heartbeat = follower.outlet, follower.heartbeat
            assert outlet is not None
            if outlet.takes_more:
                outlet.write(outlet.frame(heartbeat))
            else:
                self.remove(follower)
