"""RDF files → tables of triples, by the compiled readers of streams.

The readers (spaseq/rdf/native/) accept a statement only if it is certainly valid. pyoxigraph parses
the others, a few lines at a time. If pyoxigraph finds an error in a file, or the two cannot read it
together, spaseq/kb/files.py reads the file from the beginning with pyoxigraph alone. Errors and
their positions therefore come from there.

Cost: linear in the bytes. Memory: a block of the file, and the table.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, cast

import pyoxigraph as ox

from spaseq.errors import KbError
from spaseq.rdf.formats import N_QUADS, N_TRIPLES, TRIG, TURTLE, RdfSyntax, parser_format
from spaseq.rdf.native._bounds import TurtleScanner
from spaseq.rdf.native._framing import EventReader
from spaseq.rdf.native._nquads import LineReader
from spaseq.rdf.native._terms import Dictionary, Relevance, TripleTable
from spaseq.rdf.native._turtle import DocumentReader
from spaseq.rdf.syntax import LimitError, nesting
from spaseq.rdf.turtle_strings import statement_end

_BLOCK_BYTES = 1 << 18
_MAX_STATEMENT_BYTES = 1 << 20
"""The longest statement that is passed to pyoxigraph on its own, and the longest line."""


class NotSureError(Exception):
    """The file must be read by pyoxigraph alone."""


class _Questions:
    """What `EventReader` asks about statements that no file of a knowledge base may have."""

    def delimiter(self, *_: object) -> None:
        raise NotSureError

    among_triples = delimiter

    def known_domain(self) -> int:
        """The times of events: there are none."""
        return -1


def read_table(path: Path, syntax: RdfSyntax, packed: bool, prefix: str) -> TripleTable | None:
    """The distinct triples of a file, whose blank nodes get the prefix.

    None if pyoxigraph alone must read it, because it has another syntax, is not a regular file, or
    may have an error.
    """
    if syntax not in (N_QUADS, N_TRIPLES, TRIG, TURTLE) or not path.is_file():
        return None
    events = EventReader(Relevance(Dictionary()), _Questions(), "", None, 1)
    events.start_file("", "whole", 0, (), False, False)
    table = TripleTable()
    try:
        with _open(path, packed) as file:
            blocks = _blocks(file)
            if syntax.line_based:
                steps = _lines(events, syntax, blocks)
            else:
                steps = _Document(events, syntax, path).steps(blocks)
            for _ in steps:
                table.add(events.drain(), f"{prefix}.")
    except (NotSureError, OSError, EOFError, SyntaxError, ValueError, RecursionError):
        return None
    table.complete()
    return table


def _open(path: Path, packed: bool) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if packed else path.open("rb")


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Whole lines, about as many as fit a block.

    Raises:
        NotSureError: for a line that is too long.
    """
    rest = b""
    while data := file.read(_BLOCK_BYTES):
        cut = data.rfind(b"\n") + 1
        if cut:
            yield rest + data[:cut]
            rest = data[cut:]
        else:
            rest += data
            if len(rest) > _MAX_STATEMENT_BYTES:
                raise NotSureError
    if rest:
        yield rest


def _parsed(events: EventReader, text: bytes, syntax: RdfSyntax, base: str | None) -> ox.QuadParser:
    """Read statements with pyoxigraph, which raises an exception at an error.

    Raises:
        NotSureError: for what is nested so deeply that pyoxigraph must not see it.
    """
    try:
        nesting(text)
        if not syntax.line_based:
            TurtleScanner().read(text)
    except LimitError:
        raise NotSureError from None
    parser = ox.parse(text, format=parser_format(syntax), base_iri=base)
    for quad in parser:
        events.statement(quad, 0)
    return parser


# ------------------------------------------------------------------ lines


def _lines(events: EventReader, syntax: RdfSyntax, blocks: Iterable[bytes]) -> Iterator[None]:
    """Read N-Triples or N-Quads, a block at each step."""
    reader = LineReader(events, syntax.named_graphs)
    for block in blocks:
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        at, end = 0, len(block)
        while (at := reader.read(block, at, end)) < end:
            behind = reader.behind_sure(block, at, end)
            _parsed(events, block[at:behind], syntax, None)
            at = behind
        yield


# ------------------------------------------------------------------ documents


class _Document:
    """Reads Turtle or TriG; graph names are ignored."""

    def __init__(self, events: EventReader, syntax: RdfSyntax, path: Path):
        self._events = events
        self._path = path
        base = path.resolve().as_uri()
        self._syntax = syntax
        self._reader = DocumentReader(events, syntax.named_graphs, False, 1, base)
        self._held: list[bytes] = []
        """The open statement so far."""
        self._held_bytes = 0
        self._sought = False
        """Whether the open statement is one that pyoxigraph has to read."""

    def steps(self, blocks: Iterable[bytes]) -> Iterator[None]:
        """Read the document, a block at each step."""
        reader = self._reader
        self._events.follower = reader
        try:
            for block in blocks:
                self._read(block)
                yield
            if self._sought or reader.is_open or reader.open_block() is not False:
                raise NotSureError
        finally:
            self._events.follower = None

    def _read(self, block: bytes) -> None:
        """Read a block, including statements for pyoxigraph."""
        reader = self._reader
        at, end = 0, len(block)
        while True:
            if not self._sought:
                try:
                    is_read = reader.read(block, at, end)
                except LimitError as error:
                    raise KbError(f"{self._path}:{reader.begin_line}: {error}") from None
                start = reader.statement_start(block)
                if start >= 0:
                    self._forget()
                else:
                    start = at
                if is_read:
                    if reader.is_open:
                        self._hold(block[start:end])
                    return
                at = start
            self._hold(block[at:end])
            if self._held_bytes > _MAX_STATEMENT_BYTES + _BLOCK_BYTES:
                raise NotSureError
            text = b"".join(self._held)
            in_block = reader.open_block() is not False
            stop = statement_end(text, 0, len(text), in_block)
            if stop < 0:
                self._sought = True
                return
            if stop == 0:
                raise NotSureError
            self._parse(text[:stop], in_block)
            self._forget()
            self._sought = False
            block, at, end = text, stop, len(text)

    def _hold(self, text: bytes) -> None:
        """Append to the open statement, unless it is too long to be passed to pyoxigraph."""
        if self._held_bytes <= _MAX_STATEMENT_BYTES:
            self._held.append(text)
        self._held_bytes += len(text)

    def _forget(self) -> None:
        self._held.clear()
        self._held_bytes = 0

    def _parse(self, text: bytes, in_block: bool) -> None:
        """Read a statement with pyoxigraph, after the prefixes declared so far."""
        reader = self._reader
        front = b"".join(
            f"@prefix {name}: <{iri}> .\n".encode() for name, iri in reader.prefixes(text)
        )
        # The parser reads some tokens differently at the end of its input.
        whole = front + (b"{" + text + b" }\n" if in_block else text + b"\n")
        parser = _parsed(self._events, whole, self._syntax, reader.base_iri)
        for name, iri in parser.prefixes.items():
            reader.set_prefix(name, iri)
        if parser.base_iri != reader.base_iri:
            reader.set_base(parser.base_iri)
        reader.resume(reader.begin_line)
