"""Counts the steps of the run in Python for one event."""

from __future__ import annotations

from spaseq.rdf.limits import Kind, LimitReached, Limits


class Meter:
    """Counts the steps of one event.

    Invariant: `left` is never negative.
    """

    __slots__ = ("cut", "left", "limits", "unlisted")

    def __init__(self, limits: Limits):
        self.limits = limits
        self.left = limits.most_steps
        self.unlisted = limits.most_matches
        self.cut = 0
        """How often matches were dropped."""

    def begin(self) -> None:
        """Begin another event."""
        self.left = self.limits.most_steps
        self.begin_list()

    def begin_list(self) -> None:
        """Begin another list of matches."""
        self.unlisted = self.limits.most_matches

    def list_one(self) -> bool:
        """Count a match that is listed; False if it is to be dropped.

        Raises:
            LimitReached: if there are too many.
        """
        if self.unlisted:
            self.unlisted -= 1
            return True
        if not self.limits.shed:
            raise LimitReached("matches")
        self.cut += 1
        return False

    def take(self, steps: int, place: int = -1, kind: Kind = "steps") -> None:
        """Count further steps.

        Raises:
            LimitReached: if there are too many.
        """
        if steps > self.left:
            raise LimitReached(kind, place)
        self.left -= steps
