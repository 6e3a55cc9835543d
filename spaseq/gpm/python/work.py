"""The bounds on the work of Python operators for one event.

A `Work` counts the rows that the joins of one graph pattern make, in chunks, so that a product
stops soon after it exceeds a bound, long before all of its rows are in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeVar

from spaseq.rdf.event import Term
from spaseq.rdf.limits import LimitReached, Limits
from spaseq.rdf.native._terms import check

R = TypeVar("R", bound=Sequence[Term | None])

CHUNK = 4096
"""Rows between two checks of the bounds."""
TUPLE_BYTES = 56
CELL_BYTES = 8
"""The bytes that CPython allocates for a tuple with its list entry, and for each of its cells."""


class Work:
    """The rows of one pattern for one event.

    Args:
        pattern: the number of the graph pattern, for the error.
        limits: the bounds; `steps` counts all rows made, `memory` the bytes of one table.
    """

    __slots__ = ("_left", "_limits", "_pattern")

    def __init__(self, pattern: int, limits: Limits):
        self._pattern = pattern
        self._limits = limits
        self._left = limits.most_steps

    def begin(self) -> None:
        """Start the count of the next event."""
        self._left = self._limits.most_steps

    def take(self, steps: int) -> None:
        """Count steps that make no rows.

        Raises:
            LimitReached: if there are too many.
        """
        self._left -= steps
        if self._left < 0:
            raise LimitReached("pattern", self._pattern)

    def collect(self, rows: Iterable[R]) -> list[R]:
        """List rows, and count each as a step.

        Raises:
            LimitReached: if the steps or the memory exceed their bounds.
        """
        source = iter(rows)
        listed: list[R] = []
        while chunk := list(islice(source, CHUNK)):
            check()
            self.take(len(chunk))
            listed += chunk
            if len(listed) * (TUPLE_BYTES + CELL_BYTES * len(chunk[0])) > self._limits.most_memory:
                raise LimitReached("memory", self._pattern)
        return listed


class SearchWork(Work):
    """Counts only the steps of searches: the rows are those of a table that is made once."""

    __slots__ = ()

    def collect(self, rows: Iterable[R]) -> list[R]:
        source, listed = iter(rows), list[R]()
        while chunk := list(islice(source, CHUNK)):
            check()
            listed += chunk
        return listed
