"""Phrases shared by the messages about a query: quoted names, lists, suggestions."""

from __future__ import annotations

from collections.abc import Iterable

from spaseq.errors import NOWHERE, Span


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
    from difflib import get_close_matches  # imported here to keep valid queries fast

    known = sorted(set(candidates) - {name})
    folded = [c for c in known if c.casefold() == name.casefold()]
    near = folded or get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {quoted(mark + near[0])}?" if near else ""


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
