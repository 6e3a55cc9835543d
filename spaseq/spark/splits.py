"""A large file → stretches that are read apart, cut between events of different times.

Where a stretch begins is a function of the file and of an offset alone, so the readers of two
neighbours agree without talking: the first event at or behind the offset whose time is not
that of the event before it. So no two stretches share a time, and the ordinals that are
counted in one are those of the file. Cost: some kilobytes read around each offset.
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

_AROUND = 1 << 16
_BLOCK = 3 << 17
"""Bytes that a task reads at once: tasks share the larger caches."""


class Region(io.RawIOBase):
    """Some consecutive bytes of a file, as a file."""

    def __init__(self, path: str, start: int, end: int):
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by `close`)
        self._file.seek(start)
        self._left = end - start

    def readable(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """That of the file."""
        return self._file.fileno()

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """As every raw file."""
        view = memoryview(buffer)[: self._left]
        count = self._file.readinto(view) if len(view) else 0
        self._left -= count or 0
        return count or 0

    def close(self) -> None:
        """The file too."""
        self._file.close()
        super().close()


def stretch(start: int, end: int | None) -> Callable[[str], Lines]:
    """Opens a part of a file (None: to its end); its messages say where the part begins."""

    def opened(path: str) -> Lines:
        try:
            behind = os.path.getsize(path) if end is None else end
            raw = Region(path, start, behind)
            lines = Lines(path, io.BufferedReader(raw), _BLOCK)  # type: ignore[type-var]
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
    """Where the stretch of an offset begins: at an event, or at the file's end."""
    size = os.path.getsize(path)
    if offset <= 0 or offset >= size:
        return min(max(offset, 0), size)
    return change(path, offset, options)[0]


def change(path: str, offset: int, options: ReadOptions) -> tuple[int, int | None]:
    """The place and the time of the first event at or behind an offset with a new time.

    The file's end, and None, where there is none.
    """
    size = os.path.getsize(path)
    back = ahead = _AROUND
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
    """The times of the first and of the last event of a file; None where none are found."""
    size, around = os.path.getsize(path), _AROUND
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
    """The first place in a block where an event surely begins: what it tells about changes."""
    at = block.find(b"\n") + 1
    known = None
    while 0 < at < len(block):
        behind = block.find(b"\n", at) + 1
        if not behind:
            return None
        about = _about(block[at:behind])
        if about is not None and known is not None and about != known:
            return at
        known, at = about or known, behind
    return None


def _about(line: bytes) -> object:
    """What a line tells something about: a graph, or what a default-graph triple is about."""
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
    """The place and time of the first event behind an offset with a new time; whether one is
    before it.
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
    """The times and places of the events of whole lines that stand in a file from `low` on.

    The last one may go on behind them: it does not count, unless the file ends.
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
