"""Lines of a document → the bytes that pyoxigraph asks for, one line or one long string at a time.

The parser reads a token anew whenever it gets more bytes of it, and holds at most
`PARSER_TOKEN_BYTES` of one. Therefore a string of many lines is handed out as a whole, and the
content of a string that is too long is kept here: the parser sees a mark in its place, for which
`restored` puts the content back. Triple terms are counted, since the parser calls itself for each
one inside of another.

Cost: linear in the bytes; memory is that of one line or one long string.
"""

from __future__ import annotations

import uuid
from collections import deque
from typing import Protocol

import pyoxigraph as ox

from spaseq.rdf.syntax import LimitError, nesting, parser_failure
from spaseq.rdf.turtle_strings import COMMENT, WORD, LongStrings, is_torn, tokens_of, unescaped

PARSER_TOKEN_BYTES = 1 << 24
"""The longest token that pyoxigraph holds."""
MAX_STRING_BYTES = 1 << 28
"""The longest string of many lines that is read."""
_CUT_BYTES = PARSER_TOKEN_BYTES // 2
_SHORT_STRING_BYTES = 1 << 20
_SHOWN_BYTES = 1 << 16


class Numbered(Protocol):
    """Lines that are handed out one by one; `number` is that of the last one."""

    number: int

    def readline(self) -> bytes: ...


class LineFeed:
    """A binary file for the parser. `began` is the number of the first line handed out last.

    Args:
        lines: where the lines are from.
        line_based: whether a string ends on its line, as in N-Triples.
        remembers: whether the lines since the last statement are kept, for `torn`.
    """

    def __init__(self, lines: Numbered, line_based: bool = False, remembers: bool = False):
        self._lines = lines
        self._line_based = line_based
        self._recent: deque[tuple[int, bytes]] | None = deque() if remembers else None
        self._strings = LongStrings()
        self._text = b""
        self._at = 0
        self._open_triples = 0
        self._contents: dict[str, str] = {}
        self.began = lines.number + 1

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, never beyond the end of a line or long string; empty at the end."""
        if self._at == len(self._text):
            self._text, self._at = self._next(), 0
        end = len(self._text) if size < 0 else min(self._at + size, len(self._text))
        part = self._text[self._at : end]
        self._at = end
        return part

    def statement_ended(self) -> None:
        """The parser has given a statement, so it is inside of no triple term."""
        self._open_triples = 0
        while self._recent is not None and len(self._recent) > 1:
            self._recent.popleft()

    def torn(self, number: int) -> tuple[bytes, bytes, list[bytes]] | None:
        """A line that leaves a string or an IRI open, or is no UTF-8.

        Returns what is in front of it since the last statement, the line, and the lines behind it
        so far; None for any other line, since the parser finds its way behind that one.
        """
        recent = list(self._recent or ())
        place = next((i for i, (known, _) in enumerate(recent) if known == number), None)
        if place is None or not is_torn(recent[place][1]):
            return None
        lines = [line for _, line in recent]
        return b"".join(lines[:place]), lines[place], lines[place + 1 :]

    def restored(self, quad: ox.Quad) -> ox.Quad:
        """The statement with the contents of the strings that the parser did not see."""
        term = quad.object
        if not self._contents or not isinstance(term, ox.Literal):
            return quad
        content = self._contents.pop(term.value, None)
        if content is None:
            return quad
        if term.language is None:
            literal = ox.Literal(content, datatype=term.datatype)
        else:
            literal = ox.Literal(content, language=term.language, direction=term.direction)
        return ox.Quad(quad.subject, quad.predicate, literal, quad.graph_name)

    def _read(self) -> bytes:
        line = self._lines.readline()
        if self._recent is not None and line:
            self._recent.append((self._lines.number, line))
        return line

    def _next(self) -> bytes:
        line = self._read()
        self.began = self._lines.number
        if b"<<(" in line or self._open_triples:
            self._open_triples = nesting(line, self._open_triples)
        if not self._line_based:
            self._strings.read(line)
            if self._strings.inside is not None:
                line = self._long_string(line)
        return line if len(line) <= _CUT_BYTES else self._shortened(line)

    def _long_string(self, first: bytes) -> bytes:
        """A line, and those that follow it to the end of the string that is open."""
        parts, size = [first], len(first)
        while self._strings.inside is not None:
            line = self._read()
            if not line:
                text = b"".join(parts)
                # The parser names the quotes that are open, and does not need all of the rest.
                return text if size <= _CUT_BYTES else text[:_SHOWN_BYTES]
            self._strings.read(line)
            parts.append(line)
            size += len(line)
            if size > MAX_STRING_BYTES:
                raise LimitError(f"a string of more than {MAX_STRING_BYTES >> 20} MiB")
        return b"".join(parts)

    def _shortened(self, text: bytes) -> bytes:
        """The text without long comments, and with marks in place of its long strings.

        A mark is on the line on which its string ends.
        """
        parts, position = [], 0
        for start, end, quotes in tokens_of(text):
            if end - start < _SHORT_STRING_BYTES:
                continue
            if quotes == COMMENT:
                parts.append(text[position:start])
                position = end
                continue
            if quotes == WORD:
                if end - start >= PARSER_TOKEN_BYTES:
                    raise LimitError(parser_failure(MemoryError()))
                continue
            content = unescaped(text[start + quotes : end - quotes])
            if content is None:
                continue
            mark = f"spaseq-{uuid.uuid4().hex}"
            self._contents[mark] = content
            parts += [text[position:start], b"\n" * text.count(b"\n", start, end)]
            parts.append(b'"' + mark.encode() + b'"')
            position = end
        return b"".join((*parts, text[position:]))
