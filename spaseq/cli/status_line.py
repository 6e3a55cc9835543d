"""A line at the bottom of a terminal that is rewritten in place, below the rows of the output.

Standard output and standard error are often one terminal. The line is erased before rows or
messages are written, and drawn again after whole rows only, so that neither disturbs the other.
"""

from __future__ import annotations

import io
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, TextIO

if TYPE_CHECKING:
    from typing_extensions import Buffer

REDRAW_SECONDS = 0.1
"""The least time between two drawings."""
_ERASE = "\r\x1b[K"

_shown: StatusLine | None = None


class StatusLine:
    """The line of this process.

    Args:
        terminal: Standard error.
        output: What is written above the line, if that is a terminal, too.
    """

    def __init__(self, terminal: TextIO, output: OutputAbove | None = None):
        self._terminal, self._output = terminal, output
        self._is_drawn = False
        self._due = 0.0

    def show(self, text: str) -> None:
        """Draw a text in place of the previous one, but not in the midst of a row."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + REDRAW_SECONDS
        if self._output is not None:
            self._output.flush()
            if not self._output.ends_line:
                return
        room = shutil.get_terminal_size().columns - 1
        self._terminal.write(_ERASE + text[:room])
        self._terminal.flush()
        self._is_drawn = True

    def hide(self) -> None:
        """Erase the line, so that something else can be written."""
        if self._is_drawn:
            self._is_drawn = False
            self._terminal.write(_ERASE)
            self._terminal.flush()


class OutputAbove(io.BufferedIOBase):
    """Standard output as bytes; the line is erased before they are written."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self.line: StatusLine | None = None
        self.ends_line = True

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        if self.line is not None:
            self.line.hide()
        written = self._file.write(data)
        if written:
            self.ends_line = bytes(memoryview(data).cast("B")[-1:]) == b"\n"
        return written

    def flush(self) -> None:
        self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()


@contextmanager
def status_line(wanted: bool) -> Iterator[None]:
    """Have a line while a command runs, if it is wanted and standard error is a terminal."""
    global _shown
    errors, output = sys.stderr, sys.stdout
    if not wanted or errors is None or not errors.isatty():
        yield
        return
    above = None
    if output is not None and output.isatty() and hasattr(output, "buffer"):
        output.flush()
        above = OutputAbove(output.buffer)
        sys.stdout = io.TextIOWrapper(above, "utf-8", newline="\n", write_through=True)
    _shown = StatusLine(errors, above)
    if above is not None:
        above.line = _shown
    try:
        yield
    finally:
        _shown.hide()
        _shown = None
        if above is not None:
            sys.stdout.flush()
            sys.stdout = output


def shown_line() -> StatusLine | None:
    """The line of this process, if it has one."""
    return _shown


def hide_line() -> None:
    """Erase the line, if there is one, before a message."""
    if _shown is not None:
        _shown.hide()
