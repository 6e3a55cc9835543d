"""Files that grow, folders that fill, and pipes.

A followed file is identified by its device, inode and first bytes. A file that was renamed is
therefore read to its end before the new file with its name (rotation), and a file that became
shorter, or begins with other bytes, is read from its beginning (truncation). After a restart, the
file is searched for by its identity, also elsewhere in its folder, together with the files that
were rotated in the meantime.

In a folder, files are read in the order of their names. The last file may still grow, and ends when
a file with a later name appears.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from spaseq.errors import InputError, StateError
from spaseq.live.protocols import Chunk, Position

READ_BYTES = 3 << 19
HEAD_BYTES = 256
"""The first bytes that are part of a file's identity."""
LEAST_PAUSE, MOST_PAUSE = 0.002, 0.02
"""Seconds between two checks of a file without new bytes."""
CHECK_SECONDS = 0.1
"""Seconds between two checks of the name of a file without new bytes."""
IGNORED_ENDINGS = ("~", ".tmp", ".part", ".swp", ".crdownload")


class Names(Protocol):
    """The files of a source, in order."""

    rotates: bool
    """Whether another file may get the name of the last one."""

    def first(self) -> str | None:
        """The first file; None if there is none yet."""

    def after(self, path: str) -> str | None:
        """The file after another one; None if there is none yet."""


class Listed:
    """Files that are named individually; the last one grows."""

    rotates = True

    def __init__(self, paths: Sequence[str]):
        self._paths = list(paths)

    def first(self) -> str | None:
        return self._paths[0]

    def after(self, path: str) -> str | None:
        index = self._paths.index(path) + 1 if path in self._paths else len(self._paths)
        return self._paths[index] if index < len(self._paths) else None


class Folder:
    """The files of a folder whose names match a pattern, by name."""

    rotates = False

    def __init__(self, folder: str, pattern: str = "*"):
        self._folder = folder
        self._pattern = pattern

    def first(self) -> str | None:
        return min(self._paths(), default=None)

    def after(self, path: str) -> str | None:
        return min((other for other in self._paths() if other > path), default=None)

    def _paths(self) -> list[str]:
        with os.scandir(self._folder) as entries:
            return [
                os.path.join(self._folder, entry.name)
                for entry in entries
                if not entry.name.startswith(".")
                and not entry.name.endswith(IGNORED_ENDINGS)
                and fnmatch.fnmatchcase(entry.name, self._pattern)
                and entry.is_file()
            ]


class FollowedFiles:
    """A source of files, of which the last one grows.

    Args:
        names: The files.
        log: Reports what happens to the files.
        follows: Whether to wait for more; otherwise the source ends with the last file.
    """

    messages = False
    replays = True

    def __init__(self, names: Names, log: Callable[[str], None], follows: bool = True):
        self._names = names
        self._log = log
        self._follows = follows
        self._path: str | None = None
        self._name = ""
        """The name of the file in messages; a rotated file has another path."""
        self._file = -1
        self._offset = 0
        self._head = b""
        self._status: os.stat_result | None = None
        self._begins = False
        self._older: list[str] = []
        """Rotated files that are read before the file with the name."""
        self._pause = LEAST_PAUSE
        self._checked = 0.0
        self._waiting = False

    # ------------------------------------------------------------ positions

    def open(self, position: Position | None) -> None:
        if position is None:
            return
        self._path = position["path"]
        found = self._sought(position)
        if found is None:
            if not self._names.rotates and not os.path.exists(str(self._path)):
                self._log(f"{self._path} is gone; continuing with the file after it")
                return
            raise StateError(
                f"{self._path}: the file that the saved state has read to byte "
                f"{position['offset']} is gone, also from its folder: restore it, or begin with "
                "another state folder"
            )
        self._open(found, position["offset"])
        self._begins = False

    def _sought(self, position: Position) -> str | None:
        """The path of the file of a position; sets `_older` to the files rotated after it."""
        path = str(position["path"])
        if _is_file_of(path, position):
            return path
        if not self._names.rotates:
            return None
        rotated = [other for other in _rotated(path) if _is_file_of(other, position)]
        if not rotated:
            return None
        self._older = _newer(path, rotated[0])
        return rotated[0]

    def _position(self) -> dict[str, Any]:
        assert self._status is not None
        return {
            "path": self._path,
            "device": self._status.st_dev,
            "inode": self._status.st_ino,
            "head": self._head.hex(),
            "offset": self._offset,
        }

    # ------------------------------------------------------------ reading

    def poll(self, timeout: float) -> Sequence[Chunk] | None:
        deadline = time.monotonic() + timeout
        while True:
            if self._file < 0 and not self._next():
                if not self._follows and self._path is not None:
                    return None
                self._sleep(deadline)
            elif data := self._read():
                self._pause = LEAST_PAUSE
                return [self._chunk(data)]
            elif chunk := self._at_end():
                return [chunk]
            elif not self._follows and self._file < 0:
                return None
            else:
                self._sleep(deadline)
            if time.monotonic() >= deadline:
                return ()

    def _sleep(self, deadline: float) -> None:
        time.sleep(max(0.0, min(self._pause, deadline - time.monotonic())))
        self._pause = min(self._pause * 1.2, MOST_PAUSE)

    def _next(self) -> bool:
        """Open the next file, if there is one."""
        if self._older:
            self._open(self._older.pop(0), 0)
            return True
        path = self._names.first() if self._path is None else self._following()
        if path is None:
            return False
        try:
            self._open(path, 0)
        except FileNotFoundError:
            if not self._waiting:
                self._waiting = True
                self._log(f"waiting for {path}, which does not exist yet")
            return False
        self._path = path
        return True

    def _following(self) -> str | None:
        assert self._path is not None
        after = self._names.after(self._path)
        # Another file has taken the name of the last one.
        return self._path if after is None and self._names.rotates and self._follows else after

    def _open(self, path: str, offset: int) -> None:
        try:
            self._file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", path) from error
        self._name, self._offset, self._waiting = path, offset, False
        self._status = os.fstat(self._file)
        self._head = os.pread(self._file, HEAD_BYTES, 0)
        self._begins = True

    def _read(self) -> bytes:
        try:
            data = os.pread(self._file, READ_BYTES, self._offset)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", self._name) from error
        if data and len(self._head) < HEAD_BYTES:
            self._head = os.pread(self._file, HEAD_BYTES, 0)
        self._offset += len(data)
        return data

    def _chunk(self, data: bytes, ends: bool = False) -> Chunk:
        begins, self._begins = self._begins, False
        document = self._name if begins else None
        return Chunk(data, self._position(), document, self._path or "-", ends)

    def _at_end(self) -> Chunk | None:
        """Called after the last byte: the end of the file, if another file follows it."""
        now = time.monotonic()
        if self._follows and now - self._checked < CHECK_SECONDS:
            return None
        self._checked = now
        assert self._path is not None
        is_last = self._names.after(self._path) is None and not self._older
        if is_last and self._follows and not (self._names.rotates and self._is_replaced()):
            return None
        # Bytes written between the last read and the rotation.
        data = self._read()
        if data:
            return self._chunk(data)
        chunk = self._chunk(b"", ends=True)
        self._close()
        return chunk

    def _is_replaced(self) -> bool:
        """Whether the name now belongs to another file, or to other content."""
        status = self._status
        assert status is not None
        own = os.fstat(self._file)
        head = os.pread(self._file, len(self._head), 0)
        if own.st_size < self._offset or head != self._head:
            self._log(f"{self._path} was truncated; reading it from its beginning")
            self._offset = own.st_size
            return True
        try:
            named = os.stat(str(self._path))
        except FileNotFoundError:
            return False  # renamed, and the new file does not exist yet
        if (named.st_dev, named.st_ino) == (status.st_dev, status.st_ino):
            return False
        rotated = _rotated(str(self._path))
        own_path = next((path for path in rotated if os.path.samestat(os.stat(path), own)), None)
        if own_path is not None:
            self._older = _newer(str(self._path), own_path)
        return True

    def acknowledge(self, position: Position) -> None:
        """Do nothing, since files are not changed."""

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def close(self) -> None:
        self._close()


