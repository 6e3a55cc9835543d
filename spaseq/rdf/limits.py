"""Bounds on the state of a query and on the cost of one event.

`groups` bounds the state that waits between two instants: groups of partial matches, and single
matches that wait for their window to close; and how many of these begin to wait at one event.
`steps` bounds the work of one event: in each graph pattern, the triples and rows that its joins
find or scan; in the automaton, the waiting groups that its rows are compared with, the candidates
that a conjunction or a guard tries, and the complete matches that are listed. `matches` bounds only
the latter: those of one event or instant, or of the windows that close at one time. `memory` bounds
the bytes of the rows of each graph pattern for one event, and of the texts that its BINDs make.

Reaching a bound raises `LimitReached`. With `shed`, the bounds on groups and on steps of the
automaton instead drop the oldest groups, by their latest start, as long as there are any, and the
bounds on listed matches drop the matches beyond them. Every remaining match is also a match without
the bound, except for the choices of `EMIT`, `LIMIT`, `DISTINCT` and `AFTER MATCH`.
"""

from __future__ import annotations

from typing import Literal

from spaseq.records import dataclass

NO_LIMIT = 2**63 - 1
MOST_TEXT_BYTES = 1 << 24
"""The longest text that an expression may make, whatever the limits of the query are."""

BOUNDS = ("max_groups", "max_steps", "max_matches", "max_memory")
"""The names of the bounds, as callers give them, in the order of the fields of `Limits`."""

Kind = Literal["groups", "steps", "matches", "pattern", "memory", "text"]
"""`pattern`: steps of a graph pattern; the other steps are of the automaton. `text`: one text that
an expression makes, longer than `MOST_TEXT_BYTES`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of each query of a run; None: there is none.

    Raises:
        ValueError: for a bound that is less than 1.
    """

    groups: int | None = None
    steps: int | None = None
    matches: int | None = None
    memory: int | None = None
    shed: bool = False

    def __post_init__(self) -> None:
        given = (self.groups, self.steps, self.matches, self.memory)
        for name, bound in zip(BOUNDS, given, strict=True):
            if bound is not None and bound < 1:
                raise ValueError(f"{name} must be at least 1, not {bound}")

    @property
    def most_groups(self) -> int:
        return NO_LIMIT if self.groups is None else self.groups

    @property
    def most_steps(self) -> int:
        return NO_LIMIT if self.steps is None else self.steps

    @property
    def most_matches(self) -> int:
        """The number of matches of one event that may be listed; each is also a step."""
        return min(self.most_steps, NO_LIMIT if self.matches is None else self.matches)

    @property
    def most_memory(self) -> int:
        return NO_LIMIT if self.memory is None else self.memory

    @property
    def kept(self) -> int:
        """The number of groups left after shedding: few enough that not every event sheds one."""
        return self.most_groups - self.most_groups // 8


NO_LIMITS = Limits()


class LimitReached(Exception):
    """A bound of one query.

    `place` is the place of the automaton where steps ran out, or -1; for the kinds `pattern` and
    `memory` it is the number of the graph pattern.
    """

    def __init__(self, kind: Kind, place: int = -1):
        self.kind = kind
        self.place = place
        super().__init__(kind, place)
