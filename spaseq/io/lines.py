"""Files, compressed or not, and standard input → numbered lines of bytes.

The first bytes tell whether a file is compressed (spaseq/rdf/compression.py). A read returns the
bytes that are available (`read1`), so a live pipe is read as it is written. Memory: one block.
Invariant: lines are numbered from 1 as an editor numbers them (\\n, \\r\\n and a lone \\r each end
a line), and a block is always whole lines. Every failure of the operating system or of the
decompressor is an `InputError`.
"""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, TypeAlias, cast

from spaseq.errors import InputError, InputUnit, SpaseqError
from spaseq.rdf.compression import Decompressed, decompressed, first_bytes

if TYPE_CHECKING:
    from spaseq.io.read_options import ReadOptions

STDIN = "-"
_BLOCK = 1 << 16
_FILE_BLOCK = 3 << 19
"""Bytes. Events of a batch share their terms, so larger blocks need fewer look-ups."""
HEAD_MAX_BYTES = 1 << 18
"""What is stored of the blank lines, comments and directives that begin a file."""
MAX_LINE_BYTES = 1 << 28
"""The longest line, and the longest statement of a document."""
_BOM = b"\xef\xbb\xbf"
_LINE = re.compile(rb"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]++")
_ANNOUNCEMENT = re.compile(rb"\s*(?:VERSION|@version)\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_PREAMBLE = re.compile(rb"\s*(?:@?prefix|@?base)\b", re.IGNORECASE)
_DELIMITER = re.compile(rb"\s*MESSAGE\s*(?:#.*)?", re.IGNORECASE)


Piece: TypeAlias = tuple[bytes, int, int]
"""(block, start, end): the whole lines block[start:end]."""


def shown_name(path: str) -> str:
    """The file as error messages name it."""
    if "://" in path:
        from spaseq.io.redirections import shown_url

        return shown_url(path)
    return "<stdin>" if path == STDIN else path


class Lines:
    """The lines of one file. `number` is the number of the last line returned.

    Args:
        path: the file; `-` is standard input. Its first bytes tell whether it is compressed.
        stream: an open file to read instead of the path.
        block: how many bytes of a regular file are read at once.

    Raises:
        InputError: for a file that cannot be opened, and for a compression without its package.
    """

    def __init__(self, path: str, stream: IO[bytes] | None = None, block: int | None = None):
        self.name = shown_name(path)
        self._path = path
        self.number = 0
        self.unit: InputUnit = "line"
        """The unit that `number` counts; readers of binary formats set a unit other than lines."""
        self._raw = self._open(path) if stream is None else stream
        self.is_live = not _is_regular(self._raw)
        """Whether a read may block until more is written."""
        try:
            self._file, self.compression = decompressed(self._raw, self.is_live)
        except (OSError, SpaseqError) as error:
            self.close()
            reason = getattr(error, "strerror", None) or error
            said = f"cannot be read: {reason}" if isinstance(error, OSError) else str(error)
            raise InputError(said, path) from error
        self.options: ReadOptions | None = None
        """The options of the source, for readers that need one."""
        self._ahead: deque[bytes] = deque()
        self._split, self._split_at = b"", 0
        """Lines that were read together, and where those begin that have not been returned."""
        """Lines that one read of the file returned together."""
        self._fresh = True
        self.block = _BLOCK if self.is_live else block or _FILE_BLOCK
        """The bytes that are read at once."""
        self._next_size = 0
        """The size of the next read, if it differs."""
        self._line_bytes = 0
        """The bytes of the beginning of a line whose end has not been read."""
        self._rest: list[bytes] = []
        """The beginning of a line that `pieces` has not returned."""
        self._is_given = stream is not None
        self.reached: int | None = None
        """The position if other code reads the file: the number of bytes that it has read."""

    def _open(self, path: str) -> IO[bytes]:
        if path == STDIN:
            if sys.stdin is None:
                raise InputError("standard input is closed")
            return sys.stdin.buffer
        if "://" in path:
            from spaseq.io.remote_files import is_remote_file, open_remote

            if is_remote_file(path):
                return open_remote(path)
        try:
            return open(path, "rb")
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", path) from error

    def close(self) -> None:
        file = getattr(self, "_file", None)
        if isinstance(file, Decompressed):
            file.stop()
        if sys.stdin is None or self._raw is not sys.stdin.buffer:
            self._raw.close()

    @property
    def is_standard(self) -> bool:
        """Whether it is standard input."""
        return self._path == STDIN

    def base(self) -> str | None:
        """The base IRI of the file: its own IRI. A pipe has none."""
        if self.is_standard:
            return None
        if _has_end(self._raw):
            return self._path.partition("?")[0]
        from pathlib import Path

        return Path(self._path).absolute().as_uri()

    def position(self) -> int:
        """How many bytes of the file have been read, before decompression."""
        if self.reached is not None:
            return self.reached
        try:
            return (self._file if isinstance(self._file, Decompressed) else self._raw).tell()
        except (OSError, ValueError):
            return 0

    def is_last(self, files: Sequence[str]) -> bool:
        """Whether the file is the last one of a list of paths."""
        return self._path == files[-1]

    def is_nearly_read(self) -> bool:
        """Whether at most little more than a block of a regular file is left to read."""
        block = self.block // 8 if self.compression else self.block
        try:
            return os.fstat(self._raw.fileno()).st_size - self._raw.tell() <= block
        except (OSError, ValueError):
            return False

    def is_divisible(self) -> bool:
        """Whether threads can read parts of the file: a regular one that is not compressed."""
        return (
            hasattr(os, "pread")
            and isinstance(getattr(self._raw, "raw", None), io.FileIO)
            and not (self._is_given or self.is_live or self.compression)
        )

    def size(self) -> int:
        """The current size of a divisible file."""
        return os.fstat(self._raw.fileno()).st_size

    def part(self, offset: int, size: int) -> bytes:
        """Some bytes of a divisible file; fewer at its end. Threads may call it."""
        return os.pread(self._raw.fileno(), size, offset)

    def unfinished(self) -> int:
        """The bytes before the current position that `pieces` has not returned."""
        return sum(map(len, self._rest))

    def resume(self, start: int, end: int) -> None:
        """Let `pieces` of a divisible file continue at `start`, with a read that ends at `end`."""
        self._raw.seek(start)
        self._rest = []
        self._next_size = end - start
        self.reached = None

    def read_ahead(self) -> None:
        """Decompress ahead of the reads that follow, in a thread that `close` ends."""
        if isinstance(self._file, Decompressed):
            self._file.read_ahead()

    def start(self, size: int) -> bytes:
        """The first bytes of the content, at most `size`, which are read again by all readers.

        A pipe may return fewer.
        """
        try:
            return first_bytes(self._file, size)[:size].removeprefix(_BOM)
        except OSError as error:
            raise self._failed(error) from error

    def head(self) -> list[bytes]:
        """The lines up to the first that is neither blank, comment nor a directive.

        Only those in the first `HEAD_MAX_BYTES` are looked at. `blocks`, `pieces` and `readline`
        return them again.
        """
        if not self._ahead:
            size = 0
            while size < HEAD_MAX_BYTES and (line := self._read_line()):
                self._ahead.append(line)
                size += len(line)
                text = line.strip()
                if text and not text.startswith(b"#") and not _is_preamble(text):
                    break
        return list(self._ahead)

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """(number of the first line, whole lines) of each block, as soon as it is read."""
        ahead = self._taken_ahead()
        if ahead:
            yield self._numbered(ahead)
        rest: list[bytes] = []
        while data := self._read_block():
            cut = data.rfind(b"\n") + 1
            if cut:
                yield self._numbered(b"".join((*rest, data[:cut])))
                rest = []
            rest.append(data[cut:])
            self._check_line(rest)
        if any(rest):
            yield self._numbered(b"".join(rest))

    def pieces(self, most: int | None = None) -> Iterator[list[Piece]]:
        """Unchanged whole lines of the file, as soon as they are read, without counting them.

        A line that two reads share is a separate piece, so blocks are not copied. A read has at
        most `most` bytes.
        """
        self.block = min(self.block, most or self.block)
        ahead = self._taken_ahead()
        if ahead:
            yield [(ahead, 0, len(ahead))]
        if type(self._file) is io.BytesIO:
            yield from self._slices(self._file)
            return
        while data := self._read_block():
            rest = self._rest
            cut = data.rfind(b"\n") + 1
            if not cut:
                rest.append(data)
                self._check_line(rest)
                continue
            start = data.find(b"\n") + 1 if any(rest) else 0
            parts = [(data, start, cut)] if start < cut else []
            if start:
                line = b"".join((*rest, data[:start]))
                parts.insert(0, (line, 0, len(line)))
            self._rest = [data[cut:]]
            yield parts
        if any(self._rest):
            line = b"".join(self._rest)
            yield [(line, 0, len(line))]

    def _check_line(self, parts: list[bytes]) -> None:
        """Raise an error if the beginning of a line is too long.

        A compressed file of 1 MB can have a line of 1 GB. Cost: linear in the reads of the line.
        """
        self._line_bytes = len(parts[-1]) + (self._line_bytes if len(parts) > 1 else 0)
        if self._line_bytes > MAX_LINE_BYTES:
            raise InputError(
                f"a line of more than {MAX_LINE_BYTES >> 20} MiB", self.name, self.number + 1
            )

    def _taken_ahead(self) -> bytes:
        """The lines that have been read and not been returned."""
        ahead = b"".join((*self._ahead, self._split[self._split_at :]))
        self._ahead.clear()
        self._split, self._split_at = b"", 0
        return ahead

    def _slices(self, file: io.BytesIO) -> Iterator[list[Piece]]:
        """The pieces of a file in memory, which are not copied."""
        data, start = file.getvalue(), file.tell()
        if self._fresh and data.startswith(_BOM, start):
            start += len(_BOM)
        self._fresh = False
        while start < len(data):
            end = start + self.block
            cut = data.rfind(b"\n", start, end) + 1 or data.find(b"\n", end) + 1 or len(data)
            file.seek(cut)
            yield [(data, start, cut)]
            start = cut

    def readline(self) -> bytes:
        """The next line with its end; empty at the end of the file."""
        line = self._ahead.popleft() if self._ahead else self._read_line()
        if line:
            self.number += 1
        return line

    def read(self, size: int) -> bytes:
        """`size` bytes of a binary format, fewer only at the end of the file."""
        try:
            return self._file.read(size)
        except OSError as error:
            raise self._failed(error) from error

    def read_block(self) -> bytes:
        """Some bytes of a binary format, as soon as they are read; none at the end."""
        return self._read_block()

    def _numbered(self, block: bytes) -> tuple[int, bytes]:
        block = normalised(block)
        first = self.number + 1
        self.number += block.count(b"\n") + (not block.endswith(b"\n"))
        return first, block

    def _read_line(self) -> bytes:
        if split := _LINE.match(self._split, self._split_at):
            self._split_at = split.end()
            return split[0]
        try:
            line = self._file.readline(MAX_LINE_BYTES + 1)
        except OSError as error:
            raise self._failed(error) from error
        if len(line) > MAX_LINE_BYTES:
            self._line_bytes = 0
            self._check_line([line])
        line = self._without_mark(line)
        if b"\r" in line and line.count(b"\r") > line.count(b"\r\n"):
            # A lone \r ends a line.
            self._split, self._split_at = line, 0
            return self._read_line()
        return line

    def _read_block(self) -> bytes:
        size, self._next_size = self._next_size or self.block, 0
        try:
            # Every file here is buffered or decompressed, and those have read1.
            data = self._file.read1(size)  # type: ignore[union-attr]
        except OSError as error:
            raise self._failed(error) from error
        return self._without_mark(cast(bytes, data))

    def _without_mark(self, data: bytes) -> bytes:
        if self._fresh:
            self._fresh = False
            return data.removeprefix(_BOM)
        return data

    def _failed(self, error: Exception) -> InputError:
        reason = getattr(error, "strerror", None) or error
        return InputError(f"cannot be read: {reason}", self.name, self.number or None, self.unit)


def _has_end(file: IO[bytes]) -> bool:
    """Whether this is a finished file by URL."""
    return isinstance(file, io.BufferedReader) and getattr(file, "is_finished", False)


def _is_regular(file: IO[bytes]) -> bool:
    if isinstance(file, io.BytesIO) or _has_end(file):
        return True
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (AttributeError, OSError, io.UnsupportedOperation):
        return False


def normalised(block: bytes) -> bytes:
    """Whole lines with each line end replaced by a line feed."""
    if b"\r" in block:
        return block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return block


def _is_preamble(text: bytes) -> bool:
    return any(form.match(text) for form in (_PREAMBLE, _ANNOUNCEMENT)) or (
        _DELIMITER.fullmatch(text) is not None
    )


def announces_messages(head: Iterable[bytes]) -> bool:
    """Whether the head of a file announces a version label that ends in `-messages`."""
    return any(
        (found[1] or found[2]).endswith(b"-messages")
        for found in map(_ANNOUNCEMENT.match, head)
        if found is not None and (found[1] or found[2])
    )
