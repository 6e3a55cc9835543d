"""Code shared by the sinks that commit the number of a checkpoint with their output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spaseq.errors import StateError


def agreed(shown: str, number: int, tokens: Mapping[int, Any]) -> int:
    """The checkpoint to resume, from the number that was committed with the output.

    Args:
        shown: The output, for messages.
        number: The number; 0 for none.
        tokens: The checkpoints of the state folder, by number.

    Raises:
        StateError: if the state folder does not have that checkpoint.
    """
    if number in tokens or (number == 0 and not tokens):
        return number
    if number == 0 and min(tokens) == 1:
        # The first checkpoint was stored, and the process ended before the commit.
        return 0
    raise StateError(
        f"{shown}: the output is at checkpoint {number}, and the state folder has "
        f"{', '.join(map(str, sorted(tokens))) or 'none'}: they do not belong together"
    )
