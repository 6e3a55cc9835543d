"""Compressed files, recognised by their first bytes: one entry of `COMPRESSIONS` each.

`Decompressed` reads a file of one or several members, of which each may end anywhere in a block.
It reads 256 KiB of the compressed file at a time, so the cost is that of the decompressor. A
separate thread may decompress ahead of the reader (`Decompressed.read_ahead`). An implementation is
imported when a file needs it; zstd needs Python 3.14 or the package backports.zstd.

Source: RFC 1952 (gzip, section 2.2 on members), RFC 8878 (Zstandard, section 3 on frames).
"""

from __future__ import annotations

import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Protocol

from spaseq.errors import SpaseqError
from spaseq.rdf.ahead import Ahead, Lane
from spaseq.records import dataclass

_READ_BYTES = 1 << 18
_XZ_MAX_BYTES = 1 << 28
"""The memory for a dictionary of xz; a file can claim 4 GiB, `xz -9` needs 65 MiB."""
_LIVE_BYTES = 1 << 16
_AHEAD_BYTES = 3 << 19
"""The most bytes of a part that is decompressed ahead: a block of the readers."""
_MOST_BYTES = 1 << 21
"""The most bytes that one call of a decompressor returns, unless a caller asks for more."""


class Decompressor(Protocol):
    """A decompressor of one member, as in the modules bz2, lzma and compression.zstd."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class DecompressionError(OSError):
    """A compressed file is damaged or ends early."""


@dataclass(frozen=True, slots=True)
class Compression:
    """One kind of compressed file."""

    name: str
    extensions: tuple[str, ...]
    magic: re.Pattern[bytes]
    """The first bytes of every member."""
    open: Callable[[], tuple[Callable[[], Decompressor], type[Exception]]]
    """Imports the implementation: what makes a decompressor, and the exception it raises."""
    padding: bytes = b""
    """A byte that may be repeated after the last member."""


class _GzipMember:
    """One member of a gzip file."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max(max_length, 0))


def _gzip() -> tuple[Callable[[], Decompressor], type[Exception]]:
    return _GzipMember, zlib.error


def _bzip2() -> tuple[Callable[[], Decompressor], type[Exception]]:
    import bz2

    return bz2.BZ2Decompressor, OSError


def _xz() -> tuple[Callable[[], Decompressor], type[Exception]]:
    import lzma

    return lambda: lzma.LZMADecompressor(memlimit=_XZ_MAX_BYTES), lzma.LZMAError


def _zstd() -> tuple[Callable[[], Decompressor], type[Exception]]:
    from importlib import import_module

    for name in ("compression.zstd", "backports.zstd"):
        try:
            found = import_module(name)
        except ImportError:
            continue
        return found.ZstdDecompressor, found.ZstdError
    raise SpaseqError(
        "zstd is read with the package backports.zstd (or Python 3.14): pip install 'spaseq[zstd]'"
    )


COMPRESSIONS: Mapping[str, Compression] = {
    known.name: known
    for known in (
        Compression("gzip", ("gz",), re.compile(rb"\x1f\x8b\x08"), _gzip, b"\0"),
        Compression("zstd", ("zst", "zstd"), re.compile(rb"\x28\xb5\x2f\xfd"), _zstd),
        Compression("bzip2", ("bz2",), re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), _bzip2),
        Compression("xz", ("xz",), re.compile(rb"\xfd7zXZ\x00"), _xz, b"\0"),
    )
}
MAGIC_BYTES = 10
"""The most bytes that a `magic` compares."""


def compression_of(start: bytes) -> Compression | None:
    """The compression of a file that begins with these bytes."""
    for known in COMPRESSIONS.values():
        if known.magic.match(start):
            return known
    return None


def without_compression(name: str) -> str:
    """The name of a file without the extension of its compression."""
    stem, dot, extension = name.rpartition(".")
    known = {one for each in COMPRESSIONS.values() for one in each.extensions}
    return stem if dot and extension.lower() in known else name


