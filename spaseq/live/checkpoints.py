"""When checkpoints are made, and the order in which their parts become durable.

1. The sink flushes its output, and the positions of the sources are read.
2. A copy of the process (`spaseq.live.process_copy`) syncs the output, encodes the state of the run
   and writes it. The run continues meanwhile.
3. The written file becomes the checkpoint.
4. The sink commits its number, and the sources learn that they need not repeat what came before.

A sink that can discard output after a checkpoint continues to write during step 2. For other sinks,
such as transactions, matches are held back until step 4, up to `MAX_HELD_MATCHES`; then the run
waits.

If the file cannot be written, for example because the disk is full, the run reports that,
continues, and tries again. Only the last checkpoint of a run has to succeed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from spaseq.live.process_copy import IS_SUPPORTED, Copy, NotWritten, Written
from spaseq.live.protocols import ContinuousSink, Sink
from spaseq.live.state import StateFolder
from spaseq.results import Match

MAX_HELD_MATCHES = 10_000
"""The most matches that are held back while a checkpoint is written; then the run waits for it."""


class _Pending(threading.Thread):
    """A checkpoint that is being written: waits for the copy, and names its file."""

    def __init__(self, folder: StateFolder, number: int, positions: Mapping[str, Any], copy: Copy):
        super().__init__(name=f"checkpoint-{number}", daemon=True)
        self._folder = folder
        self.number = number
        self.positions = positions
        self.copy = copy
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Wait for the copy, and make its file the checkpoint."""
        try:
            self._folder.adopt(self.number, self.copy.result())
        except BaseException as error:
            self.failure = error


