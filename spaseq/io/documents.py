"""The file of a Turtle or TriG document → statements of an `EventReader`.

The compiled reader (spaseq/rdf/native/turtle/turtle.pxi) stops before a statement that it is not
sure of. pyoxigraph then parses this statement, and the compiled reader continues after it. If
pyoxigraph refuses the statement, or its end is not found, pyoxigraph parses the rest of the file
(`rest`), with the prefixes, the base IRI and the graph declared so far. Only pyoxigraph thus
decides what is an error, and where.

Cost: linear in the bytes. Memory: one block and one statement.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain

from spaseq.errors import InputError
from spaseq.io.lines import MAX_LINE_BYTES, Lines, Piece, normalised
from spaseq.io.messages import Context, statements_of
from spaseq.io.read_options import Counters, Troubles
from spaseq.io.statements import Document, Statement, directives
from spaseq.rdf.event import Term
from spaseq.rdf.formats import RdfSyntax
from spaseq.rdf.native._framing import EventReader
from spaseq.rdf.native._turtle import DocumentReader
from spaseq.rdf.syntax import LimitError
from spaseq.rdf.turtle_strings import statement_end

_MAX_BLOCK_BYTES = 1 << 18
"""Bytes read at once: the terms of the events in this many bytes stay in the processor's cache."""
_MAX_SEARCHED_BYTES = 1 << 16
"""The longest beginning of a statement for which each new piece of the file is searched for its
end."""


