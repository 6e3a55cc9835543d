"""The state folder: checkpoints that survive a crash, and a lock.

A checkpoint is a file: `MAGIC`; the version of the format (2 bytes, big-endian, as all numbers
here); the size of the header (8); the header, which is JSON; the saved state of the run
(`spaseq.engine.envelope`); BLAKE2b-128 of all that (16). It is written under another name, synced
and renamed, so a checkpoint exists as a whole or not at all. A copy of the process may write it
(`spaseq.live.process_copy`); the process that holds the lock renames it. The last two checkpoints
are kept, because a sink may be one behind. A damaged checkpoint is reported, and the previous one
is used.

The header describes what the checkpoint belongs to: the queries, the sources and the options that
determine the events.
"""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import IO, Any

from spaseq.errors import SpaseqError, StateError
from spaseq.live.process_copy import Written
from spaseq.records import dataclass

MAGIC = b"spaseq-checkpoint\0"
VERSION = 1
KEPT = 2
"""The number of checkpoints that are kept."""
_DIGEST = 16
_LOCK_ATTEMPTS = 10
_ASIDE = ".new"
"""The suffix of the names of unfinished files."""
_HEAD = len(MAGIC) + 2 + 8
_NAME = re.compile(r"checkpoint-([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A stored checkpoint."""

    number: int
    header: Mapping[str, Any]
    run: bytes
    """The state that `Run.save` returned."""


class StateFolder:
    """An open, locked state folder.

    Args:
        path: The folder, which is created if it does not exist.
        log: Reports damaged checkpoints.

    Raises:
        SpaseqError: if the folder cannot be used, or another process uses it.
        StateError: if no checkpoint is intact, although there are some.
    """

    def __init__(self, path: str, log: Callable[[str], None]):
        self.path = path
        self._log = log
        try:
            os.makedirs(path, exist_ok=True)
            self._lock = self._locked()
            self._clear()
            self.identifier = self._identified()
        except OSError as error:
            raise SpaseqError(
                f"--state {path}: cannot be used: {error.strerror or error}"
            ) from error
        self.size = 0
        """The size in bytes of the last checkpoint."""

    def _locked(self) -> IO[str]:
        """The lock, which the operating system releases when the process ends."""
        import fcntl

        lock = open(os.path.join(self.path, "lock"), "a+", encoding="utf-8")  # noqa: SIM115
        # A copy of a process that was just killed may hold the lock for some milliseconds.
        for attempt in range(_LOCK_ATTEMPTS):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if attempt < _LOCK_ATTEMPTS - 1:
                    time.sleep(0.05)
        else:
            lock.seek(0)
            owner = lock.read().strip() or "unknown"
            lock.close()
            raise SpaseqError(
                f"--state {self.path}: another run uses this folder (process {owner})"
            )
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        return lock

    def _identified(self) -> str:
        """The identifier of the folder, for sinks that several folders may share."""
        name = os.path.join(self.path, "identifier")
        try:
            with open(name, encoding="ascii") as file:
                found = file.read().strip()
            if found:
                return found
        except FileNotFoundError:
            pass
        made = uuid.uuid4().hex
        self._write_synced("identifier", made.encode())
        return made

    # ------------------------------------------------------------ reading

    def checkpoints(self) -> list[Checkpoint]:
        """The intact checkpoints, the newest first.

        Raises:
            StateError: if there are checkpoints, but none is intact.
        """
        numbers = self._numbers()
        found = []
        for number in numbers:
            try:
                found.append(self._read(number))
            except (StateError, OSError) as error:
                self._log(f"--state {self.path}: checkpoint {number} is skipped: {error}")
        if numbers and not found:
            raise StateError(
                f"--state {self.path}: no checkpoint is intact; remove the folder to begin anew"
            )
        return found

    def _numbers(self) -> list[int]:
        names = [_NAME.fullmatch(name) for name in os.listdir(self.path)]
        return sorted((int(found[1]) for found in names if found), reverse=True)

    def _read(self, number: int) -> Checkpoint:
        with open(self._path(number), "rb") as file:
            data = file.read()
        if data[: len(MAGIC)] != MAGIC:
            raise StateError("it is not a checkpoint")
        version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 2], "big")
        if version != VERSION:
            raise StateError(f"it has format version {version}, this spaseq reads {VERSION}")
        if len(data) < _HEAD + _DIGEST or _digest(data[:-_DIGEST]) != data[-_DIGEST:]:
            raise StateError("it is damaged: cut off, or its bytes have changed")
        size = int.from_bytes(data[len(MAGIC) + 2 : _HEAD], "big")
        try:
            header = json.loads(data[_HEAD : _HEAD + size])
        except ValueError as error:
            raise StateError(f"it is damaged: {error}") from error
        if not isinstance(header, dict) or header.get("number") != number:
            raise StateError("it is damaged: its number is another one")
        return Checkpoint(number, header, data[_HEAD + size : -_DIGEST])

    # ------------------------------------------------------------ writing

    def store(self, number: int, header: Mapping[str, Any], run: bytes) -> None:
        """Store a checkpoint, and remove those that are not kept.

        Raises:
            SpaseqError: if it cannot be written; the earlier checkpoints are intact.
        """
        try:
            self.adopt(number, self.write_aside(number, header, run))
        except OSError as error:
            raise self.failed(number, error.strerror or str(error)) from error

    def failed(self, number: int, reason: str) -> SpaseqError:
        """The error for a checkpoint that cannot be written."""
        return SpaseqError(f"--state {self.path}: checkpoint {number} cannot be written: {reason}")

    def write_aside(self, number: int, header: Mapping[str, Any], run: bytes) -> Written:
        """Write and sync the file of a checkpoint under a temporary name.

        Raises:
            OSError: if it cannot be written; nothing remains.
        """
        text = json.dumps({"number": number, "written": time.time(), **header}).encode()
        size = len(text).to_bytes(8, "big")
        parts = (MAGIC, VERSION.to_bytes(2, "big"), size, text, run)
        digest = blake2b(digest_size=_DIGEST)
        for part in parts:
            digest.update(part)
        path = f"{self._path(number)}.{os.getpid()}{_ASIDE}"
        try:
            with open(path, "wb") as file:
                for part in (*parts, digest.digest()):
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                os.unlink(path)
            raise
        return Written(path, sum(map(len, parts)) + _DIGEST)

    def adopt(self, number: int, written: Written) -> None:
        """Make a written file a checkpoint, and remove those that are not kept.

        Raises:
            OSError: if it cannot be renamed.
        """
        os.replace(written.path, self._path(number))
        self._sync_folder()
        self.size = written.size
        for other in self._numbers()[KEPT:]:
            self._remove(other)

    def leave_lock(self) -> None:
        """In a copy of the process: release the lock, so that it ends with the other process."""
        os.close(self._lock.fileno())

    def discard_after(self, number: int) -> None:
        """Remove the checkpoints after one that is resumed."""
        for other in self._numbers():
            if other > number:
                self._remove(other)

    def _write_synced(self, name: str, data: bytes) -> None:
        path = os.path.join(self.path, name)
        with open(path + _ASIDE, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + _ASIDE, path)
        self._sync_folder()

    def _sync_folder(self) -> None:
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _clear(self) -> None:
        """Remove unfinished files of processes that were killed."""
        for name in os.listdir(self.path):
            if name.endswith(_ASIDE):
                os.unlink(os.path.join(self.path, name))

    def _path(self, number: int) -> str:
        return os.path.join(self.path, f"checkpoint-{number}")

    def _remove(self, number: int) -> None:
        os.unlink(self._path(number))

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST).digest()