class Decompressed:
    """The content of a compressed file, as a binary file that only reads.

    Args:
        file: the compressed file; `close` closes it.
        compression: its compression.
        live: whether a read may block, so that it returns what is available.

    Raises:
        SpaseqError: if the implementation is not installed.
    """

    def __init__(self, file: IO[bytes], compression: Compression, live: bool = False):
        self._file = file
        self._compression = compression
        self._live = live
        self._make, self._error = compression.open()
        self._member: Decompressor | None = self._make()
        self._input = b""
        self._ahead = b""
        self._at = 0
        self._parts: Ahead[tuple[bytes, int]] | None = None
        self._part = b""
        self._part_at = 0
        self._read = -1

    def read_ahead(self) -> None:
        """Decompress ahead of the reads that follow, in a thread that `stop` or `close` ends."""
        if self._parts is None and not self._live:
            self._parts = Ahead(self._all_parts)

    def _all_parts(self, lane: Lane[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
        """The parts of the content, each with the number of compressed bytes read for it."""
        while part := self._decompressed(_AHEAD_BYTES):
            yield part, self._file.tell()

    def stop(self) -> None:
        """End the thread that decompresses ahead, if there is one."""
        if self._parts is not None:
            self._parts.stop()

    def fileno(self) -> int:
        return self._file.fileno()

    def tell(self) -> int:
        """The number of compressed bytes read."""
        return self._file.tell() if self._read < 0 else self._read

    def close(self) -> None:
        self.stop()
        self._file.close()

    def peek(self, size: int) -> bytes:
        """The next bytes, which remain unread: `size` or more, fewer if a read may block."""
        while len(self._ahead) - self._at < (1 if self._live else size):
            more = self._decompress(_READ_BYTES)
            if not more:
                break
            self._ahead, self._at = self._ahead[self._at :] + more, 0
        return self._ahead[self._at :]

    def read1(self, size: int) -> bytes:
        """Some bytes, at most `size`; none at the end."""
        if self._at < len(self._ahead):
            part = self._ahead[self._at : self._at + size]
            self._at += len(part)
            return part
        return self._decompress(size)

    def read(self, size: int) -> bytes:
        """`size` bytes, fewer only at the end."""
        parts, missing = [], size
        while missing > 0:
            part = self.read1(min(missing, _MOST_BYTES))
            if not part:
                break
            parts.append(part)
            missing -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def readline(self, most: int = sys.maxsize) -> bytes:
        """The next line with its end, or about its first `most` bytes; empty at the end."""
        parts: list[bytes] = []
        size = 0
        while size < most:
            end = self._ahead.find(b"\n", self._at) + 1
            if end:
                part = self._ahead[self._at : end]
                self._at = end
                return b"".join((*parts, part)) if parts else part
            if self._at < len(self._ahead):
                parts.append(self._ahead[self._at :])
                size += len(parts[-1])
            self._ahead, self._at = self._decompress(_READ_BYTES), 0
            if not self._ahead:
                break
        return b"".join(parts)

    def _decompress(self, size: int) -> bytes:
        """The next bytes of the content, at most `size`; none at the end."""
        if self._parts is None:
            return self._decompressed(size)
        if self._part_at == len(self._part):
            self._part, self._read = next(self._parts, (b"", self._read))
            self._part_at = 0
        some = self._part[self._part_at : self._part_at + size]
        self._part_at += len(some)
        return some

    def _decompressed(self, size: int) -> bytes:
        """Like `_decompress`, in the thread that decompresses."""
        while self._member is not None:
            if self._member.eof:
                self._next_member()
                continue
            data = b""
            if self._member.needs_input:
                data, self._input = self._input or self._more(), b""
                if not data:
                    raise DecompressionError(
                        f"the {self._compression.name} data ends before its end marker"
                    )
            try:
                part = self._member.decompress(data, size)
            except self._error as error:
                raise DecompressionError(
                    f"the {self._compression.name} data is damaged: {error}"
                ) from error
            if part:
                return part
        return b""

    def _more(self) -> bytes:
        if self._live:
            return self._file.read1(_LIVE_BYTES)  # type: ignore[attr-defined, no-any-return]
        return self._file.read(_READ_BYTES)

    def _next_member(self) -> None:
        """Begin the next member, or end after the last one."""
        assert self._member is not None
        rest = self._member.unused_data
        padding = self._compression.padding
        while True:
            rest = rest.lstrip(padding) if padding else rest
            if len(rest) >= MAGIC_BYTES:
                break
            more = self._more()
            if not more:
                break
            rest += more
        self._member = None
        if not rest:
            return
        if not self._compression.magic.match(rest):
            raise DecompressionError(
                f"the {self._compression.name} data is followed by other bytes"
            )
        self._input = rest
        self._member = self._make()


def decompressed(file: IO[bytes], live: bool = False) -> tuple[IO[bytes] | Decompressed, str]:
    """The content of a file, decompressed if its first bytes say so, and the compression's name.

    The name is empty for a file that is not compressed. A file that can neither seek nor peek is
    returned as it is.
    """
    start = first_bytes(file, MAGIC_BYTES)
    known = compression_of(start)
    return (file, "") if known is None else (Decompressed(file, known, live), known.name)


def first_bytes(file: IO[bytes] | Decompressed, size: int) -> bytes:
    """The next bytes of a file, which remain unread; a pipe may return fewer than `size`."""
    if isinstance(file, io.BytesIO):
        at = file.tell()
        return file.getvalue()[at : at + size]
    peek = getattr(file, "peek", None)
    return bytes(peek(size)) if peek is not None else b""
