"""RDF Message Logs in Turtle and TriG to statements with a mark after each message.

A log is cut at its delimiters (`MESSAGE`, or `@message` and a dot) by a scan that knows
strings, IRIs, comments and prefixed names and nothing else; each message is then a document
of its own, parsed with the prefixes and the base that are in force where it begins. A
delimiter inside an unfinished statement or an open graph block is therefore an error, as it
should be. Only one message is held in memory.

Source: W3C RDF Stream Processing Community Group, *RDF Messages*, section 2.1.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from spaseq.io.lines import Lines
from spaseq.io.read_options import Troubles
from spaseq.io.statements import Document, Statement
from spaseq.rdf.formats import RdfSyntax
from spaseq.rdf.turtle_strings import TOKEN, long_string_end

_SUSPECT = re.compile(rb"message|\"\"\"|'''|#", re.IGNORECASE)


class Passage:
    """Some lines of a file, to be read again under the numbers they have there."""

    def __init__(self, before: int):
        self.number = before
        self.lines: deque[bytes] = deque()

    def readline(self) -> bytes:
        if not self.lines:
            return b""
        self.number += 1
        return self.lines.popleft()


class Scanner:
    """Where the delimiters are, line by line.

    `inside` is the quote of the long string the next line begins in, `after_string` whether
    the last token was a string (then `@message` is its language tag), `dotless` whether it
    was an `@message` that still lacks its dot.
    """

    def __init__(self) -> None:
        self.inside: bytes | None = None
        self.after_string = False
        self.dotless = False

    def marks(self, line: bytes) -> list[tuple[int, int, bool]]:
        """(start, end, whether it ends a message) of all that belongs to a delimiter."""
        if self.inside is None and not self.dotless and _SUSPECT.search(line) is None:
            if line.strip():
                self.after_string = line.rstrip().endswith((b'"', b"'"))
            return []
        found: list[tuple[int, int, bool]] = []
        position = self._leave_long_string(line, 0) if self.inside else 0
        while token := TOKEN.search(line, position):
            position = token.end()
            if token.lastgroup == "long":
                self.inside = token[0]
                position = self._leave_long_string(line, position)
            elif token.lastgroup != "comment":
                self._take(token, found)
                self.after_string = token.lastgroup == "string"
        return found

    def _leave_long_string(self, line: bytes, position: int) -> int:
        end = long_string_end(line, position, self.inside or b'"""')
        if end < 0:
            return len(line)
        self.inside = None
        self.after_string = True
        return end

    def _take(self, token: re.Match[bytes], found: list[tuple[int, int, bool]]) -> None:
        """One token that is neither comment nor long string."""
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
    """`@message` without the dot it must have."""


def message_statements(lines: Lines, syntax: RdfSyntax, troubles: Troubles) -> Iterator[Statement]:
    """The statements of a Turtle or TriG log; `(None, line)` stands for each delimiter."""
    scanner = Scanner()
    context = _Context(syntax, lines.name, lines.base(), troubles)
    passage = Passage(lines.number)
    while line := lines.readline():
        try:
            marks = scanner.marks(line)
        except DotlessDelimiter:
            troubles.report("@message must be followed by a dot", lines.name, lines.number)
            marks = []
        start = 0
        for begin, end, ends_message in marks:
            # Blanks in front of the rest keep its columns what they are in the file.
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


class _Context:
    """The prefixes and the base in force, which outlive the messages that declare them."""

    def __init__(self, syntax: RdfSyntax, file: str, base: str | None, troubles: Troubles):
        self._syntax = syntax
        self._file = file
        self._base = base
        self._troubles = troubles
        self._preamble = b""

    def statements(self, passage: Passage) -> Iterator[Statement]:
        if self._preamble:
            passage.lines.appendleft(self._preamble)
            passage.number -= 1
        document = Document(passage, self._file, self._syntax, self._base, self._troubles)
        yield from document.statements()
        self._base, self._preamble = document.base, document.preamble
