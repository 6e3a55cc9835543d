"""Topics: the latest matches of each query, on disk, for subscribers to read and replay.

The engine appends matches; a subscriber reads from its cursor, which is the number of the next
match, at its own speed. Subscribers therefore share one buffer, and none can slow the engine. A
subscriber that falls behind the buffer is disconnected (`Gone`).

A topic has at most two files. When the newer one holds half of the topic's maximum, another one is
begun, and the oldest one is removed. A line of a file is the identifier of a match, a space, and
its JSON. The tables of identifiers and offsets are in memory.

`mark` and `restore` serve checkpoints: at the start, matches after a checkpoint are discarded and
found again from the journal, with the same identifiers.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

BLOCK_BYTES = 1 << 18
"""The most bytes that a subscriber reads at once, or one match."""
SPILL_BYTES = 1 << 22
"""The number of bytes after which matches are written before they are published."""


class Gone(Exception):
    """A subscriber requests matches that the topic no longer holds."""


class _Segment:
    """One file of a topic."""

    def __init__(self, path: Path, first: int):
        self.path = path
        self.first = first
        """The number of its first match."""
        self.offsets: list[int] = [0]
        """The offset of each match, and the end."""
        self.numbers: dict[str, int] = {}
        """Identifier → number of the match."""
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)

    @property
    def end(self) -> int:
        return self.first + len(self.offsets) - 1

    @property
    def size(self) -> int:
        return self.offsets[-1]

    def cut(self, end: int) -> None:
        """Remove the matches from a number on."""
        count = max(end - self.first, 0)
        del self.offsets[count + 1 :]
        self.numbers = {name: number for name, number in self.numbers.items() if number < end}
        os.ftruncate(self.file, self.size)

    def add(self, identifier: str, size: int) -> None:
        self.numbers[identifier] = self.end
        self.offsets.append(self.offsets[-1] + size)

    def load(self, size: int) -> None:
        """Read the tables of a file, and truncate it to a size."""
        os.ftruncate(self.file, size)
        with open(self.path, "rb") as file:
            for line in file:
                self.add(line[: line.index(b" ")].decode(), len(line))

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)

    def __del__(self) -> None:
        # A subscriber may still read the file when it is removed.
        os.close(self.file)


class Topic:
    """The matches of one query.

    Args:
        folder: Where its files are; it is created.
        name: The query.
        most: The number of matches that it holds at most.
        most_bytes: The bytes that it holds at most.
    """

    def __init__(self, folder: Path, name: str, most: int, most_bytes: int):
        self.name = name
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._most, self._most_bytes = max(most // 2, 1), max(most_bytes // 2, 1)
        self._segments: tuple[_Segment, ...] = ()
        self._number = 0
        self._lines: list[tuple[str, bytes]] = []
        self._size = 0
        self.end = 0
        """The number of the next match, among those that subscribers can read."""
        self.watermark: Any = None
        """The time before which all matches are present; None: not known."""
        self._last_read: tuple[int, int, bytes, int] = (-1, -1, b"", -1)
        """The last request to `read` and its answer; most subscribers are at the same position."""

    # ------------------------------------------------------------ the engine

    def append(self, identifier: str, line: bytes) -> None:
        """Add a match; subscribers see it after `publish`."""
        record = identifier.encode() + b" " + line + b"\n"
        self._lines.append((identifier, record))
        self._size += len(record)
        if self._size >= SPILL_BYTES:
            self._write()

    @property
    def appended(self) -> int:
        """The number of the next match, including those that are not yet published."""
        return (self._segments[-1].end if self._segments else self.end) + len(self._lines)

    def write(self) -> None:
        """Write what was appended, so that `publish` cannot fail.

        Raises:
            OSError: for example if the disk is full; then call `discard`.
        """
        if self._lines:
            self._write()

    def discard(self) -> None:
        """Forget the matches that are not published."""
        self._lines, self._size = [], 0
        kept = []
        for segment in self._segments:
            if segment.first <= self.end:
                segment.cut(self.end)
                kept.append(segment)
            else:
                segment.remove()
        self._segments = tuple(kept)

    def publish(self, watermark: Any) -> bool:
        """Show what was appended, and the watermark; returns whether anything changed."""
        self.write()
        end = self._segments[-1].end if self._segments else self.end
        changed = bool(end > self.end or watermark != self.watermark)
        self.end, self.watermark = end, watermark
        return changed

    def _write(self) -> None:
        """Write what was appended to the segments, as much as each of them takes."""
        lines, self._lines, self._size = self._lines, [], 0
        while lines:
            segment = self._current()
            count = min(len(lines), self._most - len(segment.offsets) + 1)
            data = memoryview(b"".join([record for _, record in lines[:count]]))
            while data:
                data = data[os.write(segment.file, data) :]
            for identifier, record in lines[:count]:
                segment.add(identifier, len(record))
            lines = lines[count:]

    def _current(self) -> _Segment:
        segments = self._segments
        if segments:
            last = segments[-1]
            if len(last.offsets) <= self._most and last.size < self._most_bytes:
                return last
        self._number += 1
        first = segments[-1].end if segments else self.end
        fresh = _Segment(self._folder / f"matches-{self._number}", first)
        for old in segments[:-1]:
            old.remove()
        self._segments = (*segments[-1:], fresh)
        return fresh

    def remove(self) -> None:
        """Remove the topic; existing subscribers can still read it to its end."""
        shutil.rmtree(self._folder, ignore_errors=True)

    # ------------------------------------------------------------ checkpoints

    def mark(self) -> dict[str, Any]:
        """The data that `restore` needs to return to this point."""
        return {
            "end": self.end,
            "segments": [[s.path.name, s.first, s.size] for s in self._segments],
        }

    def sync(self) -> None:
        """Make the matches durable."""
        for segment in self._segments:
            os.fsync(segment.file)

    def restore(self, mark: Mapping[str, Any] | None) -> None:
        """Return to a point; None: to an empty topic."""
        kept = {} if mark is None else {name: (f, size) for name, f, size in mark["segments"]}
        for path in self._folder.iterdir():
            if path.name not in kept:
                path.unlink()
        found: list[_Segment] = []
        for name, (first, size) in kept.items():
            path = self._folder / name
            if not path.exists() or path.stat().st_size < size:
                found = []  # reading cannot continue across a gap
                continue
            segment = _Segment(path, first)
            segment.load(size)
            found.append(segment)
            self._number = int(name.rpartition("-")[2])
        self._segments = tuple(found)
        self.end = 0 if mark is None else mark["end"]
        if found and found[-1].end != self.end:
            for segment in found:
                segment.remove()
            self._segments = ()

    # ------------------------------------------------------------ subscribers

    @property
    def first(self) -> int:
        """The number of the oldest match that it holds."""
        segments = self._segments
        return segments[0].first if segments else self.end

    def after(self, identifier: str) -> int:
        """The cursor after a match.

        Raises:
            Gone: if the topic does not hold it.
        """
        for segment in reversed(self._segments):
            number = segment.numbers.get(identifier)
            if number is not None and number < self.end:
                return number + 1
        raise Gone(identifier)

    def read(self, cursor: int, end: int) -> tuple[bytes, int]:
        """The lines of some matches from a cursor on, before `end`; and the cursor after them.

        Raises:
            Gone: if the topic no longer holds the next one.
        """
        last_cursor, last_end, last_data, last_after = self._last_read
        if (cursor, end) == (last_cursor, last_end):
            return last_data, last_after
        for segment in self._segments:
            if segment.first <= cursor < segment.end:
                break
        else:
            raise Gone(str(cursor))
        offsets, place = segment.offsets, cursor - segment.first
        start, last = offsets[place], min(end - segment.first, len(offsets) - 1)
        after = place + 1
        while after < last and offsets[after + 1] - start <= BLOCK_BYTES:
            after += 1
        size = offsets[after] - start
        data = os.pread(segment.file, size, start)
        if len(data) != size:
            raise Gone(str(cursor))
        self._last_read = cursor, end, data, segment.first + after
        return data, segment.first + after


def topic_folder(folder: Path, name: str) -> Path:
    """The folder of the topic of a query, whose name may have any characters."""
    return folder / blake2b(name.encode(), digest_size=12).hexdigest()
