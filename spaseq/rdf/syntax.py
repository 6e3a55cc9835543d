"""The RDF parsers' errors in words that fit behind `file:line:`."""

from __future__ import annotations

import re

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
        return "a token is longer than 16 MiB, the most that the parser holds"
    if isinstance(error, PARSER_ERRORS):
        return f"the parser cannot go on: {error}"
    if type(error).__name__ == "PanicException":
        return "the parser failed on this input"
    return None
