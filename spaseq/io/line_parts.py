"""A long file of a line-based syntax, read by several threads → events of one reader, in order.

The file is cut into the same blocks of whole lines as with one thread. A *part* is the events that
begin in a block. A thread reads it with a separate reader: from the first line of the block at
which an event certainly begins, to the corresponding line of the next block. The reader of the file
then adopts the events of one part after the other (spaseq/rdf/native/framing/adoption.pxi), which
completes everything that depends on earlier events: line numbers, ordinals, blank nodes, time
order, and the names of graphs that are complete.

A part is adopted only if nothing in it requires a message. Otherwise the reader of the file reads
the block itself, as it does without threads, and continues until it is at the beginning of a part.
Errors and the behaviour after them are therefore those of one thread. If few parts can be adopted,
the rest of the file is read by one thread.

Cost: a block is read again if its part is not adopted. Memory: `workers` parts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from spaseq.errors import SpaseqError
from spaseq.io.line_file import LineFile
from spaseq.io.lines import Lines
from spaseq.rdf.ahead import close_generator
from spaseq.rdf.native._framing import EventReader, adopt

FEWEST_PARTS = 4
"""The minimum number of parts for which threads are started."""
MOST_FAILURES = 4
"""Consecutive parts that are not adopted, after which one thread reads the rest."""
_SHARE_SEARCHED = 16
"""The next line where an event begins is searched in this share of a block."""


@dataclass(slots=True)
class Part:
    """A block of a file, with the events that begin in it if they were read without an error."""

    data: bytes
    offset: int
    """The position of `data` in the file."""
    start: int
    """The first whole line of the block in `data`."""
    end: int
    first: int = -1
    """The first line at which an event begins; -1: unknown."""
    behind: int = -1
    """The same for the next block."""
    events: EventReader | None = None
    """The reader that has read data[first:behind]."""
    lines: int = 0
    """The number of lines that it has read."""


class LineParts:
    """Reads the blocks of a file from its current position.

    Args:
        file: A divisible file, a block of which has been read.
        reader: The reader of the file, to which all events are passed.
        part_reader: Makes the reader of a part; it is called in the threads.
        workers: The number of threads.
    """

    def __init__(
        self, file: Lines, reader: LineFile, part_reader: Callable[[], LineFile], workers: int
    ):
        self._file = file
        self._reader = reader
        self._part_reader = part_reader
        self._workers = workers
        self._block = file.block
        self._searched = file.block // _SHARE_SEARCHED
        self._position = file.position()
        """Where the first block begins; its first line may begin in the block before."""
        left = file.size() - self._position - self._searched
        self._count = max(0, left // self._block) if self._position >= self._searched else 0

    def pays(self) -> bool:
        """Whether the file is long enough for threads."""
        return self._count >= FEWEST_PARTS

    def steps(self) -> Iterator[bool]:
        """Read parts, True after each; the file continues after the last one."""
        events, lines, file = self._reader.events, self._reader.lines, self._file
        at = self._position - file.unfinished()
        """The place of the next line in the file."""
        is_between = False  # whether the reader is at the beginning of a part
        failures = number = 0
        parts = self._parts()
        try:
            for number, part in enumerate(parts):
                if part is None or failures == MOST_FAILURES:
                    break
                here = at - part.offset
                if not is_between:
                    if here != part.start:
                        break
                    if part.first >= 0:
                        here = lines.read(part.data, here, part.first)
                        is_between = here == part.first and lines.close_before(
                            part.data, here, len(part.data)
                        )
                    if is_between and len(events.batch):
                        file.number = lines.line - 1
                        yield True
                if (
                    is_between
                    and part.events is not None
                    and adopt(events, part.events, lines.line - 1)
                ):
                    lines.skip(part.lines)
                    at = part.offset + part.behind
                    failures = 0
                else:
                    self._reader.read([(part.data, here, part.end)])
                    at = part.offset + part.end
                    is_between = False
                    failures += 1
                file.number = lines.line - 1
                file.reached = self._place(number + 1)
                yield True
            else:
                number = self._count
        finally:
            close_generator(parts)
        file.resume(at, self._place(number + 1))

    def _place(self, number: int) -> int:
        """The beginning of a block, or the end of the lines that it shares with the previous
        one."""
        return self._position + number * self._block

    def _parts(self) -> Iterator[Part | None]:
        """The parts in order; None: the block has no whole line where one is expected."""
        pool = ThreadPoolExecutor(self._workers, "spaseq-lines")
        waiting: deque[Future[Part | None]] = deque()
        try:
            for number in range(self._count):
                waiting.append(pool.submit(self._read_part, number, self._bytes(number)))
                if len(waiting) == self._workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _bytes(self, number: int) -> bytes:
        """A block, with the bytes around it that are searched.

        One thread reads all bytes, and so reuses the memory of earlier blocks. If each thread freed
        its own memory, the memory would be returned to the system.
        """
        offset = self._place(number) - self._searched
        return self._file.part(offset, self._block + 2 * self._searched)

    def _read_part(self, number: int, data: bytes) -> Part | None:
        """The work of a thread."""
        block, searched = self._block, self._searched
        offset = self._place(number) - searched
        start = data.rfind(b"\n", 0, searched) + 1
        end = data.rfind(b"\n", block, block + searched) + 1
        if len(data) < block + 2 * searched or start == 0 or end == 0:
            return None
        part = Part(data, offset, start, end)
        reader = self._part_reader()
        lines = reader.lines
        part.first = lines.next_event(data, start, start + searched)
        part.behind = lines.next_event(data, end, end + searched)
        if part.first < 0 or part.behind < 0:
            return part
        try:
            reader.read([(data, part.first, end)])
            # With one thread, the treatment of a line that is not sure depends on the rest of its
            # block.
            is_read = lines.read(data, end, part.behind) == part.behind
            if not is_read or not lines.close_before(data, part.behind, len(data)):
                return part
        except SpaseqError:
            return part
        part.events, part.lines = reader.events, lines.line - 1
        return part
