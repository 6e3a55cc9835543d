"""Lines to RDF statements, each with the number of the line it ends on.

A statement is `(quad, line)`; `(None, line)` is a message delimiter. The parser is
pyoxigraph's. It tells lines only in its errors, so they are counted here. In N-Quads and
N-Triples a block of lines is parsed at once, and as every line holds at most one statement
the n-th quad is that of the n-th line that is no comment, blank or directive. Turtle and
TriG are handed to the parser line by line, so that a quad comes out while the line that
completes it is the last one handed in.

After an error that is skipped, N-Quads and N-Triples go on with the next line, and TriG and
Turtle wherever the parser finds its feet again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import repeat
from typing import IO, Protocol, TypeAlias, cast

import pyoxigraph as ox

from spaseq.io.lines import Lines
from spaseq.io.options import Malformed, Syntax, Troubles
from spaseq.rdf.syntax import parser_message

Statement: TypeAlias = tuple[ox.Quad | None, int]
RawTerm: TypeAlias = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple
RawFact: TypeAlias = tuple[RawTerm, ox.NamedNode, RawTerm]
"""A triple as the parser gives it: with the blank nodes of the file, maybe triple terms."""

FORMATS: dict[Syntax, ox.RdfFormat] = {
    "nq": ox.RdfFormat.N_QUADS,
    "nt": ox.RdfFormat.N_TRIPLES,
    "trig": ox.RdfFormat.TRIG,
    "ttl": ox.RdfFormat.TURTLE,
}
SYNTAX_NAMES: dict[Syntax, str] = {
    "nq": "N-Quads",
    "nt": "N-Triples",
    "trig": "TriG",
    "ttl": "Turtle",
}

_VERSION = re.compile(rb"[ \t]*VERSION[ \t]*(?:\"[^\"]*\"|'[^']*')[ \t]*(?:#.*)?")
_MESSAGE = re.compile(rb"[ \t]*MESSAGE[ \t]*(?:#.*)?")


def line_statements(lines: Lines, syntax: Syntax, troubles: Troubles) -> Iterator[Statement]:
    """The statements and message delimiters of an N-Quads or N-Triples file."""
    for first, block in lines.blocks():
        yield from block_statements(first, block, lines.name, syntax, troubles)


def block_statements(
    first: int, block: bytes, file: str, syntax: Syntax, troubles: Troubles
) -> Iterator[Statement]:
    """Those of some whole lines of such a file; `first` is the number of the first line."""
    if b"VERSION" not in block and b"MESSAGE" not in block:
        yield from _plain_block(first, block, file, syntax, troubles)
        return
    start = 0
    parts = block.split(b"\n")
    for index, line in enumerate(parts):
        message = _MESSAGE.fullmatch(line)
        if message or _VERSION.fullmatch(line):
            run = b"\n".join(parts[start:index])
            yield from _plain_block(first + start, run, file, syntax, troubles)
            start = index + 1
            if message:
                yield None, first + index
    run = b"\n".join(parts[start:])
    yield from _plain_block(first + start, run, file, syntax, troubles)


def _plain_block(
    first: int, block: bytes, file: str, syntax: Syntax, troubles: Troubles
) -> Iterator[Statement]:
    """A block without directives; `first` is the number of its first line."""
    while block:
        parts = block.split(b"\n")
        numbers = [
            number
            for number, line in enumerate(parts, first)
            if line.startswith((b"<", b"_")) or _has_statement(line)
        ]
        if not numbers:
            return
        left = iter(numbers)
        try:
            # zip asks the parser first, so after an error `left` begins with the first line
            # that gave no quad.
            yield from zip(ox.parse(block, format=FORMATS[syntax]), left, strict=False)
            return
        except SyntaxError as error:
            # A statement without its dot is only missed where the next line begins.
            said = first - 1 + max(error.lineno or 1, 1)
            bad = min(said, next(left, said))
            after = next(filter(_has_statement, parts[bad - first + 1 :]), b"")
            torn = bad == first + len(parts) - 1
            troubles.malformed = Malformed(parts[bad - first], after, torn)
            troubles.report(explained(error, syntax, bad == said), file, bad)
            block = b"\n".join(parts[bad - first + 1 :])
            first = bad + 1


def _has_statement(line: bytes) -> bool:
    text = line.lstrip()
    return bool(text) and not text.startswith(b"#")


def explained(error: SyntaxError, syntax: Syntax, placed: bool = True) -> str:
    """The parser's message without its line, and what was being read."""
    said = parser_message(error)
    column = f", column {error.offset}" if error.offset and placed else ""
    hint = ""
    if "version" in said.lower() or "MESSAGE" in said or "@message" in said:
        hint = (
            "; a message delimiter stands on its own, after whole statements, in a file that "
            'begins with VERSION "1.1-messages" or is read with --events message'
        )
    return f"not {SYNTAX_NAMES[syntax]}{column}: {said}{hint}"


class Numbered(Protocol):
    """Lines that are handed out one by one; `number` is that of the last one."""

    number: int

    def readline(self) -> bytes: ...


class LineFeed:
    """A binary file for the parser that hands out at most one line at a time."""

    def __init__(self, lines: Numbered):
        self._lines = lines
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, never beyond the end of a line; empty at the end."""
        line = self._rest or self._lines.readline()
        if 0 <= size < len(line):
            self._rest = line[size:]
            return line[:size]
        self._rest = b""
        return line


def document_statements(lines: Lines, syntax: Syntax, troubles: Troubles) -> Iterator[Statement]:
    """The statements of a Turtle or TriG file without message delimiters."""
    parser = feed_parser(lines, syntax, lines.base())
    yield from fed_statements(parser, lines, lines.name, syntax, troubles)


def feed_parser(lines: Numbered, syntax: Syntax, base: str | None) -> ox.QuadParser:
    """A parser that draws its lines from `lines`, as it needs them."""
    feed = cast(IO[bytes], LineFeed(lines))
    return ox.parse(feed, format=FORMATS[syntax], base_iri=base)


def fed_statements(
    parser: ox.QuadParser, lines: Numbered, file: str, syntax: Syntax, troubles: Troubles
) -> Iterator[Statement]:
    """The statements of a parser that draws from `lines`, errors reported."""
    before = lines.number
    # zip asks the parser first, so the number is that of the line that completed the quad.
    statements = zip(parser, (lines.number for _ in repeat(None)), strict=False)
    failed_at = (-1, -1)
    while True:
        try:
            yield from statements
            return
        except SyntaxError as error:
            place = (error.lineno or 0, error.offset or 0)
            if place == failed_at:
                return  # the parser repeats its last error at the end of the file
            failed_at = place
            troubles.report(explained(error, syntax), file, before + max(place[0], 1))