def _is_file_of(path: str, position: Position) -> bool:
    """Whether a path is the file of a position."""
    try:
        status = os.stat(path)
        if (status.st_dev, status.st_ino) != (position["device"], position["inode"]):
            return False
        head = bytes.fromhex(position["head"])
        with open(path, "rb") as file:
            return status.st_size >= position["offset"] and file.read(len(head)) == head
    except OSError:
        return False


def _rotated(path: str) -> list[str]:
    """The files beside a file whose names continue its name, such as `log.1`."""
    folder, name = os.path.split(path)
    try:
        others = os.listdir(folder or ".")
    except OSError:
        return []
    return [
        os.path.join(folder, other)
        for other in sorted(others)
        if other != name and other.startswith(name)
    ]


def _newer(path: str, own: str) -> list[str]:
    """The files that were rotated after `own`, the oldest first."""
    since = os.stat(own).st_mtime_ns
    found = []
    for other in _rotated(path):
        status = os.stat(other)
        if other != own and status.st_mtime_ns > since and stat.S_ISREG(status.st_mode):
            found.append((status.st_mtime_ns, other))
    return [other for _, other in sorted(found)]


class Pipe:
    """A source of bytes that another process writes: standard input, or a named pipe."""

    messages = False
    replays = False

    def __init__(self, path: str):
        self._path = path
        self._file = -1
        self._read = 0
        self._begun = False

    def open(self, position: Position | None) -> None:
        if self._path == "-":
            if sys.stdin is None:
                raise InputError("standard input is closed")
            self._file = sys.stdin.fileno()
            return
        try:
            self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", self._path) from error

    def poll(self, timeout: float) -> Sequence[Chunk] | None:
        ready, _, _ = select.select([self._file], [], [], timeout)
        if not ready:
            return ()
        try:
            data = os.read(self._file, 1 << 16)
        except OSError as error:
            if error.errno == errno.EAGAIN:
                return ()
            raise InputError(f"cannot be read: {error.strerror or error}", self._name) from error
        if not data:
            if not self._begun and self._path != "-":
                time.sleep(timeout)  # no process has opened the named pipe for writing yet
                return ()
            return None
        document = None if self._begun else self._name
        self._begun = True
        self._read += len(data)
        return [Chunk(data, {"offset": self._read}, document, self._path)]

    @property
    def _name(self) -> str:
        return "<stdin>" if self._path == "-" else self._path

    def acknowledge(self, position: Position) -> None:
        """Do nothing, since a pipe keeps nothing."""

    def close(self) -> None:
        if self._path != "-" and self._file >= 0:
            os.close(self._file)
