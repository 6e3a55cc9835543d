"""Lines → RDF statements, each with the number of the line that completes it.

A statement is `(quad, line)`; `(None, line)` is a message delimiter. pyoxigraph parses the lines.
It reports line numbers in errors only, so they are counted here. In line-based syntaxes a block of
lines is parsed at once: every line has at most one statement, so the n-th quad is on the n-th line
that is no comment, blank or directive. Documents (Turtle, TriG) are passed to the parser line by
line, and it returns a quad before it reads the line that follows the quad's last line.

After an error that is skipped, a line-based syntax is read from the next line, and a document from
where the parser recovers.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from typing import IO, TYPE_CHECKING, TypeAlias, cast

import pyoxigraph as ox

from spaseq.errors import InputError
from spaseq.rdf.formats import RdfSyntax, parser_format
from spaseq.rdf.line_feed import LineFeed, Numbered
from spaseq.rdf.syntax import (
    REPEATED_MAX_BYTES,
    LimitError,
    nesting,
    parser_failure,
    parser_message,
)
from spaseq.records import dataclass

if TYPE_CHECKING:
    from spaseq.io.lines import Lines
    from spaseq.io.read_options import Troubles

Statement: TypeAlias = tuple[ox.Quad | None, int]
RawTerm: TypeAlias = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple
RawFact: TypeAlias = tuple[RawTerm, ox.NamedNode, RawTerm]
"""A triple of the parser: with the blank nodes of the file, and possibly triple terms."""

_FEW_LINES = 64
"""Lines that are parsed at once after an error among them."""
_FEW_BYTES = 1 << 12
"""Directives that may be read again any number of times."""
_COUNTED_MAX_CHARACTERS = 1 << 29
"""For the column of an error the parser counts the characters before it on its line. What all
errors of one line may take."""
_DEFAULT_GRAPH = ox.DefaultGraph()
_VERSION = re.compile(rb"[ \t]*VERSION[ \t]*(?:\"[^\"]*\"|'[^']*')[ \t]*(?:#.*)?")
_MESSAGE = re.compile(rb"[ \t]*MESSAGE[ \t]*(?:#.*)?")


@dataclass(frozen=True, slots=True)
class Malformed:
    """A malformed line: its text, the next statement's text, whether it ends the file."""

    text: bytes
    following: bytes
    last: bool


def line_statements(lines: Lines, syntax: RdfSyntax, troubles: Troubles) -> Iterator[Statement]:
    """The statements and message delimiters of an N-Quads or N-Triples file."""
    for first, block in lines.blocks():
        yield from block_statements(first, block, lines.name, syntax, troubles)


def block_statements(
    first: int, block: bytes, file: str, syntax: RdfSyntax, troubles: Troubles
) -> Iterator[Statement]:
    """The statements and message delimiters of whole lines of an N-Quads or N-Triples file.

    `first` is the number of the first line.
    """
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
    first: int, block: bytes, file: str, syntax: RdfSyntax, troubles: Troubles
) -> Iterator[Statement]:
    """A block without directives; `first` is the number of its first line.

    After an error, fewer lines are parsed at once, so that many errors take linear time.
    """
    parts = block.split(b"\n")
    at, most = 0, len(parts)
    while at < len(parts):
        end = min(at + most, len(parts))
        lines = parts[at:end]
        numbers = [
            number
            for number, line in enumerate(lines, first + at)
            if line.startswith((b"<", b"_")) or _has_statement(line)
        ]
        if not numbers:
            at = end
            continue
        left = iter(numbers)
        text = b"\n".join(lines) if end - at < len(parts) else block
        try:
            if b"<<(" in text:
                _check_nesting(lines)
            # zip calls the parser first, so after an error `left` begins with the first line
            # without a quad.
            yield from zip(ox.parse(text, format=parser_format(syntax)), left, strict=False)
            at = end
            continue
        except LimitError as error:
            bad = at + error.args[1]
            failure = str(error.args[0])
        except SyntaxError as error:
            # The parser misses the dot of a statement only at the beginning of the next line.
            said = at - 1 + max(error.lineno or 1, 1)
            bad = min(said, next(left, first + said) - first)
            failure = explained(error, syntax, bad == said)
        except BaseException as error:
            reason = parser_failure(error)
            if reason is None:
                raise
            failure, bad = reason, next(left, first) - first
        most = _FEW_LINES
        if at < bad == end - 1 < len(parts) - 1:
            at = bad  # the line that follows may be part of the message
            continue
        later = (parts[place] for place in range(bad + 1, len(parts)))
        after = next(filter(_has_statement, later), b"")
        troubles.malformed = Malformed(parts[bad], after, bad + 1 == len(parts))
        troubles.report(failure, file, first + bad)
        at = bad + 1


