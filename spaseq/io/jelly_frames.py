"""Files of Jelly → events, by the compiled reader of frames (spaseq/io/native/_jelly.pyx).

Memory: one block, or one frame if it is longer. A length that a frame declares reserves no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spaseq.io.native._jelly import BrokenFrame, JellyReader
from spaseq.rdf.native._framing import EventReader

if TYPE_CHECKING:
    from spaseq.io.lines import Lines
    from spaseq.io.read_options import Troubles

EVENTS_AT_ONCE = 1024
_HINT_BYTES = 3


def jelly_steps(
    file: Lines, events: EventReader, troubles: Troubles, marked: bool
) -> Iterator[bool]:
    """Read a file into events; yields each time that a batch may be yielded.

    `marked`: whether a frame is a message.
    """
    reader = JellyReader(events, troubles, file.name, marked)
    most = 1 if file.is_live else EVENTS_AT_ONCE
    try:
        for _ in _steps(file, reader, most):
            file.number = reader.frame
            # A small batch costs as much work as a larger one.
            if file.is_live or not 0 < len(events.batch) < most:
                yield True
    except BrokenFrame as error:
        file.number = getattr(error, "frame", reader.frame)
        text = f"not Jelly: {error}; nothing can be read from here on"
        troubles.report(text, file.name, file.number)
        return
    file.number = reader.frame


def _steps(file: Lines, reader: JellyReader, most: int) -> Iterator[None]:
    block = file.read_block()
    while 0 < len(block) < _HINT_BYTES and (more := file.read_block()):
        block += more
    if len(block) >= _HINT_BYTES and not is_delimited(block):
        whole = b"".join((block, *iter(file.read_block, b"")))
        while reader.read_whole(whole, most):
            yield
        return
    while True:
        at = 0
        while True:
            at = reader.read(block, at, most)
            if reader.missing or at == len(block):
                break
            yield
        yield
        parts, missing = [block[at:]], reader.missing
        while missing > 0 or not parts[-1]:
            data = file.read_block()
            if not data:
                break
            parts.append(data)
            missing -= len(data)
        block = b"".join(parts)
        if missing > 0 and block:
            raise _cut_off(block, reader.frame + 1)
        if not block:
            return


def _cut_off(block: bytes, frame: int) -> BrokenFrame:
    """The error for the part of a frame at the end of the file."""
    size = shift = 0
    for count, byte in enumerate(block, 1):
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            missing = size - (len(block) - count)
            return _BrokenEnd(f"the file ends {missing} bytes before the frame's {size} do", frame)
    return _BrokenEnd("the file ends in the length of the frame", frame)


class _BrokenEnd(BrokenFrame):
    """A frame at the end of the file, which the reader has not begun."""

    def __init__(self, reason: str, frame: int):
        super().__init__(reason)
        self.frame = frame


def is_delimited(start: bytes) -> bool:
    """Whether each frame of a file is preceded by its length, by the first three bytes.

    Source: Jelly-RDF specification, section on delimited streams. A row begins with 0x0A.
    """
    return start[0] != 0x0A or (start[1] == 0x0A and start[2] != 0x0A)
