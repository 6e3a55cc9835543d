"""Validation of untrusted saved state: integers, strings, lists and records.

Each check returns its argument, or raises a `StateError` that names the position of the value in
the state and the expected type. `where` is that position.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NoReturn

from spaseq.errors import StateError

LEAST, GREATEST = -(2**63), 2**63 - 1
"""The range of timestamps, in microseconds."""
MOST = 2**62
"""Upper bound of counters; no run reaches it, and incrementing it does not overflow."""
MOST_ORDINAL = 2**32 - 2
"""The greatest ordinal of an event, so that the next ordinal also fits in 32 bits."""
PASSED = MOST_ORDINAL + 1
"""The next ordinal of a stream that has passed the current timestamp, in its place."""


def refuse(where: str, problem: str) -> NoReturn:
    """Raise the `StateError` for a problem at a position of the state."""
    raise StateError(f"the saved state is damaged: {where}: {problem}")


def whole(value: Any, where: str, least: int = 0, most: int = MOST) -> int:
    """An integer from `least` to `most`."""
    if type(value) is not int or not least <= value <= most:
        refuse(where, f"{_shown(value)} is not an integer from {least} to {most}")
    return value


def flag(value: Any, where: str) -> bool:
    """True or false."""
    if type(value) is not bool:
        refuse(where, f"{_shown(value)} is neither true nor false")
    return value


def text(value: Any, where: str) -> str:
    """A string."""
    if type(value) is not str:
        refuse(where, f"{_shown(value)} is not a string")
    return value


def listed(value: Any, where: str, length: int | None = None) -> list[Any]:
    """A list, of the given length if there is one."""
    if type(value) is not list or (length is not None and len(value) != length):
        refuse(where, "is not a list" if length is None else f"is not a list of length {length}")
    return value


def wholes(
    value: Any, where: str, least: int = 0, most: int = MOST, length: int | None = None
) -> list[int]:
    """A list of integers from `least` to `most`."""
    for item in listed(value, where, length):
        if type(item) is not int or not least <= item <= most:
            refuse(where, f"{_shown(item)} is not an integer from {least} to {most}")
    integers: list[int] = value
    return integers


def record(value: Any, where: str, names: Collection[str]) -> dict[str, Any]:
    """A record with exactly these fields."""
    if type(value) is not dict or value.keys() != set(names):
        refuse(where, f"is not a record of {', '.join(sorted(names))}")
    return value


def counts(
    value: Any, where: str, names: Iterable[str], least: int = 0, most: int = MOST
) -> dict[str, int]:
    """A record of integers from `least` to `most`, in which fields may be missing."""
    known = set(names)
    if type(value) is not dict or not value.keys() <= known:
        refuse(where, f"is not a record of {', '.join(sorted(known))}")
    return {name: whole(number, f"{where}.{name}", least, most) for name, number in value.items()}


def rising(numbers: Iterable[int], where: str, *, strictly: bool = True) -> None:
    """Check that the numbers ascend, strictly or not."""
    previous: int | None = None
    for number in numbers:
        if previous is not None and (number < previous or (strictly and number == previous)):
            refuse(where, f"{number} follows {previous}")
        previous = number


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a record"
    shown = repr(value) if not isinstance(value, int) or abs(value) <= GREATEST else "a huge number"
    return shown if len(shown) <= 60 else f"{shown[:60]}…"
