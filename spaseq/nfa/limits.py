"""What one automaton may hold and do: bounds, and what reaching one says.

`groups` bounds what waits between two instants: groups of partial matches, and single matches
that wait for their window to close. `steps` bounds what one event does: how many waiting groups
its rows are compared with, how many candidates a conjunction or a guard tries, and how many
complete matches are listed before results are chosen among them.

Reaching a bound raises `LimitReached`, with `shed` only where there is nothing to shed: else the
oldest groups go, those whose latest start is furthest back. Of what is left out every match is a
match without the bound too, but for what `EMIT`, `LIMIT`, `DISTINCT` and `AFTER MATCH` choose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NO_LIMIT = 2**63 - 1

Kind = Literal["groups", "steps", "matches"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of each query of a run; None: there is none.

    Raises:
        ValueError: for a bound that is less than 1.
    """

    groups: int | None = None
    steps: int | None = None
    shed: bool = False

    def __post_init__(self) -> None:
        for name, bound in (("max_groups", self.groups), ("max_steps", self.steps)):
            if bound is not None and bound < 1:
                raise ValueError(f"{name} must be at least 1, not {bound}")

    @property
    def most_groups(self) -> int:
        return NO_LIMIT if self.groups is None else self.groups

    @property
    def most_steps(self) -> int:
        return NO_LIMIT if self.steps is None else self.steps

    @property
    def kept(self) -> int:
        """How many groups are left when some are shed: not all, lest each event sheds one."""
        return self.most_groups - self.most_groups // 8


NO_LIMITS = Limits()


class LimitReached(Exception):
    """A bound of one automaton; `place` is where steps ran out, or -1."""

    def __init__(self, kind: Kind, place: int = -1):
        self.kind = kind
        self.place = place
        super().__init__(kind, place)
