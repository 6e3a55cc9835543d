"""The journal: everything that changes the server's state, in order, on disk.

A record is a JSON mapping and a body of bytes. The engine appends a record, makes it durable
(`sync`), and only then answers the client or publishes a match. After a crash it reads the records
after the last checkpoint again, and reaches the same state, because nothing else changes the state.

A file of the journal is `MAGIC` and records: the sizes of mapping and body (4 bytes each, little
endian), the CRC-32 of both, the mapping, the body. A crash can tear the last records, which were
not acknowledged; the journal is truncated there, and this is logged. Records that cannot be
written, synced or executed are cut off again (`cut`), so that what a client was refused never
happens. A file without content reserves room for the records that pause and remove queries, which
must be possible on a full disk, too. Files are numbered by their first record; those before the
last two checkpoints are removed.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import IO, Any, NamedTuple

from spaseq.errors import StateError

MAGIC = b"spaseq-journal-1\n"
FILE_BYTES = 1 << 26
"""The size after which another file is begun."""
MAX_RECORD_BYTES = 1 << 30
ROOM_BYTES = 1 << 16
"""How much must fit on the disk for changes to be accepted again."""
_HEAD = struct.Struct("<III")
_RESERVE = "reserve"
_NAME = re.compile(r"journal-([0-9]{1,18})")


class Record(NamedTuple):
    """A record: its number, its mapping, and its body."""

    number: int
    says: Mapping[str, Any]
    body: bytes


class Journal:
    """An open journal; all calls come from the thread of the engine.

    Args:
        folder: Where its files are; it exists.
        log: Reports a torn end.

    Raises:
        OSError: if the folder cannot be used.
    """

    def __init__(self, folder: Path, log: Callable[[str], None] = lambda text: None):
        self._log = log
        self._folder = folder
        self._firsts = sorted(
            int(found[1]) for name in os.listdir(folder) if (found := _NAME.fullmatch(name))
        )
        self._file: FileIO | None = None
        self._size = 0
        self._unsynced: list[int] = []
        """The places in the last file at which the records begin that are not synced."""
        self._failure: OSError | None = None
        """The error that left a part of a record in the file; nothing is written after it."""
        self.next = 0
        """The number of the next record."""
        if self._firsts:
            self._recover()

    def _path(self, first: int) -> Path:
        return self._folder / f"journal-{first}"

    def _recover(self) -> None:
        """Find the end of the last file, and remove a torn record."""
        first = self._firsts[-1]
        path = self._path(first)
        count, end = 0, 0
        with open(path, "rb") as file:
            if file.read(len(MAGIC)) == MAGIC:
                end = len(MAGIC)
                for _, size in _records(file):
                    count, end = count + 1, end + size
        if end == 0:
            # The file has only been begun.
            path.unlink()
            self._firsts.pop()
            self.next = first
            return
        self.next = first + count
        self._file = open(path, "r+b", buffering=0)  # noqa: SIM115 (closed by `close`)
        rest = path.stat().st_size - end
        if rest:
            self._log(f"{path}: cut off {rest} bytes of an incomplete record {self.next}")
        self._file.truncate(end)
        self._file.seek(end)
        self._size = end

    # ------------------------------------------------------------ writing

    def append(self, says: Mapping[str, Any], body: bytes = b"") -> int:
        """Append a record, which `sync` makes durable; returns its number.

        Raises:
            OSError: if it cannot be written, for example because the disk is full; nothing of it
                remains.
        """
        if self._failure is not None:
            raise self._failure
        text = json.dumps(says, ensure_ascii=False, separators=(",", ":")).encode()
        head = _HEAD.pack(len(text), len(body), zlib.crc32(body, zlib.crc32(text)))
        try:
            if self._file is None or self._size >= FILE_BYTES:
                self._begin()
            _write(self._opened, head + text)
            _write(self._opened, body)
        except OSError:
            self._truncate()
            raise
        self._unsynced.append(self._size)
        self._size += len(head) + len(text) + len(body)
        number, self.next = self.next, self.next + 1
        return number

    @property
    def _opened(self) -> FileIO:
        assert self._file is not None
        return self._file

    @property
    def synced(self) -> int:
        """The number after the last record that `sync` has made durable."""
        return self.next - len(self._unsynced)

    def cut(self, number: int) -> None:
        """Remove the records from a number on, as far as they are not synced.

        Raises:
            OSError: if they cannot be removed.
        """
        first = self.synced
        number = max(number, first)
        if number < self.next:
            self._size = self._unsynced[number - first]
            del self._unsynced[number - first :]
            self.next = number
            self._truncate()

    def _truncate(self) -> None:
        """Remove what the last file has after the last record."""
        if self._file is None:
            return
        try:
            self._file.truncate(self._size)
            self._file.seek(self._size)
        except OSError as error:
            self._failure = error
            raise

    def _begin(self) -> None:
        """Begin another file; the last one remains if that fails."""
        self.sync()  # so that all records that `cut` removes are in one file
        path = self._path(self.next)
        file = open(path, "wb", buffering=0)  # noqa: SIM115 (closed by `close`)
        try:
            _write(file, MAGIC)
        except OSError:
            file.close()
            path.unlink()
            raise
        if self._file is not None:
            self._file.close()
        self._file = file
        self._size = len(MAGIC)
        self._firsts.append(self.next)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def has_room(self) -> bool:
        """Whether further records could be written now."""
        if self._file is None:
            return True
        try:
            _write(self._file, bytes(ROOM_BYTES))
            os.fdatasync(self._file.fileno())
        except OSError:
            return False
        finally:
            self._truncate()
        return True

    def reserve(self) -> None:
        """Reserve room for the records that `spend` is for, as far as there is any."""
        path = self._folder / _RESERVE
        with suppress(OSError):
            if not path.exists():
                path.write_bytes(bytes(ROOM_BYTES))

    def spend(self) -> bool:
        """Free the reserved room; False if there is none."""
        try:
            (self._folder / _RESERVE).unlink()
        except OSError:
            return False
        return True

    def sync(self) -> None:
        """Make all records durable.

        Raises:
            OSError: if they cannot be written.
        """
        if self._failure is not None:
            raise self._failure
        if self._unsynced and self._file is not None:
            os.fdatasync(self._file.fileno())
            self._unsynced.clear()

    def forget(self, number: int) -> None:
        """Remove the files whose records all precede a record."""
        while len(self._firsts) > 1 and self._firsts[1] <= number:
            self._path(self._firsts.pop(0)).unlink(missing_ok=True)

    def close(self) -> None:
        """Make all records durable and close the file."""
        if self._file is not None:
            try:
                if self._failure is None:
                    self.sync()
            finally:
                self._file.close()
                self._file = None

    # ------------------------------------------------------------ reading

    @property
    def first(self) -> int:
        """The number of the first available record."""
        return self._firsts[0] if self._firsts else self.next

    def read(self, number: int) -> Iterator[Record]:
        """The records from a number on, up to the current last one.

        Raises:
            StateError: if some of them are missing or damaged.
        """
        end = self.next
        if number < end and number < self.first:
            raise StateError(
                f"{self._folder}: the journal begins at record {self.first}, but {number} is needed"
            )
        for place, first in enumerate(self._firsts):
            after = self._firsts[place + 1] if place + 1 < len(self._firsts) else end
            if after <= number:
                continue
            at = first
            with open(self._path(first), "rb") as file:
                if file.read(len(MAGIC)) != MAGIC:
                    raise StateError(f"{self._path(first)} is not a journal of this version")
                for (says, body), _ in _records(file):
                    if at >= number and at < end:
                        yield Record(at, says, body)
                    at += 1
            if at < after:
                raise StateError(
                    f"{self._path(first)} is damaged: it ends at record {at} of {after}"
                )

    def snapshot(self) -> Iterator[Record]:
        """The records, for threads other than the engine's.

        Files that are removed meanwhile are ignored.
        """
        for first in list(self._firsts):
            with suppress(FileNotFoundError), open(self._path(first), "rb") as file:
                file.seek(len(MAGIC))
                for number, ((says, body), _) in enumerate(_records(file), first):
                    yield Record(number, says, body)


def _write(file: FileIO, data: bytes) -> None:
    """Write all of some bytes."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _records(file: IO[bytes]) -> Iterator[tuple[tuple[Mapping[str, Any], bytes], int]]:
    """The intact records of a file after its beginning, each with its size."""
    while True:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return
        text_size, body_size, checksum = _HEAD.unpack(head)
        if text_size + body_size > MAX_RECORD_BYTES:
            return
        text, body = file.read(text_size), file.read(body_size)
        whole = len(text) == text_size and len(body) == body_size
        if not whole or zlib.crc32(body, zlib.crc32(text)) != checksum:
            return
        yield (json.loads(text), body), _HEAD.size + text_size + body_size
