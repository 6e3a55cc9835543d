"""Straight edges: edges whose target registers are copies.

A step binds a row in the environment of a group: iterations begin, variables take terms or must
agree with them, and the next place stores some of the registers. If the origin of every register is
known at compile time, the edge is straight: the step is a list of copies, which this module
computes. A row that leaves a variable of the list unbound, or disagrees with the group, takes the
general path.

Invariant: the copies of a straight edge have the effect of `enter` and `bind` in _tecs.pxd.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spaseq.nfa.native.register_tables import COPY, FORGET, LAST_VALUE, NUMBER, Effect, Follower
from spaseq.rules import enabled

ROW, GROUP, CONSTANT = range(3)
"""The origin of a register, as `Origin` in _tecs.pxd: a column of the row, a live register of
the group, a constant."""
UNBOUND = (CONSTANT, 0)
ANY = 2**32 - 1

Source = tuple[int, int]
Binding = tuple[int, int, Sequence[Follower]]
"""(column of a row, register, its followers)."""


@dataclass(slots=True)
class StraightTables:
    """Straight edges as rows of numbers; ranges are (first, end) of the named list."""

    edges: list[tuple[bool, int, int]] = field(default_factory=list)
    """(whether the edge is straight, its agreements)."""
    agreements: list[tuple[int, int]] = field(default_factory=list)
    """(column that must be bound, the live register of the group that must equal it, or `ANY`)."""
    links: list[tuple[int, int]] = field(default_factory=list)
    """The registers of the place that a link leads to, as a range of `sources`."""
    sources: list[Source] = field(default_factory=list)

    def add(
        self,
        live: Sequence[int],
        effects: Iterable[Effect],
        bindings: Iterable[Binding] | None,
        targets: Sequence[Sequence[int] | None],
    ) -> None:
        """Add the next edge, from the live registers of its place to those of its targets.

        `bindings` is None if the step is more than a row. A target is None if bounds restrict its
        link.
        """
        step = _Step(live)
        straight = (
            enabled("straight_edges")
            and None not in targets
            and all(map(step.enters, effects))
            and bindings is not None
            and all(map(step.binds, bindings))
        )
        first = len(self.agreements)
        self.agreements += step.agreements if straight else ()
        self.edges.append((straight, first, len(self.agreements)))
        for target in targets:
            first = len(self.sources)
            remembered = target if straight and target is not None else ()
            self.sources += [step.sources.get(register, UNBOUND) for register in remembered]
            self.links.append((first, len(self.sources)))


class _Step:
    """An environment that records the origin of each register."""

    def __init__(self, live: Sequence[int]):
        self.sources: dict[int, Source] = {
            register: (GROUP, position) for position, register in enumerate(live)
        }
        self.agreements: list[tuple[int, int]] = []

    def enters(self, effect: Effect) -> bool:
        """Apply an effect; False if its result is known at run time only."""
        change, register, other = effect
        if change == FORGET:
            self.sources[register] = UNBOUND
        elif change == COPY:
            self.sources[register] = self.sources.get(other, UNBOUND)
        elif change == NUMBER:
            self.sources[register] = (CONSTANT, other)
        else:
            return False
        return True

    def binds(self, binding: Binding) -> bool:
        """Bind a column of a row; False if the result is known at run time only."""
        column, register, followers = binding
        kind, position = self.sources.get(register, UNBOUND)
        if kind == GROUP:
            self.agreements.append((column, position))
            return True
        if (kind, position) != UNBOUND or any(how != LAST_VALUE for how, _ in followers):
            return False
        self.sources[register] = (ROW, column)
        if followers:
            self.agreements.append((column, ANY))
        for _, follower in followers:
            self.sources[follower] = (ROW, column)
        return True