class Checkpoints:
    """Makes the checkpoints of one run. All calls come from the thread of the coordinator.

    Args:
        folder: The folder in which they are stored.
        sink: The sink of the run.
        save: Returns the saved state of the run.
        positions: Returns the positions of the sources.
        header: Returns the other fields of the header.
        acknowledge: Called with the positions of a checkpoint that is complete.
        number: The number of the last checkpoint; 0 if there is none.
        interval: The seconds between two checkpoints.
        log: Reports checkpoints that could not be written.
        in_copy: Whether a copy of the process writes them.
    """

    def __init__(
        self,
        folder: StateFolder,
        sink: Sink,
        save: Callable[[], bytes],
        positions: Callable[[], Mapping[str, Any]],
        header: Callable[[], Mapping[str, Any]],
        acknowledge: Callable[[Mapping[str, Any]], None],
        number: int,
        interval: float,
        log: Callable[[str], None],
        in_copy: bool = IS_SUPPORTED,
    ):
        self._folder = folder
        self._sink = sink
        self._is_continuous = isinstance(sink, ContinuousSink)
        self._save = save
        self._positions = positions
        self._header = header
        self._acknowledge = acknowledge
        self.interval = interval
        self._log = log
        self._in_copy = in_copy
        self._due = time.monotonic() + interval
        self._pending: _Pending | None = None
        self._held: list[Match | None] = []
        self.number = number
        self.made_at: float | None = None
        """The time at which the state of the last complete checkpoint was taken, on the monotonic
        clock."""
        self.failed = 0
        """The number of checkpoints that could not be written."""
        self.pause = self.longest_pause = 0.0
        """The seconds for which the last checkpoint, and the slowest one, stopped the run."""

    @property
    def size(self) -> int:
        """The size of the last checkpoint in bytes."""
        return self._folder.size

    @property
    def holds(self) -> bool:
        """Whether matches have to be held back by `hold`."""
        return self._pending is not None and not self._is_continuous

    @property
    def is_pending(self) -> bool:
        """Whether a checkpoint is being written."""
        return self._pending is not None

    def request(self) -> None:
        """Make the next checkpoint due now."""
        self._due = time.monotonic()

    def hold(self, match: Match | None) -> bool:
        """Hold back a match (None: the sink has a block to write); returns whether to go on so.

        May wait until the pending checkpoint is complete, which releases all matches.
        """
        self._held.append(match)
        if match is None or len(self._held) >= MAX_HELD_MATCHES:
            # Compiled code has formatted the matches of a block, so the sink already has them.
            self._complete(wait=True)
        return self.holds

    def turn(self, now: float) -> None:
        """Complete the pending checkpoint if it is written, and begin one that is due."""
        begun = time.monotonic()
        if self._pending is not None:
            self._complete(wait=False)
            if self._pending is None:
                self._count_pause(begun, more=True)
        elif now >= self._due:
            self._due = now + self.interval
            if self._in_copy:
                self._begin()
            else:
                self._make(must=False)
            self._count_pause(begun)

    def make_last(self) -> None:
        """End the pending checkpoint, unless it is written, and make the last one of the run.

        Raises:
            SpaseqError: if it cannot be written; the earlier ones are intact.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            # The state has changed since, so the copy's output is not needed.
            pending.copy.cancel()
            pending.join()
            if pending.failure is None:
                self._commit(pending.number, pending.positions, pending.copy.begun)
            self._release()
        self._make(must=True)

    def cancel(self) -> None:
        """End the copy of the process, if there is one."""
        if self._pending is not None:
            self._pending.copy.cancel()
            self._pending.join()
            self._pending = None

    # ------------------------------------------------------------ parts

    def _begin(self) -> None:
        sink, folder, number = self._sink, self._folder, self.number + 1
        token = sink.mark() if isinstance(sink, ContinuousSink) else sink.prepare()
        positions = self._positions()
        header = {**self._header(), "positions": positions, "token": token}

        def write() -> Written:
            folder.leave_lock()
            if isinstance(sink, ContinuousSink):
                sink.sync()
            return folder.write_aside(number, header, self._save())

        try:
            copy = Copy(write)
        except OSError as error:
            self._fail(f"the process cannot be copied: {error.strerror or error}")
            return
        self._pending = _Pending(folder, number, positions, copy)
        self._pending.start()

    def _complete(self, *, wait: bool) -> None:
        """Complete the pending checkpoint, if there is one and it is written."""
        pending = self._pending
        if pending is None or (pending.is_alive() and not wait):
            return
        pending.join()
        self._pending = None
        failure = pending.failure
        if failure is None:
            self._commit(pending.number, pending.positions, pending.copy.begun)
        elif isinstance(failure, NotWritten | OSError):
            reason = failure.strerror if isinstance(failure, OSError) else str(failure)
            self._fail(reason or str(failure))
            self._release()
        else:
            raise failure

    def _make(self, must: bool) -> None:
        """Make a checkpoint in this process now; `must`: an error ends the run."""
        begun = time.monotonic()
        token = self._sink.prepare()
        positions = self._positions()
        header = {**self._header(), "positions": positions, "token": token}
        number = self.number + 1
        try:
            written = self._folder.write_aside(number, header, self._save())
            self._folder.adopt(number, written)
        except OSError as error:
            reason = error.strerror or os.strerror(error.errno or 0)
            if must:
                raise self._folder.failed(number, reason) from error
            self._fail(reason)
            return
        self._commit(number, positions, begun)

    def _commit(self, number: int, positions: Mapping[str, Any], begun: float) -> None:
        self.number = number
        self._sink.commit(number)
        self._acknowledge(positions)
        self.made_at = begun
        self._release()

    def _release(self) -> None:
        """Write the matches that were held back."""
        held, self._held = self._held, []
        for match in held:
            if match is None:
                self._sink.write_block()
            else:
                self._sink.write(match)

    def _fail(self, reason: str) -> None:
        self.failed += 1
        self._log(f"{self._folder.failed(self.number + 1, reason)}; the run tries again")

    def _count_pause(self, begun: float, *, more: bool = False) -> None:
        seconds = time.monotonic() - begun
        self.pause = seconds + (self.pause if more else 0.0)
        self.longest_pause = max(self.longest_pause, self.pause)
