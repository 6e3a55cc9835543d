"""The order in which the triples of a basic pattern are joined.

Greedy: the triple that gives the fewest rows for each row so far comes next, one that
shares a variable before any that does not. How many rows a triple gives is estimated from
the size of its view (a guess before any event has been seen, then the observed mean) and
from which of its ends are bound by then. Ties go as in the text.
Cost: quadratic in the number of triples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from spaseq.rdf.entailment import View
from spaseq.rdf.event import Term

End: TypeAlias = "int | Term"
"""The slot of a variable, or a term of the query."""

GUESSED_VIEW = 4.0
"""Triples of one predicate in an event nobody has seen yet."""
GUESSED_EVENT = 32.0
"""Triples in an event nobody has seen yet."""
CHECKED = 0.25
"""The share of rows that survive a triple both of whose ends are bound."""


@dataclass(frozen=True, slots=True)
class Step:
    """One triple pattern; blank nodes have slots like variables. `text` is for people.

    `view` is what it is matched against where entailment widens it; None: the triples of its
    predicate, or all.
    """

    subject: End
    predicate: End
    object: End
    text: str
    view: View | None = None

    @property
    def key(self) -> End | View:
        """What names its view: a slot stands for all triples of the event."""
        return self.predicate if self.view is None else self.view

    @property
    def ends(self) -> tuple[End, End, End]:
        return (self.subject, self.predicate, self.object)

    @property
    def slots(self) -> frozenset[int]:
        return frozenset(end for end in self.ends if isinstance(end, int))


Size: TypeAlias = Callable[[Step], float]


def guessed(step: Step) -> float:
    """The size of a step's view before anything was observed."""
    return GUESSED_EVENT if isinstance(step.predicate, int) else GUESSED_VIEW


def fan_out(step: Step, bound: frozenset[int], size: float) -> float:
    """How many rows the step is expected to give for each row with these slots bound."""
    known = [not isinstance(end, int) or end in bound for end in step.ends]
    ends = known[0] + known[2]
    if isinstance(step.predicate, int) and known[1]:
        size = size**0.5
    if ends == 2:
        return min(size, CHECKED)
    if ends == 1:
        # A constant names one thing among many; a variable was bound by what is there.
        return max(size, 0.0) ** 0.5 if size > 1 else size
    return size / 2 if step.subject == step.object else size


def ordered(steps: Sequence[Step], bound: frozenset[int], size: Size = guessed) -> tuple[Step, ...]:
    """The steps in the order they should be taken after rows with these slots bound."""
    left = list(steps)
    known = set(bound)
    out = []
    while left:
        now = frozenset(known)
        best = min(
            range(len(left)),
            key=lambda i: (
                bool(left[i].slots) and bool(now) and not left[i].slots & now,
                fan_out(left[i], now, size(left[i])),
                i,
            ),
        )
        step = left.pop(best)
        known |= step.slots
        out.append(step)
    return tuple(out)


def cost(steps: Sequence[Step], bound: frozenset[int], size: Size = guessed) -> float:
    """The expected number of rows, intermediate ones too, of the steps in this order."""
    total, rows, known = 0.0, 1.0, bound
    for step in steps:
        rows *= fan_out(step, known, size(step))
        total += rows
        known |= step.slots
    return total
