"""Matches → a file or standard output, in one of the formats of `spaseq.io.formats.SINKS`.

A sink is opened with the shapes of the results and closed after a failure too, so that documents
are complete and buffers empty. Under `live` every match is flushed. A failed write raises an
`OSError` that names the file; a closed pipe raises a `BrokenPipeError`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TextIO

from spaseq.errors import SpaseqError
from spaseq.io.formats import Shape, Writer, sink_format
from spaseq.results import Match

STDOUT = "standard output"


class JsonLines:
    """One object per line."""

    def __init__(self, out: TextIO):
        self._out = out

    def write(self, match: Match) -> None:
        self._out.write(match.to_json() + "\n")

    def close(self) -> None:
        """Nothing follows the last line."""


class Sink:
    """A writer over an open file; a context manager."""

    def __init__(self, writer: Writer, out: TextIO, live: bool, path: str | None):
        self._writer = writer
        self._out = out
        self._live = live
        self._standard = path is None
        self._name = path or STDOUT
        self._failed = False
        self.written = 0

    def write(self, match: Match) -> None:
        with self._naming():
            self._writer.write(match)
            self.written += 1
            if self._live:
                self._out.flush()

    def close(self) -> None:
        """Complete the document and close the file; standard output stays open."""
        with self._naming():
            try:
                if not self._failed:
                    self._writer.close()
                    self._out.flush()
            finally:
                if not self._standard:
                    self._out.close()
                elif isinstance(self._out, io.TextIOWrapper) and self._out is not sys.stdout:
                    self._out.detach()

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Add the name of the file to failures of the operating system."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            self._failed = True
            raise unwritable(self._name, error) from error

    def __enter__(self) -> Sink:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, BrokenPipeError):
            self.close()


def unwritable(name: str, error: OSError) -> OSError:
    """The failure with the name of the file that cannot be written."""
    return OSError(error.errno, f"cannot be written: {error.strerror or error}", name)


def open_sink(
    format: str, shapes: Sequence[Shape], path: str | None = None, live: bool = False
) -> Sink:
    """A sink over a file, or over standard output if there is no path.

    `format` is a name in `spaseq.io.formats.SINKS`. With `live`, every match is flushed.

    Raises:
        SpaseqError: for an unknown format, one that cannot hold results of these shapes, and a
            file that cannot be opened.
    """
    known = sink_format(format, shapes)
    if path is None:
        if sys.stdout is None:
            raise SpaseqError(f"{STDOUT} is closed")
        out: TextIO = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="")
    else:
        try:
            out = open(path, "w", encoding="utf-8", newline="")  # noqa: SIM115 (closed by the sink)
        except OSError as error:
            raise SpaseqError(f"{path}: cannot be written: {error.strerror or error}") from error
    return Sink(known.open(out, shapes), out, live, path)