def _check_nesting(lines: list[bytes]) -> None:
    for index, line in enumerate(lines):
        try:
            nesting(line)
        except LimitError as error:
            raise LimitError(str(error), index) from None


def _has_statement(line: bytes) -> bool:
    text = line.lstrip()
    return bool(text) and not text.startswith(b"#")


def explained(error: SyntaxError, syntax: RdfSyntax, placed: bool = True) -> str:
    """The parser's message without its line, with the syntax that was read."""
    said = parser_message(error)
    column = f", column {error.offset}" if error.offset and placed else ""
    hint = ""
    if "version" in said.lower() or "MESSAGE" in said or "@message" in said:
        hint = (
            "; a message delimiter follows whole statements, in a file that "
            'begins with VERSION "1.1-messages" or is read with --events message'
        )
    return f"not {syntax.title}{column}: {said}{hint}"


def directives(prefixes: Iterable[tuple[str, str]]) -> bytes:
    """The declarations of prefixes on one line; empty if there are none."""
    text = " ".join(f"@prefix {name}: <{iri}> ." for name, iri in prefixes)
    return text.encode() + b"\n" if text else b""


def document_statements(lines: Lines, syntax: RdfSyntax, troubles: Troubles) -> Iterator[Statement]:
    """The statements of a Turtle or TriG file without message delimiters."""
    yield from Document(lines, lines.name, syntax, lines.base(), troubles).statements()


