"""Counts the steps of the run in Python for one event."""

from __future__ import annotations

from spaseq.rdf.limits import Kind, LimitReached, Limits


class Meter:
    """Counts the steps of one event.

    Invariant: `left` is never negative.
    """

    __slots__ = ("left", "limits")

    def __init__(self, limits: Limits):
        self.limits = limits
        self.left = limits.most_steps

    def begin(self) -> None:
        """Begin another event."""
        self.left = self.limits.most_steps

    def take(self, steps: int, place: int = -1, kind: Kind = "steps") -> None:
        """Count further steps.

        Raises:
            LimitReached: if there are too many.
        """
        if steps > self.left:
            raise LimitReached(kind, place)
        self.left -= steps
