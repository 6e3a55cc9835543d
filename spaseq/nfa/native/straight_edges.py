"""Edges whose steps are known beforehand: what a group remembers next, and where it is from.

A step binds a row in the environment of a group: iterations begin, variables take terms or have
to agree with them, and the next place keeps some of what there is then. Where no number that only
a run knows decides what becomes of a register, all of it is a list of copies, worked out here
once: the edge is straight. Where a row leaves a variable of such a list unbound, or does not
agree, its step is taken as any other.

Invariant: what a straight edge copies is what `enter` and `bind` of _program.pxd would leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spaseq.nfa.native.register_tables import COPY, FORGET, LAST_VALUE, NUMBER, Effect, Follower
from spaseq.rules import enabled

ROW, GROUP, GIVEN = range(3)
"""Where a register is from, as `Source` in _program.pxd has it: a column of the row, a live
register of the group, a number that is known."""
UNBOUND = (GIVEN, 0)
ANY = 2**32 - 1

Source = tuple[int, int]
Binding = tuple[int, int, Sequence[Follower]]
"""(column of a row, register, what follows that)."""


@dataclass(slots=True)
class StraightTables:
    """Ranges are (first, end) of the list they speak of."""

    edges: list[tuple[bool, int, int]] = field(default_factory=list)
    """(whether it is straight, its agreements)."""
    agreements: list[tuple[int, int]] = field(default_factory=list)
    """(column that must be bound, the live register of the group that must have its term, or
    `ANY`)."""
    links: list[tuple[int, int]] = field(default_factory=list)
    """What the place that a link leads to remembers, as a range of `sources`."""
    sources: list[Source] = field(default_factory=list)

    def add(
        self,
        live: Sequence[int],
        effects: Iterable[Effect],
        bindings: Iterable[Binding] | None,
        targets: Sequence[Sequence[int] | None],
    ) -> None:
        """The next edge, from the live registers of its place to those of its links' places.

        No bindings: its step is not one of rows alone. No target: a link has bounds that count.
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
    """An environment whose registers are known by where they are from."""

    def __init__(self, live: Sequence[int]):
        self.sources: dict[int, Source] = {
            register: (GROUP, position) for position, register in enumerate(live)
        }
        self.agreements: list[tuple[int, int]] = []

    def enters(self, effect: Effect) -> bool:
        """Whether it is known what an effect leaves in its register."""
        change, register, other = effect
        if change == FORGET:
            self.sources[register] = UNBOUND
        elif change == COPY:
            self.sources[register] = self.sources.get(other, UNBOUND)
        elif change == NUMBER:
            self.sources[register] = (GIVEN, other)
        else:
            return False
        return True

    def binds(self, binding: Binding) -> bool:
        """Whether it is known what a row's column leaves in its register and behind it."""
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
