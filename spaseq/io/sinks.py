"""Matches → a file or standard output, in one of the formats of `spaseq.io.formats.SINKS`.

A sink is opened with the shapes of the results and closed after a failure too, so that documents
are complete and buffers empty. Under `live` every match is flushed, at the latest by `write_block`.
A failed write raises an `OSError` that names the file; a closed pipe raises a `BrokenPipeError`.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import BinaryIO, TextIO

from spaseq.engine.evaluation import Evaluation
from spaseq.engine.native.query_run import NativeRun
from spaseq.errors import SpaseqError
from spaseq.io.formats import Columnar, Holding, Joining, Shape, Writer, sink_format
from spaseq.io.native._match_blocks import Block, BlockMaker, JsonLinesMaker
from spaseq.results import Match

STDOUT = "standard output"


class JsonLines:
    """One object per line."""

    maker = JsonLinesMaker

    def __init__(self, out: TextIO):
        self._out = out

    def write(self, match: Match) -> None:
        self._out.write(match.to_json() + "\n")

    def close(self) -> None:
        """Nothing follows the last line."""


class Sink:
    """A writer over an open file; a context manager.

    Under `format_natively` the matches of a run are formatted in blocks by compiled code
    (spaseq/io/native/match_blocks/match_blocks.pxi), and `write_block` writes what has been
    formatted.
    """

    def __init__(
        self, writer: Writer, out: TextIO | BinaryIO, file: BinaryIO, live: bool, path: str | None
    ):
        self._writer = writer
        self._out = out
        """The file that the writer writes to: `file`, or a text layer above it."""
        self._file = file
        self._live = live
        self._standard = path is None
        self._name = path or STDOUT
        self._failed = False
        self._block: Block | None = None
        self._has_rows = False
        """Whether the core makes rows of columns for the writer."""
        self.written = 0
        # Checked once, because `isinstance` of a protocol is slow.
        self._joined = writer.joined if isinstance(writer, Joining) else None
        self._holds = isinstance(writer, Holding)

    def format_natively(self, run: Evaluation, most: int | None = None) -> None:
        """Let compiled code format the matches of a run; call it before the first event.

        The iterators over the matches then return None when `write_block` is due. The caller also
        calls it after each batch of events. Matches that the core does not make one by one are
        still written from objects. Nothing changes if the format has no compiled writer.

        Args:
            run: The run, whose matches this sink alone writes.
            most: The number of matches to write.
        """
        if isinstance(self._writer, Columnar):
            alone = all(map(run.single, run.listed.program.streams))
            self._has_rows = most is None and alone and self._writer.attach(run.queries)
            return
        kind: type[BlockMaker] | None = getattr(self._writer, "maker", None)
        if kind is None:
            return
        block, names = Block(most), getattr(self._writer, "names", None)

        def made(
            native: NativeRun, query: str, columns: Sequence[str] | None = None
        ) -> BlockMaker | None:
            maker = native.made_by(kind, query, columns)
            if maker is not None:
                maker.begin(block, names)
            return maker

        if run.format_with(block, made):
            self._block = block

    @property
    def joins_parts(self) -> bool:
        """Whether matches can be formatted before it is known which ones precede them."""
        return not isinstance(self._writer, Columnar) and not hasattr(self._writer, "names")

    def format_parts(
        self, runs: Sequence[Evaluation], most: int | None
    ) -> tuple[Block | None, Sequence[Block | None]]:
        """Like `format_natively`, for runs in separate threads.

        Returns:
            The block that the caller appends the matches to, in their order, and the block that
            the makers of each run write to. None if the matches are objects.
        """
        kind: type[BlockMaker] | None = getattr(self._writer, "maker", None)
        if kind is None:
            return None, [None] * len(runs)
        blocks = [self._format_part(run, kind) for run in runs]
        self._block = Block(most)
        return self._block, blocks

    def _format_part(self, run: Evaluation, kind: type[BlockMaker]) -> Block:
        block = Block(None)
        block.each = True

        def made(
            native: NativeRun, query: str, columns: Sequence[str] | None = None
        ) -> BlockMaker | None:
            maker = native.made_by(kind, query, columns)
            if maker is not None:
                maker.begin(block, None)
            return maker

        assert run.format_with(block, made), "each match of a divided query has a maker"
        return block

    def write(self, match: Match) -> None:
        """Write one match after the formatted ones, unless these already reach the limit."""
        try:
            self._write_formatted()
            if self._block is not None and not self._block.count_object():
                return
            self._writer.write(match)
            self.written += 1
            if self._live and not self._holds:
                self._out.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._named(error) from error

    def write_block(self) -> None:
        """Write the matches that compiled code has formatted, or that a live writer holds."""
        holding = self._live and self._holds
        if not (holding or self._has_rows) and (self._block is None or not self._block.rows):
            return
        try:
            self._write_formatted(self._live)
            if holding and isinstance(self._writer, Holding):
                self._writer.flush()
            if self._live:
                self._out.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._named(error) from error

    def flushed(self) -> int:
        """Pass all matches to the operating system. Returns the length of the file in bytes."""
        try:
            self._write_formatted()
            self._out.flush()
            self._file.flush()
            return self._file.tell()
        except OSError as error:
            raise self._named(error) from error

    def sync(self) -> None:
        """Write to the disk what `flushed` has passed on."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._named(error) from error

    def _write_formatted(self, whole: bool = True) -> None:
        """Write what compiled code has made; rows of columns only if there are many, or `whole`."""
        if self._has_rows and isinstance(self._writer, Columnar):
            self.written += self._writer.write_rows(whole)
        elif self._block is not None and self._block.rows:
            rows, data = self._block.rows, self._block.view()
            if self._joined is not None:
                data = self._joined(data, rows)
            # The file has copied the bytes when `write` returns.
            self._file.write(data)
            self._block.clear()
            self.written += rows

    def close(self) -> None:
        """Complete the document and close the file; standard output stays open."""
        try:
            try:
                if not self._failed:
                    self._write_formatted()
                    self._writer.close()
                    self._out.flush()
            finally:
                if not self._standard:
                    self._out.close()
                elif isinstance(self._out, io.TextIOWrapper) and self._out is not sys.stdout:
                    self._out.detach()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._named(error) from error

    def _named(self, error: OSError) -> OSError:
        """A failure of the operating system with the name of the file."""
        self._failed = True
        return unwritable(self._name, error)

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


def _created(path: str) -> BinaryIO:
    if "://" in path:
        from spaseq.io.remote_files import create_remote, is_remote_file

        if is_remote_file(path):
            return create_remote(path)
    try:
        return open(path, "wb")
    except OSError as error:
        raise SpaseqError(f"{path}: cannot be written: {error.strerror or error}") from error


def open_sink(
    format: str, shapes: Sequence[Shape], path: str | None = None, live: bool = False
) -> Sink:
    """A sink over a file, or over standard output if there is no path.

    `format` is a name in `spaseq.io.formats.SINKS`. With `live`, matches are flushed at once.

    Raises:
        SpaseqError: for an unknown format, one that cannot hold results of these shapes, and a
            file that cannot be opened.
    """
    known = sink_format(format, shapes)
    if path is None:
        if sys.stdout is None:
            raise SpaseqError(f"{STDOUT} is closed")
        file: BinaryIO = sys.stdout.buffer
    else:
        file = _created(path)
    out: TextIO | BinaryIO = file
    if not known.binary:
        # Blocks are written to the file itself, so the text layer must not buffer text.
        out = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = known.open(out, shapes)
    if live:
        file.flush()  # a header need not wait for the first match
    return Sink(writer, out, file, live, path)
