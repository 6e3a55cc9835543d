"""The file of a line-based syntax → statements of an `EventReader`.

The compiled reader (spaseq/rdf/native/nquads/nquads.pxi) stops before a line that it is not sure
of, and pyoxigraph parses the lines up to the next one that it is sure of. Only pyoxigraph thus
decides what is an error.

Cost: linear in the bytes. Memory: one block.
"""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.io.lines import Lines, Piece, normalised
from spaseq.io.read_options import Troubles
from spaseq.io.statements import block_statements
from spaseq.rdf.formats import RdfSyntax
from spaseq.rdf.native._framing import EventReader
from spaseq.rdf.native._nquads import LineReader


class LineFile:
    """One pass over a file, or over a part of one.

    Args:
        events: The reader that the statements are passed to.
        name: The name of the file in messages.
        line: The number of the first line.
    """

    def __init__(
        self, events: EventReader, name: str, syntax: RdfSyntax, troubles: Troubles, line: int = 1
    ):
        self.events = events
        self.lines = LineReader(events, syntax.named_graphs, line)
        self._name = name
        self._syntax = syntax
        self._troubles = troubles

    def steps(self, file: Lines) -> Iterator[bool]:
        """Read the file; True after each read of it."""
        for pieces in file.pieces():
            self.read(pieces)
            file.number = self.lines.line - 1
            yield True

    def read(self, pieces: list[Piece]) -> None:
        """Read some lines; pyoxigraph parses lines that the compiled reader is not sure of."""
        lines = self.lines
        while pieces:
            block, at, end = pieces.pop(0)
            is_plain = False  # whether this block is the last and its lines end in line feeds
            while (at := lines.read(block, at, end)) < end:
                if not is_plain:
                    is_plain = True
                    if pieces or block.find(b"\r", at, end) >= 0:
                        pieces.insert(0, (block, at, end))
                        block = normalised(b"".join(b[i:j] for b, i, j in pieces))
                        pieces.clear()
                        at, end = 0, len(block)
                        continue
                behind = lines.behind_sure(block, at, end)
                some = block[at:behind]
                first = lines.line
                for quad, line in block_statements(
                    first, some, self._name, self._syntax, self._troubles
                ):
                    self.events.statement(quad, line)
                lines.skip(some.count(b"\n") + (not some.endswith(b"\n")))
                at = behind
