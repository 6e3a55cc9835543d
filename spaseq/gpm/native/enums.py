"""Enums that exist in C and in Python: the check that both mean the same."""

from __future__ import annotations

from enum import Enum


def check_enum(compiled: type[Enum], documented: type[Enum]) -> None:
    """Compare a `cpdef enum` with the Python enum that documents it, name by name.

    The modules that declare the C enum call this when they are imported, so that a member added to
    one side only, or at another position, is an error and not a different instruction.

    Raises:
        ImportError: if a name is missing on either side or has two numbers.
    """
    numbers = [
        {name: int(member.value) for name, member in each.__members__.items()}
        for each in (compiled, documented)
    ]
    different = sorted({name for name, _ in numbers[0].items() ^ numbers[1].items()})
    if different:
        raise ImportError(f"{documented.__qualname__} differs in C: {', '.join(different)}")