class Document:
    """A Turtle or TriG document, parsed line by line; `base` is the base IRI at its end.

    Args:
        preamble: The context of the lines, on one line that is not counted: prefixes, and possibly
            the beginning of the block of a graph.
        opened: The line on which that block begins.
        in_graph: Whether its statements are of a named graph, or are the first of the block.
    """

    def __init__(
        self,
        lines: Numbered,
        file: str,
        syntax: RdfSyntax,
        base: str | None,
        troubles: Troubles,
        preamble: bytes = b"",
        opened: int = 0,
        in_graph: bool = False,
    ):
        self._lines = lines
        self._file = file
        self._syntax = syntax
        self._troubles = troubles
        self._feed = LineFeed(lines)
        self._in_block = False
        self._opened = opened
        self._in_graph = in_graph
        self.base = base
        self.prefixes: dict[str, str] = {}
        """The prefixes at the end."""
        self.preamble = preamble
        """The same as directives on one line."""
        if preamble:
            self._lines = _Resumed(lines)
            self._lines.read_again(preamble, [], False)

    def statements(self) -> Iterator[Statement]:
        """The statements. After an error, which is reported, reading resumes after it."""
        while True:
            self._troubles.repeated_bytes += max(len(self.preamble) - _FEW_BYTES, 0)
            if self._troubles.repeated_bytes > REPEATED_MAX_BYTES:
                said = "too much would be read again after its errors and for its messages"
                raise InputError(said, self._file, self._lines.number + 1)
            self._feed = LineFeed(self._lines, remembers=self._troubles.on_error == "skip")
            parser = ox.parse(
                cast(IO[bytes], self._feed), format=parser_format(self._syntax), base_iri=self.base
            )
            behind: list[bytes] = []
            try:
                torn = yield from self._parsed(parser)
                if torn is None:
                    return
                behind = torn
                self._troubles.repeated_bytes += sum(map(len, behind))
            except LimitError as error:
                self._report(str(error))
            except BaseException as error:
                failure = parser_failure(error)
                if failure is None:
                    raise
                self._report(failure)
            finally:
                self.base = parser.base_iri or self.base
                self.prefixes = parser.prefixes
                self.preamble = directives(self.prefixes.items())
            # This parser cannot recover: the next line is the first one of another parser.
            if not isinstance(self._lines, _Resumed):
                self._lines = _Resumed(self._lines)
            self._lines.read_again(self.preamble, behind, self._in_block)
            self._in_block = False

    def _report(self, message: str) -> None:
        self._troubles.report(message, self._file, self._feed.began)

    def _parsed(self, parser: ox.QuadParser) -> Generator[Statement, None, list[bytes] | None]:
        """The statements of a parser that reads the lines. Syntax errors are reported.

        Returns the lines read after an error that the parser does not recover from; None at the
        end. `_in_block` says whether the block of a graph is open there.
        """
        lines, feed = self._lines, self._feed
        before = lines.number - bool(self.preamble)
        failed_at, counted = (-1, -1), 0
        in_graph, preamble = self._in_graph, self.preamble
        self._in_graph = False
        while True:
            try:
                for quad in parser:
                    feed.expansion.count(quad)
                    # The last line read completed the statement.
                    feed.statement_ended()
                    in_graph = quad.graph_name != _DEFAULT_GRAPH
                    yield feed.restored(quad), lines.number
                return None
            except SyntaxError as error:
                place = (error.lineno or 0, error.offset or 0)
                if place == failed_at:
                    return None  # the parser repeats its last error at the end of the file
                counted = place[1] + (counted if place[0] == failed_at[0] else 0)
                failed_at = place
                feed.recover()
                line = before + max(place[0], 1)
                self._troubles.report(explained(error, self._syntax), self._file, line)
                if counted > _COUNTED_MAX_CHARACTERS:
                    said = "the line has too many errors for its length to be skipped one by one"
                    raise InputError(said, self._file, line) from None
                found = feed.torn(line)
                if found is not None:
                    front, torn, behind = found
                    front = front.removeprefix(preamble)
                    opened, closed = front.rfind(b"{"), front.rfind(b"}")
                    # Or the block that the preamble opens was opened on one of these lines.
                    in_graph |= line - front.count(b"\n") <= self._opened < line
                    in_block = in_graph if opened == closed else opened > closed
                    self._in_block = in_block and b"{" not in torn and line != self._opened
                    return behind


class _Resumed:
    """Lines, some of which are read again, after the prefixes declared so far."""

    def __init__(self, lines: Numbered):
        self._lines = lines
        self._ahead = deque[bytes]()
        self._preamble = b""
        self._is_passing = False
        self.number = lines.number

    def read_again(self, preamble: bytes, read: list[bytes], in_block: bool) -> None:
        """Return the preamble, which has no number, and the last lines read again.

        `in_block`: the rest of the block of a graph is skipped, since its graph is not known.
        """
        self._preamble = preamble
        self._is_passing = in_block
        self._ahead.extendleft(reversed(read))
        self.number -= len(read)

    def readline(self) -> bytes:
        if self._preamble:
            preamble, self._preamble = self._preamble, b""
            return preamble
        line = self._next()
        if self._is_passing and line:
            text = line.strip()
            self._is_passing = not (text.startswith(b"}") or text.endswith(b"}"))
            return b"\n"  # the parser counts the line
        return line

    def _next(self) -> bytes:
        if self._ahead:
            self.number += 1
            return self._ahead.popleft()
        line = self._lines.readline()
        self.number = self._lines.number
        return line
