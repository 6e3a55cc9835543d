"""The RDF parser's errors in words that fit behind `file:line:`."""

from __future__ import annotations

import re

_WHERE = re.compile(r"Parser error (?:at|between) line \d.*?\d: (?=\D)")


def parser_message(error: SyntaxError) -> str:
    """What pyoxigraph says is wrong, without the place and without capital or full stop."""
    said = _WHERE.sub("", error.msg or "").rstrip(".")
    return said[0].lower() + said[1:] if said[1:2].islower() else said
