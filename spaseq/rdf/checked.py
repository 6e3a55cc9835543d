"""Checks of data from outside that must have a certain shape: plain values, lists and records.

Each check returns the value it was given, or raises a `StateError` that says where in the data the
value is and what it should be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NoReturn

from spaseq.errors import StateError

LEAST, GREATEST = -(2**63), 2**63 - 1
"""The range of timestamps, in microseconds."""
MOST = 2**62
"""More than anything is ever counted up to; the counter can still be raised."""
MOST_ORDINAL = 2**32 - 2
"""Of the events of one stream at one timestamp: the next one's has 32 bits too."""


def refuse(where: str, problem: str) -> NoReturn:
    """Refuse saved state for what is at some place of it."""
    raise StateError(f"the saved state is damaged: {where}: {problem}")


def whole(value: Any, where: str, least: int = 0, most: int = MOST) -> int:
    """An integer from `least` to `most`."""
    if type(value) is not int or not least <= value <= most:
        refuse(where, f"{_shown(value)} is no integer from {least} to {most}")
    return value


def flag(value: Any, where: str) -> bool:
    """True or false."""
    if type(value) is not bool:
        refuse(where, f"{_shown(value)} is neither true nor false")
    return value


def text(value: Any, where: str) -> str:
    """A string."""
    if type(value) is not str:
        refuse(where, f"{_shown(value)} is no string")
    return value


def listed(value: Any, where: str, length: int | None = None) -> list[Any]:
    """A list, of some length."""
    if type(value) is not list or (length is not None and len(value) != length):
        refuse(where, "is no list" if length is None else f"is no list of {length}")
    return value


def wholes(
    value: Any, where: str, least: int = 0, most: int = MOST, length: int | None = None
) -> list[int]:
    """A list of integers from `least` to `most`."""
    for item in listed(value, where, length):
        if type(item) is not int or not least <= item <= most:
            refuse(where, f"{_shown(item)} is no integer from {least} to {most}")
    found: list[int] = value
    return found


def record(value: Any, where: str, names: Collection[str]) -> dict[str, Any]:
    """A record with exactly these names."""
    if type(value) is not dict or value.keys() != set(names):
        refuse(where, f"is no record of {', '.join(sorted(names))}")
    return value


def counts(
    value: Any, where: str, names: Iterable[str], least: int = 0, most: int = MOST
) -> dict[str, int]:
    """An integer from `least` to `most` for each of some names, but for those left out."""
    known = set(names)
    if type(value) is not dict or not value.keys() <= known:
        refuse(where, f"is no record of {', '.join(sorted(known))}")
    return {name: whole(number, f"{where}.{name}", least, most) for name, number in value.items()}


def rising(numbers: Iterable[int], where: str, *, strictly: bool = True) -> None:
    """Numbers of which each is greater than the one before it, or as great."""
    before: int | None = None
    for number in numbers:
        if before is not None and (number < before or (strictly and number == before)):
            refuse(where, f"{number} comes after {before}")
        before = number


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a record"
    shown = repr(value) if not isinstance(value, int) or abs(value) <= GREATEST else "a huge number"
    return shown if len(shown) <= 60 else f"{shown[:60]}…"
