"""The board: a topic for each query, and the subscribers to wake.

The engine adds matches to it while it works and publishes them at the end of its turn. For the
checkpoints of `spaseq.live`, it is a sink that continues to write while a checkpoint is made, since
matches after a checkpoint are found again.

Late events and errors are notices; each topic stores the last `MAX_NOTICES` of them. They are sent
to present subscribers, and are not replayed.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from spaseq.results import Match
from spaseq.runs import Run
from spaseq.server.inputs import Late
from spaseq.server.topics import Topic, topic_folder

MAX_NOTICES = 256
MAX_REMOVED = 4096
"""The most names of removed queries that are remembered."""


class NotStored(BaseException):
    """The matches of an event cannot be written. Handlers of its errors are not meant to catch it.

    Args:
        reason: What the operating system says.
    """


class Channel:
    """The channel that subscribers of one query read: its topic, and the notices.

    Args:
        topic: The matches.
    """

    def __init__(self, topic: Topic):
        self.topic = topic
        self.notices: deque[tuple[int, str, Mapping[str, Any]]] = deque(maxlen=MAX_NOTICES)
        """(number, `late` or `error`, content)."""
        self.noticed = 0
        """The number of the next notice."""
        self.is_removed = False
        """Whether the query has been removed."""
        self.formatted: dict[str, tuple[tuple[int, int], bytes]] = {}
        """Media type → the last formatted block of matches: its position, and its bytes."""
        self.skipped = 0
        """The number of the next matches that subscribers already have, since they are found
        again."""

    def tell(self, kind: str, says: Mapping[str, Any]) -> None:
        self.notices.append((self.noticed, kind, says))
        self.noticed += 1

    def notices_of(self, first: int, end: int) -> list[tuple[str, Mapping[str, Any]]]:
        """The notices with some numbers, as far as they are still stored."""
        if first >= end:
            return []
        return [(kind, says) for n, kind, says in list(self.notices) if first <= n < end]


class Board:
    """All channels.

    Args:
        folder: Where the topics are.
        most: The matches that a topic holds at most.
        most_bytes: The bytes that a topic holds at most.
    """

    def __init__(self, folder: Path, most: int, most_bytes: int):
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._most, self._most_bytes = most, most_bytes
        self.channels: dict[str, Channel] = {}
        self.wake: Callable[[Collection[Channel]], None] = lambda channels: None
        """Called in the thread of the engine with the channels that have new content."""
        self.deliver: Callable[[Collection[str]], None] = lambda names: None
        """Called in the thread of the engine with the queries that have new matches."""
        self._told: set[str] = set()
        self._touched: set[str] = set()
        self.written = 0
        """The number of matches."""
        self._removed: deque[str] = deque(maxlen=MAX_REMOVED)

    def channel(self, name: str) -> Channel:
        """The channel of a query."""
        found = self.channels.get(name)
        if found is None:
            folder = topic_folder(self._folder, name)
            found = Channel(Topic(folder, name, self._most, self._most_bytes))
            self.channels[name] = found
        return found

    # ------------------------------------------------------------ the engine

    def add(self, match: Match, identifier: str) -> None:
        """Add a match; `publish` shows it."""
        channel = self.channel(match.query)
        if channel.skipped:
            channel.skipped -= 1
            return
        self._touched.add(match.query)
        try:
            channel.topic.append(identifier, match.to_json().encode())
        except OSError as error:
            raise NotStored(str(error)) from error
        self.written += 1

    def add_late(self, names: Collection[str], late: Late) -> None:
        """Notify the subscribers of queries that an event was late."""
        says = late.to_dict()
        for name in names:
            self.tell(name, "late", says)

    def tell(self, name: str, kind: str, says: Mapping[str, Any]) -> None:
        """Send a notice to the subscribers of a query; `publish` shows it."""
        self.channel(name).tell(kind, says)
        self._told.add(name)

    def store(self) -> None:
        """Write the matches, so that `publish` cannot fail.

        Raises:
            NotStored: if that is impossible.
        """
        try:
            for name in self._touched:
                self.channel(name).topic.write()
        except OSError as error:
            raise NotStored(str(error)) from error

    def discard(self) -> None:
        """Forget the matches and notices that are not published."""
        for channel in self.channels.values():
            channel.topic.discard()
        self._touched, self._told = set(), set()

    def publish(self, watermarks: Mapping[str, Any]) -> None:
        """Show everything, and wake the subscribers.

        Args:
            watermarks: Query → the time that it has reached, where it has changed.
        """
        changed = []
        for name in self._touched | self._told | watermarks.keys():
            channel = self.channels.get(name)
            if channel is None:
                continue
            watermark = watermarks.get(name, channel.topic.watermark)
            if channel.topic.publish(watermark) or name in self._told:
                changed.append(channel)
        touched, self._touched, self._told = self._touched, set(), set()
        if touched:
            self.deliver(touched)
        if changed:
            self.wake(changed)

    def keep(self, names: Collection[str]) -> None:
        """Remove the channels of all other queries, and add those that are missing."""
        gone = [channel for name, channel in self.channels.items() if name not in names]
        for channel in gone:
            channel.is_removed = True
            self._removed.append(channel.topic.name)
            channel.tell("error", {"removed": channel.topic.name})
            del self.channels[channel.topic.name]
            channel.topic.remove()
        for name in names:
            self.channel(name)
        if gone:
            self.wake(gone)

    def has_removed(self, name: str) -> bool:
        """Whether there was a query of this name, among the last ones that were removed."""
        return name in self._removed

    def rewind(self, begins: Mapping[str, int]) -> None:
        """Skip the matches after a checkpoint, which are found again from now on.

        Args:
            begins: Query → the number of its first match after the checkpoint; 0: there is none.
        """
        for name, channel in self.channels.items():
            channel.skipped = channel.topic.appended - begins.get(name, 0)

    def end_rewind(self) -> None:
        """Treat all matches from now on as new."""
        for channel in self.channels.values():
            channel.skipped = 0

    # ------------------------------------------------------------ as a sink of checkpoints

    def resume(self, state: str, tokens: Mapping[int, Any]) -> int:
        """The newest checkpoint, to which `restore` returns."""
        return max(tokens, default=0)

    def restore(self, token: Mapping[str, Any]) -> None:
        """Return to a checkpoint, before there are subscribers."""
        self.channels.clear()
        kept = {topic_folder(self._folder, name).name for name in token}
        for path in self._folder.iterdir():
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)
        for name, mark in token.items():
            self.channel(name).topic.restore(mark)

    def attach(self, run: Run) -> None:
        """Do nothing, since matches are added as objects."""

    def write(self, match: Match) -> None:
        """Do nothing, since the engine adds matches."""

    def write_block(self) -> None:
        """Do nothing, since the engine publishes."""

    def mark(self) -> dict[str, Any]:
        """The token of a checkpoint."""
        return {name: channel.topic.mark() for name, channel in self.channels.items()}

    def sync(self) -> None:
        """Make the matches durable."""
        for channel in self.channels.values():
            channel.topic.sync()

    def prepare(self) -> dict[str, Any]:
        """The token of a checkpoint, with everything durable."""
        self.sync()
        return self.mark()

    def commit(self, number: int) -> None:
        """Do nothing, since the state folder has the number."""

    def close(self) -> None:
        """Do nothing, since nothing is open."""
