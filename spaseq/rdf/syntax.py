"""Messages for the errors of the RDF parsers, to follow `file:line:`."""

from __future__ import annotations

import re

MAX_NESTED_TRIPLES = 100
"""Nesting depth of triple terms. The parser recurses: 30,000 overflow its stack. So do readers of
JSON: Python's allows about 1,000 levels, and a triple term has two."""
MAX_NESTED_BRACKETS = 1000
"""Nesting depth of lists, blank nodes and formulas in Turtle, TriG and N3. A parser takes some
hundred bytes for each level."""
DEEP_BRACKETS = f"its brackets are nested more than {MAX_NESTED_BRACKETS:,} deep"

FREE_BYTES = 1 << 24
"""Bytes that a parser may write in place of prefixes, terms of contexts and entities, and"""
EXPANSION = 32
"""how many times the document it may write beyond them."""
BASE_MAX_CHARACTERS = 8192
"""The longest base IRI: relative base IRIs can make it longer and longer."""
SHORT_TERM_BYTES = 256
"""Terms of a syntax with tables that are not counted: a reference to them takes few bytes."""
TOO_LONG_ENTRIES = "the entries of its tables are too long for the number of its terms"
TABLE_IRI_MAX_BYTES = 1 << 16
"""The longest IRI that is made of entries of tables."""
LONG_BASE = f"the base IRI has more than {BASE_MAX_CHARACTERS:,} characters"
TOO_LONG_PREFIXES = "its prefixes or base IRI are too long for the number of its names"
REPEATED_MAX_BYTES = 1 << 23
"""What may be read again after errors of a document, and for the messages of a log."""

_BRACKETS = re.compile(rb"<<\(|\)>>")
_WHERE = re.compile(
    r"Parser error (?:at|between) line \d+"
    r"(?: between columns \d+ and \d+| column \d+(?: and line \d+ column \d+)?): "
)


def parser_message(error: SyntaxError) -> str:
    """pyoxigraph's message without the position, the initial capital and the full stop."""
    said = _WHERE.sub("", error.msg or "").rstrip(".")
    return said[0].lower() + said[1:] if said[1:2].islower() else said


PARSER_ERRORS = (MemoryError, ValueError, OverflowError, RecursionError)
"""The exceptions beside `SyntaxError` with which a parser aborts."""


def parser_failure(error: BaseException) -> str | None:
    """Why a parser aborted; None if the error is not one of the parser's."""
    if isinstance(error, MemoryError):
        return "a token is unterminated or longer than 16 MiB, the parser's limit"
    if isinstance(error, PARSER_ERRORS):
        return f"the parser cannot continue: {error}"
    if type(error).__name__ == "PanicException":
        return "the parser failed on this input"
    return None


class LimitError(Exception):
    """The text exceeds a limit; the message names it."""


class Expansion:
    """Compares what is made of a document with its bytes.

    Args:
        size: The number of bytes.
        free: The characters of each statement that are not counted.
        reason: What makes the statements longer than the document.
    """

    def __init__(self, size: int = 0, free: int = 0, reason: str = TOO_LONG_PREFIXES):
        self.size = size
        self._free = free
        self._reason = reason
        self._written = 0

    def count(self, made: object) -> None:
        """Count a statement, or a message about one, by its characters.

        Raises:
            LimitError: if they are many more than the bytes of the document.
        """
        self._written += max(len(str(made)) - self._free, 0)
        if self._written > FREE_BYTES + EXPANSION * self.size:
            raise LimitError(self._reason)


def nesting(text: bytes, opened: int = 0) -> int:
    """The number of open triple terms after a text, counted by brackets.

    `opened` is the number before the text.

    Raises:
        LimitError: if it exceeds `MAX_NESTED_TRIPLES` somewhere in the text.
    """
    if opened + text.count(b"<<(") <= MAX_NESTED_TRIPLES:
        return max(opened + text.count(b"<<(") - text.count(b")>>"), 0)
    for bracket in _BRACKETS.finditer(text):
        opened = max(opened + (1 if bracket[0] == b"<<(" else -1), 0)
        if opened > MAX_NESTED_TRIPLES:
            raise LimitError(f"triple terms are nested more than {MAX_NESTED_TRIPLES} deep")
    return opened
