"""Phrases shared by the messages about a query: quoted names, lists, suggestions."""

from __future__ import annotations

from collections.abc import Iterable

from spaseq.errors import NOWHERE, Span
from spaseq.parser.nearest import nearest


def quoted(text: str) -> str:
    return f"`{text}`"


def variable(name: str) -> str:
    return f"`?{name}`"


def listing(phrases: Iterable[str], conjunction: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    items = list(phrases)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {conjunction} {items[-1]}"


def did_you_mean(name: str, candidates: Iterable[str], mark: str = "") -> str:
    """`did you mean …?` with the nearest candidate; empty if none is near."""
    near = nearest(name, candidates)
    return "" if near is None else f"did you mean {quoted(mark + near)}?"


def question_or(question: str, otherwise: str) -> str:
    """`did you mean …? If not, …`; only the second part if there is no question."""
    return f"{question} If not, {otherwise}" if question else otherwise


def excerpt(text: str, span: Span, instead: str) -> str:
    """The text of the span in quotes, on one line; `instead` if there is no text."""
    stretch = " ".join(text[span.start : span.end].split())
    if span == NOWHERE or not stretch:
        return instead
    if len(stretch) > 60:
        stretch = f"{stretch[:40]} … {stretch[-15:]}"
    return quoted(stretch)
