"""Bytes of growing documents, in pieces → encoded events.

A source that never ends passes on the bytes that it has: the new bytes of a followed file, or of a
pipe. `PushedDocuments` reads them with the readers of files, so events, errors and blank nodes are
those of a finished file. Between two pieces it knows the position from which the document must be
read again to continue (`restart`).

Invariant: no call waits for bytes. A partial last line is retained until its end arrives.
Cost: that of the reader of files; `restart` counts the lines of the open event.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

from spaseq.errors import InputError
from spaseq.io.formats import STREAM_SYNTAXES, StreamSyntax
from spaseq.io.lines import Lines, Piece
from spaseq.io.read_options import Troubles
from spaseq.io.recognition import START_BYTES, is_undecided, recognised
from spaseq.io.source import Reading, Source
from spaseq.io.statements import directives
from spaseq.rdf.compression import compression_of
from spaseq.rdf.formats import one_of
from spaseq.rdf.native._framing import Minter
from spaseq.rdf.native._terms import EventBatch, Relevance

PUSHED_SYNTAXES = ("nq", "nt", "trig", "ttl")
"""The syntaxes of documents that can grow."""


class PushedLines(Lines):
    """The lines of a document whose bytes are passed to `push`.

    Args:
        name: The document, for messages.
        path: Its path, which gives the base IRI; `-` for none.
        head: Its first bytes.
        line: The number of the first line.
    """

    def __init__(self, name: str, path: str, head: bytes, line: int = 1):
        self._begin = io.BytesIO(head)
        super().__init__(path, self._begin)
        self.name = name
        self.number = line - 1
        self.is_live = True
        self.ended = False
        """Whether no further bytes follow."""
        self.rest: list[bytes] = []
        """The partial last line."""
        self.retains = False
        self.read_pieces: list[Piece] = []
        """Under `retains`, the pieces that were read; the caller removes what it does not need."""
        self._pieces: list[Piece] = []

    @property
    def has_lines(self) -> bool:
        """Whether there are lines to read."""
        return bool(self._pieces)

    def push(self, data: bytes) -> None:
        """Append bytes; `pieces` yields their whole lines next."""
        if data.find(b"\r") >= 0 and data.count(b"\r") > data.count(b"\r\n") + data.endswith(b"\r"):
            raise InputError("a line ends in a carriage return alone", self.name, self.number + 1)
        cut = data.rfind(b"\n") + 1
        if not cut:
            if data:
                self.rest.append(data)
            return
        start = 0
        if self.rest:
            start = data.find(b"\n") + 1
            line = b"".join((*self.rest, data[:start]))
            self._pieces.append((line, 0, len(line)))
        if start < cut:
            self._pieces.append((data, start, cut))
        self.rest = [data[cut:]] if cut < len(data) else []

    def push_head(self) -> None:
        """Divide the first bytes into lines, after they have been used to recognise the syntax."""
        self.push(self._taken_ahead() + self._without_mark(self._begin.read()))

    def pieces(self, most: int | None = None) -> Iterator[list[Piece]]:
        """The whole lines pushed since the last call, and at the end the last line.

        Raises:
            InputError: if the reader needs more lines than there are.
        """
        while True:
            pieces, self._pieces = self._pieces, []
            if not pieces:
                if not self.ended:
                    raise InputError(
                        "the statement here is malformed, or longer than 64 KiB", self.name
                    )
                line, self.rest = b"".join(self.rest), []
                if not line:
                    return
                pieces = [(line, 0, len(line))]
            if self.retains:
                self.read_pieces += pieces
            yield pieces


class PushedDocuments:
    """The successive documents of one stream; each is passed on in pieces.

    Args:
        source: The options, the counters and the log of the stream.
        relevance: The triples that the queries can use.
        minter: Numbers the events; None if they are put in order later.
        restarts: Whether `restart` will be called after each piece.
    """

    def __init__(
        self, source: Source, relevance: Relevance, minter: Minter | None, restarts: bool = True
    ):
        self._restarts = restarts
        self._source = source
        self._minter = minter
        self._troubles = Troubles(source.options.on_error, source.counters, source.log)
        self._reading = Reading(source, relevance, self._troubles, minter)
        self._name = self._path = ""
        self._head: bytes | None = b""
        """The beginning of a document whose syntax is not known yet."""
        self._lines: PushedLines | None = None
        self._steps: Iterator[bool] = iter(())
        self._syntax: StreamSyntax | None = None
        self._kind = ""
        self._offset = 0
        """The number of bytes of the document so far."""
        self._line, self._line_offset = 1, 0
        """The restart point that was computed last."""
        self._unused = 0
        self.failure: InputError | None = None
        """The error that ends the stream, after the events returned so far."""

    @property
    def minter(self) -> Minter | None:
        return self._minter

    def open(self, name: str, path: str, point: Mapping[str, Any] | None = None) -> None:
        """Begin a document, or continue one at a point that `restart` returned.

        Raises:
            InputError: if the document cannot be continued with these options.
        """
        self._name, self._path = name, path
        self._head, self._lines, self._syntax = b"", None, None
        self._offset, self._line, self._line_offset = 0, 1, 0
        self._unused = 0
        if point is None:
            return
        self._reading.events.restore(*point["reader"])
        if self._minter is not None:
            self._minter.restore(*point["minter"])
        self._offset = self._line_offset = point["offset"]
        self._line = point["line"]
        if point["syntax"] is None:
            return
        preamble = directives(point["prefixes"])
        if point["base"] is not None:
            preamble = f"@base <{point['base']}> . ".encode() + (preamble or b"\n")
        line = self._line - bool(preamble)
        lines = PushedLines(name, path, preamble, line)
        self._start(lines, STREAM_SYNTAXES[point["syntax"]], point["kind"])

    def _start(self, lines: PushedLines, syntax: StreamSyntax, kind: str | None) -> None:
        if syntax.syntax.name not in PUSHED_SYNTAXES:
            known = one_of([STREAM_SYNTAXES[name].syntax.title for name in PUSHED_SYNTAXES])
            raise InputError(
                f"{syntax.syntax.title} cannot be read while it grows, only {known}", self._name
            )
        if not syntax.syntax.line_based and self._source.options.on_error == "skip":
            raise InputError(
                f"--on-error skip cannot be used with {syntax.syntax.title} that grows, "
                "but with N-Quads",
                self._name,
            )
        lines.options = self._source.options
        lines.retains = self._restarts and syntax.syntax.line_based
        reading = self._reading
        self._source.lines = lines
        self._kind = reading.start(lines, syntax, kind)
        lines.push_head()
        self._lines, self._syntax, self._head = lines, syntax, None
        self._steps = reading.steps(lines, syntax, self._kind)

    # ------------------------------------------------------------ bytes

    def feed(self, data: bytes) -> EventBatch | None:
        """Read the next bytes; returns the events that are complete, or None if there are none.

        An error is in `failure`.
        """
        self._offset += len(data)
        try:
            if self._head is not None:
                self._head += data
                self._recognise(False)
            elif self._lines is not None:
                self._lines.push(data)
        except InputError as error:
            self.failure = error
            return None
        return self._step() if self._lines is not None and self._lines.has_lines else None

    def _recognise(self, ended: bool) -> None:
        """Find the syntax by the first bytes, if they suffice."""
        head = self._head or b""
        if compression_of(head) is not None:
            raise InputError("a compressed file cannot be read while it grows", self._name)
        whole = head[: head.rfind(b"\n") + 1]
        if not head or not (ended or len(head) >= START_BYTES or not is_undecided(whole)):
            return
        lines = PushedLines(self._name, self._path, head)
        known = recognised(lines, self._path, self._source.options.syntax)
        self._troubles.note = known.note
        self._start(lines, known.syntax, None)

    def quiet(self) -> EventBatch | None:
        """Handle a pause of the source; returns the open graph, if no partial line follows it."""
        if self._lines is None or self._lines.rest or self.failure is not None:
            return None
        try:
            if not self._reading.events.finish_whole():
                return None
        except InputError as error:
            self.failure = error
        return self._taken()

    def end(self) -> EventBatch | None:
        """End the document; returns its last events."""
        if self.failure is not None:
            return None
        if self._head is not None:
            try:
                self._recognise(True)
            except InputError as error:
                self.failure = error
        if self._lines is None or self.failure is not None:
            return None
        self._lines.ended = True
        return self._step()

    def _step(self) -> EventBatch | None:
        """Read the lines that have been pushed; at the end, all of them."""
        lines = self._lines
        assert lines is not None
        try:
            while next(self._steps, False):
                if not lines.ended:
                    break
            else:
                self._reading.finish(lines, self._kind)
        except InputError as error:
            self.failure = self._reading.failed(error)
        return self._taken()

    def _taken(self) -> EventBatch | None:
        events = self._reading.events
        self._source.counters.unused += events.unused - self._unused
        self._unused = events.unused
        batch = events.fresh() if len(events.batch) else None
        if self.failure is None:
            events.refresh()
        return batch

    # ------------------------------------------------------------ restart

    def restart(self) -> dict[str, Any] | None:
        """The point from which to read again to continue with the next event, for `open`, as data.

        None if the document cannot be continued here: within a statement or an event of TriG or
        Turtle.
        """
        lines, syntax, events = self._lines, self._syntax, self._reading.events
        prefixes: list[tuple[str, str]] = []
        base: str | None = None
        if lines is None or syntax is None:
            self._line_offset = self._offset - len(self._head or b"")
        elif syntax.syntax.line_based:
            self._find(events.open_line or lines.number + 1, lines)
        else:
            document = self._reading.document
            between = None if document is None else document.between_statements()
            if between is None or events.open_line:
                return None
            prefixes, base = between
            self._line = lines.number + 1
            self._line_offset = self._offset - sum(map(len, lines.rest))
            base = None if base == lines.base() else base
        return {
            "offset": self._line_offset,
            "line": self._line,
            "syntax": None if syntax is None else syntax.syntax.name,
            "kind": self._kind,
            "prefixes": prefixes,
            "base": base,
            "reader": events.state(),
            "minter": None if self._minter is None else self._minter.state(),
        }

    def _find(self, line: int, lines: PushedLines) -> None:
        """Set the restart point to the beginning of a line, by counting lines from the end."""
        if line == self._line:
            return
        offset = self._offset - sum(map(len, lines.rest))
        missing = lines.number + 1 - line
        pieces, index = lines.read_pieces, len(lines.read_pieces)
        while missing and index:
            index -= 1
            block, start, at = pieces[index]
            while missing and at > start:
                before = max(block.rfind(b"\n", start, at - 1) + 1, start)
                offset -= at - before
                at = before
                missing -= 1
        del pieces[:index]
        self._line, self._line_offset = line, offset
