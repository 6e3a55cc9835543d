"""A checkpoint that a copy of the process writes while the run continues.

The process forks: the copy shares the memory, page by page, until one of the two changes it. So the
run pauses for the copy of the page tables (a few milliseconds for each 100 MB), however long it
takes to encode, write and sync the state. The copy writes a file under another name; this process
gives it the name of a checkpoint, so a copy that has lost its parent has no effect.

The copy has no other threads. It only reads the state, writes the file and exits, without running
any code that is registered for the exit of a process.

Only Linux is known to support that safely. Elsewhere the run makes its checkpoints itself.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from spaseq.errors import SpaseqError
from spaseq.records import dataclass

IS_SUPPORTED = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1
_MOST_BYTES = 1 << 16
"""The longest report of a copy."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a copy has written: a file of `size` bytes at `path`."""

    path: str
    size: int


class NotWritten(SpaseqError):
    """The file could not be written, for example because the disk is full."""


class Copy:
    """A forked copy of this process, which writes one file.

    Args:
        write: Called in the copy; returns what it has written.

    Raises:
        OSError: if the process cannot be copied.
    """

    def __init__(self, write: Callable[[], Written]):
        self.begun = time.monotonic()
        parent = os.getpid()
        control = ctypes.CDLL(None).prctl
        self._report, report = os.pipe()
        try:
            with warnings.catch_warnings():
                # Later versions of Python warn of threads, whose locks the copy never needs.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._pid = os.fork()
        except BaseException:
            os.close(self._report)
            os.close(report)
            raise
        if self._pid == 0:
            _write_and_exit(write, report, parent, control)
        os.close(report)

    def result(self) -> Written:
        """Wait for the copy to end, and return what it has written.

        Raises:
            NotWritten: if it could not write the file.
            SpaseqError: if it failed otherwise.
        """
        text = b""
        while part := os.read(self._report, _MOST_BYTES):
            text += part
        return self._ended(text)

    def _ended(self, text: bytes) -> Written:
        status = self._reap()
        if not text:
            raise NotWritten(f"the process that wrote it was ended by signal {status & 0x7F}")
        found = json.loads(text)
        if "path" in found:
            return Written(found["path"], found["size"])
        if found["is_system"]:
            raise NotWritten(found["error"])
        raise SpaseqError(found["error"])

    def cancel(self) -> None:
        """End the copy; `result` says so."""
        with suppress(ProcessLookupError):
            if self._pid:
                os.kill(self._pid, signal.SIGKILL)

    def _reap(self) -> int:
        pid, self._pid = self._pid, 0
        os.close(self._report)
        try:
            return os.waitpid(pid, 0)[1]
        except ChildProcessError:  # the embedding program reaps all of its child processes
            return 0


def _write_and_exit(
    write: Callable[[], Written], report: int, parent: int, control: Any
) -> NoReturn:
    """The work of the copy."""
    try:
        gc.disable()
        # The terminal and service managers send signals to all processes; the parent decides.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        control(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() == parent:
            os.write(report, json.dumps(_told(write)).encode()[:_MOST_BYTES])
    finally:
        os._exit(0)


def _told(write: Callable[[], Written]) -> dict[str, Any]:
    try:
        written = write()
    except (OSError, MemoryError) as error:
        return {"error": getattr(error, "strerror", None) or str(error) or "no memory",
                "is_system": True}  # fmt: skip
    except BaseException as error:
        kind = "" if isinstance(error, SpaseqError) else f"{type(error).__name__}: "
        return {"error": f"{kind}{error}"[:2000], "is_system": False}
    return {"path": written.path, "size": written.size}
