"""Finds where strings and statements of Turtle and TriG end, without parsing anything else.

Cost: linear in the bytes; a line outside long strings without a triple quote costs one search.
Source: RDF 1.2 Turtle, productions STRING_LITERAL_QUOTE to STRING_LITERAL_LONG_SINGLE_QUOTE.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

TOKEN = re.compile(
    rb"""(?P<comment>\#[^\n\r]*)
    | <[^\x00-\x20<>"{}|^`]*>
    | (?P<long>\"{3}|'{3})
    | (?P<string>"[^"\\\n\r]*+(?:\\.[^"\\\n\r]*+)*+"|'[^'\\\n\r]*+(?:\\.[^'\\\n\r]*+)*+')
    | (?P<word>(?:\\.|[^\s\#<>"'(){}\[\],;\\])[^\s\#<>"'(){}\[\],;\\]*
        (?:\\.[^\s\#<>"'(){}\[\],;\\]*+)*+)
    | \S""",
    re.VERBOSE,
)
"""One token, classified as string, comment, word or other."""

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_CHARACTERS = {
    "t": "\t",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "f": "\f",
    '"': '"',
    "'": "'",
    "\\": "\\",
}


def long_string_end(text: bytes, start: int, quotes: bytes) -> int:
    """The offset after the end of the long string whose content starts at `start`, or -1."""
    position = start
    while (end := text.find(quotes, position)) >= 0:
        first = end
        while first > start and text[first - 1] == 0x5C:
            first -= 1
        if (end - first) % 2 == 0:  # an even number of backslashes does not escape the quotes
            return end + len(quotes)
        position = end + 1
    return -1


def statement_end(text: bytes, start: int, end: int, in_block: bool) -> int:
    """The offset of the end of the statement at `start`; -1 if it is not before `end`.

    The end is a dot, or the brace that closes the block of a graph. A later end is not wrong, since
    pyoxigraph may read several statements at once.
    """
    position = start
    while token := TOKEN.search(text, position, end):
        position = token.end()
        if token.lastgroup == "long":
            position = long_string_end(text, position, token[0])
            if not 0 <= position <= end:
                return -1
        elif token.lastgroup == "word" and token[0].endswith(b"."):
            if text[position : position + 1] == b"\\":
                return start  # a bad escape of a name that the dot is part of
            if not token[0].endswith(b"\\."):
                return position
        elif token[0] == b"}" and in_block and text[token.start() - 1 : token.start()] != b"|":
            return token.start()
    return -1


class LongStrings:
    """Tracks open strings line by line. `inside` is the quotes of the open string, or None."""

    def __init__(self) -> None:
        self.inside: bytes | None = None

    def read(self, line: bytes) -> None:
        """Process the next line."""
        if self.inside is not None or b'"""' in line or b"'''" in line:
            for _ in self.tokens(line):
                pass

    def tokens(self, line: bytes) -> Iterator[re.Match[bytes]]:
        """Process the next line and yield its tokens; of a long string, its opening quotes."""
        position = 0
        if self.inside is not None:
            position = long_string_end(line, 0, self.inside)
            if position < 0:
                return
            self.inside = None
        while token := TOKEN.search(line, position):
            position = token.end()
            if token.lastgroup == "long":
                position = long_string_end(line, position, token[0])
                if position < 0:
                    self.inside = token[0]
            yield token
            if self.inside is not None:
                return


COMMENT, WORD = 0, -1
"""The kinds of tokens without quotes."""


def tokens_of(text: bytes) -> Iterator[tuple[int, int, int]]:
    """(start, end, quotes) of each token: quotes at each end, or COMMENT, or WORD."""
    position = 0
    while token := TOKEN.search(text, position):
        position = token.end()
        kind = token.lastgroup
        if kind == "long":
            position = long_string_end(text, position, token[0])
            if position < 0:
                return
            yield token.start(), position, 3
        else:
            quotes = {"string": 1, "comment": COMMENT}.get(kind or "", WORD)
            yield token.start(), position, quotes


def is_torn(line: bytes) -> bool:
    """Whether a line leaves a string or an IRI open, or is not UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return True
    position = 0
    while token := TOKEN.search(line, position):
        position = token.end()
        if token.lastgroup == "long":
            position = long_string_end(line, position, token[0])
            if position < 0:
                return True
        elif token[0] in (b'"', b"'"):
            return True
        elif token[0] == b"<":
            if line[position : position + 1] != b"<":
                return True
            position += 1
    return False


def unescaped(content: bytes) -> str | None:
    """The value of a string's content; None if it is not UTF-8 or has an invalid escape."""
    try:
        text = content.decode()
        return _ESCAPE.sub(_character, text) if "\\" in text else text
    except (UnicodeDecodeError, KeyError, ValueError):
        return None


def _character(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    if code is None:
        return _CHARACTERS[escape[3]]
    number = int(code, 16)
    if 0xD800 <= number < 0xE000:
        raise ValueError("half of a surrogate pair")
    return chr(number)
