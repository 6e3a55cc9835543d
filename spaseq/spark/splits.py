"""A large file → splits for several tasks, cut between events of different times.

The start of a split is a function of the file and an offset alone, so the readers of neighbouring
splits compute the same border: the first event at or after the offset whose time differs from the
time of the event before it. So no two splits share a time, and ordinals counted within a split are
those of the file. Cost: some kilobytes read around each offset.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import replace

import pyoxigraph as ox

from spaseq.errors import InputError
from spaseq.io.lines import Lines, announces_messages
from spaseq.io.read_options import Framing, ReadOptions, TimeDomain
from spaseq.io.source import Source
from spaseq.rdf.formats import N_QUADS, RdfSyntax

_PROBE_BYTES = 1 << 16
_BLOCK_BYTES = 3 << 17
"""The size of one read; small, since the tasks of a machine share the larger caches."""


class Region(io.RawIOBase):
    """A range of bytes of a file, as a file."""

    def __init__(self, path: str, start: int, end: int):
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by `close`)
        self._file.seek(start)
        self._left = end - start

    def readable(self) -> bool:
        """True."""
        return True

    def fileno(self) -> int:
        """The descriptor of the underlying file."""
        return self._file.fileno()

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """Read at most up to the end of the range, as `io.RawIOBase` defines it."""
        view = memoryview(buffer)[: self._left]
        count = self._file.readinto(view) if len(view) else 0
        self._left -= count or 0
        return count or 0

    def close(self) -> None:
        """Close the underlying file as well."""
        self._file.close()
        super().close()


def open_range(start: int, end: int | None) -> Callable[[str], Lines]:
    """A function that opens a range of a file, to the end of the file if `end` is None.

    Error messages name the byte where the range begins.
    """

    def opened(path: str) -> Lines:
        try:
            behind = os.path.getsize(path) if end is None else end
            raw = Region(path, start, behind)
            lines = Lines(path, io.BufferedReader(raw), _BLOCK_BYTES)  # type: ignore[type-var]
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", path) from error
        if start:
            lines.name = f"{path}[from byte {start}]"
        return lines

    return opened


def is_divisible(path: str, syntax: RdfSyntax, options: ReadOptions) -> bool:
    """Whether the events of a plain file can be found from its middle: graphs in N-Quads."""
    if syntax != N_QUADS or options.lateness is not None:
        return False
    if options.framing.kind == "auto":
        lines = Lines(path)
        try:
            return not announces_messages(lines.head())
        finally:
            lines.close()
    return options.framing.kind == "graph"


def beginning(path: str, offset: int, options: ReadOptions) -> int:
    """The start of the split of an offset: the start of an event, or the end of the file."""
    size = os.path.getsize(path)
    if offset <= 0 or offset >= size:
        return min(max(offset, 0), size)
    return change(path, offset, options)[0]


def change(path: str, offset: int, options: ReadOptions) -> tuple[int, int | None]:
    """The place and time of the first event at or after an offset whose time differs from the
    event before; the end of the file and None if there is none.
    """
    size = os.path.getsize(path)
    back = ahead = _PROBE_BYTES
    while True:
        low, high = max(0, offset - back), min(size, offset + ahead)
        with open(path, "rb") as file:
            file.seek(low)
            block = file.read(high - low)
        first = 0 if low == 0 else _boundary(block)
        found, has_before = None, False
        if first is not None:
            found, has_before = _change(block, low, first, offset, high == size, options)
        if found is not None:
            return found
        if high == size and (has_before or low == 0):
            return size, None
        if has_before:
            ahead *= 4
        else:
            back, ahead = 4 * back, 4 * ahead


def span(path: str, options: ReadOptions) -> tuple[int, int] | None:
    """The times of the first and the last event of a file; None if it has no events."""
    size, around = os.path.getsize(path), _PROBE_BYTES
    while True:
        with open(path, "rb") as file:
            head = file.read(around)
            low = max(0, size - around)
            file.seek(low)
            tail = file.read()
        whole = len(head) if len(head) == size else head.rfind(b"\n") + 1
        first = _events(head[:whole], 0, len(head) == size, options)
        start = 0 if low == 0 else _boundary(tail)
        last = [] if start is None else _events(tail[start:], low + start, True, options)
        if first and last:
            return first[0][0], last[-1][0]
        if around >= size:
            return None
        around *= 4


def _boundary(block: bytes) -> int | None:
    """The first place in a block where an event begins for certain: a change of the graph."""
    at = block.find(b"\n") + 1
    known = None
    while 0 < at < len(block):
        behind = block.find(b"\n", at) + 1
        if not behind:
            return None
        about = _graph_of(block[at:behind])
        if about is not None and known is not None and about != known:
            return at
        known, at = about or known, behind
    return None


def _graph_of(line: bytes) -> object:
    """The graph of a line, or the subject of a triple in the default graph; None for neither."""
    try:
        for quad in ox.parse(line, format=ox.RdfFormat.N_QUADS):
            is_default = isinstance(quad.graph_name, ox.DefaultGraph)
            return quad.subject if is_default else quad.graph_name
    except SyntaxError:
        pass
    return None


def _change(
    block: bytes, low: int, first: int, offset: int, is_end: bool, options: ReadOptions
) -> tuple[tuple[int, int] | None, bool]:
    """The place and time of the first event at or after an offset with a new time, if any; and
    whether the block has an event before it.
    """
    end = len(block) if is_end else block.rfind(b"\n") + 1
    before = None
    has_before = low + first == 0
    for micros, place in _events(block[first:end], low + first, is_end, options):
        if place >= offset and has_before and micros != before:
            return (place, micros), True
        before, has_before = micros, True
    return None, has_before


def _events(text: bytes, low: int, is_end: bool, options: ReadOptions) -> list[tuple[int, int]]:
    """The times and places of the events in whole lines, which begin at byte `low` of a file.

    The last event may continue after these lines, so it is omitted unless the file ends here.
    """
    starts = [0]
    while (at := text.find(b"\n", starts[-1])) >= 0:
        starts.append(at + 1)
    source = Source(
        "",
        [""],
        replace(options, on_error="skip", syntax=N_QUADS.name, framing=Framing("graph")),
        domain=TimeDomain(),
        log=lambda text: None,
        open_lines=lambda path: Lines(path, io.BytesIO(text)),
    )
    events = [
        (batch.micros(index), low + starts[batch.line(index) - 1])
        for batch in source.batches()
        for index in range(len(batch))
    ]
    return events if is_end else events[:-1]
