"""The RDF parsers' errors in words that fit behind `file:line:`."""

from __future__ import annotations

import re

MAX_NESTED_TRIPLES = 500
"""Triple terms inside of each other. The parser calls itself for each: 30,000 end the process."""

_BRACKETS = re.compile(rb"<<\(|\)>>")
_WHERE = re.compile(r"Parser error (?:at|between) line \d.*?\d: (?=\D)")


def parser_message(error: SyntaxError) -> str:
    """What pyoxigraph says is wrong, without the place and without capital or full stop."""
    said = _WHERE.sub("", error.msg or "").rstrip(".")
    return said[0].lower() + said[1:] if said[1:2].islower() else said


PARSER_ERRORS = (MemoryError, ValueError, OverflowError, RecursionError)
"""What a parser raises beside a `SyntaxError` where it cannot go on."""


def parser_failure(error: BaseException) -> str | None:
    """Why a parser cannot go on; None where the error is not the parser's own."""
    if isinstance(error, MemoryError):
        return "a token is longer than 16 MiB, the most that the parser holds, or has no end"
    if isinstance(error, PARSER_ERRORS):
        return f"the parser cannot go on: {error}"
    if type(error).__name__ == "PanicException":
        return "the parser failed on this input"
    return None


class LimitError(Exception):
    """The text needs more than a limit allows; the message names it."""


def nesting(text: bytes, opened: int = 0) -> int:
    """How many triple terms are open behind a text, as far as their brackets tell.

    Raises:
        LimitError: where too many are.
    """
    if opened + text.count(b"<<(") <= MAX_NESTED_TRIPLES:
        return max(opened + text.count(b"<<(") - text.count(b")>>"), 0)
    for bracket in _BRACKETS.finditer(text):
        opened = max(opened + (1 if bracket[0] == b"<<(" else -1), 0)
        if opened > MAX_NESTED_TRIPLES:
            raise LimitError(f"more than {MAX_NESTED_TRIPLES} triple terms inside of each other")
    return opened
