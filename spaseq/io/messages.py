"""RDF Message Logs in Turtle and TriG → statements, with a mark after each message.

A log is cut at its delimiters (`MESSAGE`, or `@message` and a dot) by a scan for strings, IRIs,
comments and prefixed names. Each message is then a separate document, parsed with the prefixes and
the base IRI declared before it. A delimiter inside an unfinished statement or an open graph block
is therefore an error, as the specification requires. Memory: one message.

Source: W3C RDF Stream Processing Community Group, *RDF Messages*, section 2.1.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from spaseq.io.statements import Document, Statement
from spaseq.rdf.formats import RdfSyntax
from spaseq.rdf.line_feed import Numbered
from spaseq.rdf.turtle_strings import LongStrings

if TYPE_CHECKING:
    from spaseq.io.lines import Lines
    from spaseq.io.read_options import Troubles

_SUSPECT = re.compile(rb"message|\"\"\"|'''|#", re.IGNORECASE)


class Passage:
    """Some lines of a file, to be read again with their numbers in the file."""

    def __init__(self, before: int):
        self.number = before
        self.lines: deque[bytes] = deque()

    def readline(self) -> bytes:
        if not self.lines:
            return b""
        self.number += 1
        return self.lines.popleft()


class Scanner:
    """Finds the delimiters, line by line.

    `after_string`: whether the last token was a string, so that `@message` would be its language
    tag. `dotless`: whether the last token was an `@message` whose dot has not been read.
    """

    def __init__(self) -> None:
        self._strings = LongStrings()
        self.after_string = False
        self.dotless = False

    def marks(self, line: bytes) -> list[tuple[int, int, bool]]:
        """(start, end, whether it ends a message) of the parts of delimiters."""
        inside = self._strings.inside is not None
        if not inside and not self.dotless and _SUSPECT.search(line) is None:
            if line.strip():
                self.after_string = line.rstrip().endswith((b'"', b"'"))
            return []
        found: list[tuple[int, int, bool]] = []
        self.after_string |= inside
        for token in self._strings.tokens(line):
            if token.lastgroup == "long":
                self.after_string = True
            elif token.lastgroup != "comment":
                self._mark(token, found)
                self.after_string = token.lastgroup == "string"
        return found

    def _mark(self, token: re.Match[bytes], found: list[tuple[int, int, bool]]) -> None:
        """Append the parts of delimiters in a token that is neither a comment nor a long string."""
        start, end = token.span()
        if self.dotless:
            self.dotless = False
            if token[0] != b".":
                raise DotlessDelimiter
            found.append((start, end, False))
        elif not self.after_string and token[0] in (b"@message", b"@message."):
            self.dotless = token[0] == b"@message"
            found.append((start, end, True))
        elif token[0].upper() == b"MESSAGE":
            found.append((start, end, True))


class DotlessDelimiter(Exception):
    """`@message` without its dot."""


def message_statements(lines: Lines, syntax: RdfSyntax, troubles: Troubles) -> Iterator[Statement]:
    """The statements of a Turtle or TriG log, with `(None, line)` for each delimiter."""
    yield from statements_of(lines, Context(syntax, lines.name, lines.base(), troubles))


def statements_of(lines: Numbered, context: Context) -> Iterator[Statement]:
    """The same for lines of a file that depend on lines before them."""
    scanner = Scanner()
    passage = Passage(lines.number)
    while line := lines.readline():
        try:
            marks = scanner.marks(line)
        except DotlessDelimiter:
            context.report("@message must be followed by a dot", lines.number)
            marks = []
        start = 0
        for begin, end, ends_message in marks:
            # Blanks before the rest preserve its columns in the file.
            passage.lines.append(b" " * start + line[start:begin])
            start = end
            if ends_message:
                yield from context.statements(passage)
                yield None, lines.number
                passage = Passage(lines.number - 1)
            else:
                line = passage.lines.pop() + b" " * (end - begin) + line[end:]
                start = 0
        passage.lines.append(b" " * start + line[start:])
    yield from context.statements(passage)


class Context:
    """The prefixes and the base IRI declared so far, which hold for later messages too.

    Args:
        preamble, opened, in_graph: What the first message depends on, as for `Document`.
    """

    def __init__(
        self,
        syntax: RdfSyntax,
        file: str,
        base: str | None,
        troubles: Troubles,
        preamble: bytes = b"",
        opened: int = 0,
        in_graph: bool = False,
    ):
        self._syntax = syntax
        self._file = file
        self._base = base
        self._troubles = troubles
        self._preamble = preamble
        self._opened = opened
        self._in_graph = in_graph

    def report(self, message: str, line: int) -> None:
        self._troubles.report(message, self._file, line)

    def statements(self, passage: Passage) -> Iterator[Statement]:
        document = Document(
            passage,
            self._file,
            self._syntax,
            self._base,
            self._troubles,
            self._preamble,
            self._opened,
            self._in_graph,
        )
        yield from document.statements()
        self._base, self._preamble = document.base, document.preamble
        self._opened, self._in_graph = 0, False