class DocumentFile:
    """One pass over a file. `steps` reads what the compiled reader accepts, `rest` the rest.

    Args:
        messages: Whether the file is cut into messages.
    """

    def __init__(
        self,
        events: EventReader,
        file: Lines,
        syntax: RdfSyntax,
        troubles: Troubles,
        messages: bool,
    ):
        self._events = events
        self._file = file
        self._syntax = syntax
        self._troubles = troubles
        self._messages = messages
        self._reader = DocumentReader(
            events, syntax.named_graphs, messages, file.number + 1, file.base()
        )
        self._pieces = file.pieces(_MAX_BLOCK_BYTES)
        self._ahead: deque[Piece] = deque()
        """Pieces that one read of the file returned together and that have not been parsed yet."""
        self._held: list[Piece] = []
        self._held_bytes = 0
        """The open statement so far."""
        self._sought = False
        """Whether the open statement is one that pyoxigraph has to read."""
        self._refused = False
        """Whether pyoxigraph has to read the rest."""
        self._line = 0
        """The line where the rest begins."""

    def steps(self) -> Iterator[bool]:
        """Read the file; True after each read of it."""
        reader = self._reader
        self._events.follower = reader
        try:
            for pieces in self._pieces:
                self._ahead.extend(pieces)
                while self._ahead and not self._refused:
                    self._read(*self._ahead.popleft())
                if self._refused:
                    return
                self._file.number = reader.line - 1
                yield True
            self._file.number = reader.line - self._ends_line()
            is_open = self._sought or reader.is_open
            self._refused = is_open or reader.open_block() is not False
            self._line = reader.begin_line if is_open else reader.line
        finally:
            self._events.follower = None

    def rest(self) -> Iterator[Statement]:
        """The statements that `steps` has not read."""
        if not self._refused:
            return
        pieces = (piece for pieces in self._pieces for piece in pieces)
        lines = _Unread(self._line, self._text(), chain(self._ahead, pieces), self._file)
        reader, name, syntax = self._reader, self._file.name, self._syntax
        base, troubles = reader.base_iri, self._troubles
        graph = reader.open_block()
        state = (self._preamble(graph), reader.block_line if graph is not False else 0)
        in_graph = graph is not False and (graph is not None or not reader.block_begun)
        if self._messages:
            yield from statements_of(lines, Context(syntax, name, base, troubles, *state, in_graph))
        else:
            document = Document(lines, name, syntax, base, troubles, *state, in_graph)
            yield from document.statements()

    def between_statements(self) -> tuple[list[tuple[str, str]], str | None] | None:
        """The prefixes and the base here; None inside a statement or the block of a graph."""
        reader = self._reader
        if self._refused or self._sought or reader.is_open or reader.open_block() is not False:
            return None
        return reader.prefixes(), reader.base_iri

    # ------------------------------------------------------------ pieces

    def _read(self, block: bytes, at: int, end: int) -> None:
        """Read a piece, including statements for pyoxigraph."""
        reader = self._reader
        while True:
            if not self._sought:
                try:
                    is_read = reader.read(block, at, end)
                except LimitError as error:
                    raise InputError(str(error), self._file.name, reader.begin_line) from None
                start = reader.statement_start(block)
                if start >= 0:
                    self._held.clear()
                    self._held_bytes = 0
                else:
                    start = at
                if is_read:
                    start = start if reader.is_open else end
                    self._held.append((block, start, end))
                    self._held_bytes += end - start
                    if self._held_bytes > MAX_LINE_BYTES:
                        said = f"a statement of more than {MAX_LINE_BYTES >> 20} MiB"
                        raise InputError(said, self._file.name, reader.begin_line)
                    return
                at = start
            self._held.append((block, at, end))
            if len(self._held) > 1:
                block = self._text()
                at, end = len(block) - sum(j - i for _, i, j in self._held), len(block)
                self._held = [(block, at, end)]
            self._held_bytes = end - at
            stop = statement_end(block, at, end, reader.open_block() is not False)
            if stop < 0 and end - at <= _MAX_SEARCHED_BYTES:
                self._sought = True
                return
            if stop <= at or not self._is_read_by_parser(_indent(block, at) + block[at:stop]):
                self._refused = True
                self._line = reader.begin_line
                return
            self._sought = False
            self._held.clear()
            self._held_bytes = 0
            at = stop

    def _text(self) -> bytes:
        """The open statement so far, with blanks for the characters before it on its first line."""
        if not self._held:
            return b""
        block, start, _ = self._held[0]
        return _indent(block, start) + b"".join(block[i:j] for block, i, j in self._held)

    def _ends_line(self) -> bool:
        if not self._held:
            return True
        block, _, end = self._held[-1]
        return block[end - 1 : end] in (b"\n", b"\r")

    # ------------------------------------------------------------ pyoxigraph

    def _preamble(self, graph: Term | bool | None, text: bytes | None = None) -> bytes:
        """What pyoxigraph reads before a statement in the block of a graph, on one line.

        text: The statement, if nothing follows it: only prefixes that it may use are declared.
        """
        preamble = directives(self._reader.prefixes(text))
        if graph is False:
            return preamble
        opening = "{" if graph is None else f"{graph} {{"
        return preamble.rstrip(b"\n") + b" " + opening.encode() + b"\n"

    def _is_read_by_parser(self, text: bytes) -> bool:
        """Read a statement with pyoxigraph; False if it has an error."""
        reader = self._reader
        graph = reader.open_block()
        # The parser reads some tokens differently at the end of its input.
        closing = b"\n" if graph is False else b" }\n"
        lines = _Unread(reader.begin_line, text + closing, iter(()))
        document = Document(
            lines,
            self._file.name,
            self._syntax,
            reader.base_iri,
            Troubles("stop", Counters()),
            self._preamble(graph, text),
        )
        try:
            statements = list(document.statements())
        except InputError:
            return False
        for quad, line in statements:
            self._events.statement(quad, line)
        for name, iri in document.prefixes.items():
            reader.set_prefix(name, iri)
        if document.base != reader.base_iri:
            reader.set_base(document.base)
        reader.resume(reader.begin_line + normalised(text).count(b"\n"))
        return True


class _Unread:
    """Lines of a file from the middle of one on, whose text before it is replaced by blanks.

    Args:
        line: The number of the first line.
        text: The first lines.
        pieces: The lines after them.
        file: The file whose `number` is set.
    """

    def __init__(self, line: int, text: bytes, pieces: Iterator[Piece], file: Lines | None = None):
        self.number = line - 1
        self._lines = deque(text.splitlines(keepends=True))
        self._pieces = pieces
        self._file = file

    def readline(self) -> bytes:
        while not self._lines:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            block, start, end = piece
            self._lines.extend(block[start:end].splitlines(keepends=True))
        self.number += 1
        if self._file is not None:
            self._file.number = self.number
        return self._lines.popleft()


def _indent(block: bytes, at: int) -> bytes:
    """As many blanks as there are characters before an offset on its line."""
    line = max(block.rfind(b"\n", 0, at), block.rfind(b"\r", 0, at)) + 1
    return b" " * len(block[line:at].decode(errors="replace"))
