"""Lines of a document → the bytes that pyoxigraph reads, one line or one long string at a time.

The parser rescans an incomplete token whenever it receives more bytes of it, and buffers at most
`PARSER_TOKEN_BYTES` of one token. The feed therefore passes on a multi-line string as a whole, and
an IRI that is not closed on its line. It replaces the content of a string that is too long with a
placeholder, for which `restored` substitutes the content. It counts open triple terms and brackets,
since the parser recurses into nested triple terms and stores what encloses a bracket.

Cost: linear in the bytes; memory is that of one line or one long string.
"""

from __future__ import annotations

import uuid
from typing import Protocol

import pyoxigraph as ox

from spaseq.rdf.native._bounds import TurtleScanner
from spaseq.rdf.syntax import Expansion, LimitError, nesting, parser_failure
from spaseq.rdf.turtle_strings import COMMENT, WORD, LongStrings, is_torn, tokens_of, unescaped

PARSER_TOKEN_BYTES = 1 << 24
"""The longest token that pyoxigraph buffers."""
MAX_STRING_BYTES = 1 << 28
"""The longest multi-line string that the feed accepts."""
_CUT_BYTES = PARSER_TOKEN_BYTES // 2
_SHORT_STRING_BYTES = 1 << 20
_SHOWN_BYTES = 1 << 16
_RECENT_MAX_LINES = 1 << 14
"""Lines that are stored if no statement ends on them."""


class Numbered(Protocol):
    """A source of lines; `number` is the number of the last line read, from 1."""

    number: int

    def readline(self) -> bytes: ...


class LineFeed:
    """A binary file for the parser. `began` is the number of the first line of the last read.

    Args:
        lines: The source of lines.
        line_based: Whether a string ends on its line, as in N-Triples.
        remembers: Whether to store the lines since the last statement, for `torn`.
    """

    def __init__(self, lines: Numbered, line_based: bool = False, remembers: bool = False):
        self._lines = lines
        self._line_based = line_based
        self._recent: list[bytes] | None = [] if remembers else None
        self._first_recent = 0
        """The number of the first of them."""
        self._strings = LongStrings()
        self._text = b""
        self._at = 0
        self._open_triples = 0
        self._brackets = TurtleScanner()
        self._judged = -1, False
        """The line of the last error, and whether it is torn."""
        self._contents: dict[str, str] = {}
        self.began = lines.number + 1
        self.expansion = Expansion()

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, up to the end of a line or long string; empty at the end."""
        if self._at == len(self._text):
            self._text, self._at = self._next(), 0
        end = len(self._text) if size < 0 else min(self._at + size, len(self._text))
        part = self._text[self._at : end]
        self._at = end
        return part

    def statement_ended(self) -> None:
        """Record that the parser has returned a statement, so that no triple term is open."""
        self._open_triples = 0
        if self._recent:
            self._forget(len(self._recent) - 1)

    def recover(self) -> None:
        """Record that the parser skips the brackets of a malformed statement."""
        self._brackets.recover()

    def torn(self, number: int) -> tuple[bytes, bytes, list[bytes]] | None:
        """A line that leaves a string or an IRI open, or is not UTF-8.

        Returns the lines before it since the last statement, the line, and the lines after it read
        so far. Returns None for any other line, after which the parser recovers by itself.
        """
        place = number - self._first_recent
        if not self._recent or not 0 <= place < len(self._recent):
            return None
        if self._judged[0] != number:
            self._judged = number, is_torn(self._recent[place])
        if not self._judged[1]:
            return None
        front = b"".join(self._recent[:place])
        return front, self._recent[place], self._recent[place + 1 :]

    def restored(self, quad: ox.Quad) -> ox.Quad:
        """The statement with placeholders replaced by the contents of long strings."""
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
            if not self._recent:
                self._first_recent = self._lines.number
            self._recent.append(line)
            if len(self._recent) > _RECENT_MAX_LINES:
                self._forget(_RECENT_MAX_LINES // 2)
        return line

    def _forget(self, count: int) -> None:
        """Remove the first of the stored lines."""
        assert self._recent is not None
        del self._recent[:count]
        self._first_recent += count

    def _next(self) -> bytes:
        line = self._read()
        self.expansion.size += len(line)
        self.began = self._lines.number
        if b"<<(" in line or self._open_triples:
            self._open_triples = nesting(line, self._open_triples)
        self._brackets.read(line)
        if not self._line_based:
            self._strings.read(line)
            if self._strings.inside is not None or self._brackets.in_iri:
                line = self._open_token(line)
        return line if len(line) <= _CUT_BYTES else self._shortened(line)

    def _open_token(self, first: bytes) -> bytes:
        """A line, and the lines after it up to the end of the open string or torn IRI."""
        parts, size = [first], len(first)
        while self._strings.inside is not None or (
            self._brackets.in_iri and size < PARSER_TOKEN_BYTES
        ):
            line = self._read()
            self.expansion.size += len(line)
            self._brackets.read(line)
            if not line:
                text = b"".join(parts)
                # For its error message the parser needs the open quotes, not the whole rest.
                return text if size <= _CUT_BYTES else text[:_SHOWN_BYTES]
            self._strings.read(line)
            parts.append(line)
            size += len(line)
            if size > MAX_STRING_BYTES:
                raise LimitError(f"a string of more than {MAX_STRING_BYTES >> 20} MiB")
        return b"".join(parts)

    def _shortened(self, text: bytes) -> bytes:
        """The text without long comments, and with placeholders in place of long strings.

        A placeholder is on the line on which its string ends.
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
            placeholder = f"spaseq-{uuid.uuid4().hex}"
            self._contents[placeholder] = content
            parts += [text[position:start], b"\n" * text.count(b"\n", start, end)]
            parts.append(b'"' + placeholder.encode() + b'"')
            position = end
        return b"".join((*parts, text[position:]))
