"""The order in which the triples of a basic pattern are joined.

The order is greedy: the next triple is the one with the fewest expected rows for each row so far,
where triples that share a variable with these rows precede those that share none. The expectation
is computed from the size of the view (a guess before the first event, then the observed mean) and
from the ends that are bound by then. A triple term is taken apart once it is bound, which yields at
most one row. Ties keep the order of the text. Cost: n log n for n triples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from heapq import heappop, heappush
from typing import TypeAlias

from spaseq.rdf.entailment import View
from spaseq.rdf.event import Term
from spaseq.records import dataclass

End: TypeAlias = "int | Term"
"""The slot of a variable, or a term of the query."""
_Rank: TypeAlias = tuple[bool, bool, float, int]
"""What decides which step is next, the position of the step last; the least is first."""

GUESSED_VIEW = 4.0
"""The expected triples of one predicate in an event, before the first event."""
GUESSED_EVENT = 32.0
"""The expected triples of an event, before the first event."""
CHECKED = 0.25
"""The expected share of rows that match a triple whose ends are both bound."""


@dataclass(frozen=True, slots=True)
class Step:
    """One triple pattern; blank nodes have slots like variables. `text` is for `explain`.

    `view` is set if entailment widens it; None: its view is that of the predicate, or view 0.
    """

    subject: End
    predicate: End
    object: End
    text: str
    view: View | None = None
    whole: int | None = None
    """The slot of a triple term, if the ends are its parts and not those of a triple."""

    @property
    def key(self) -> End | View:
        """The key of its view; any slot is the key of view 0, of all triples of the event.

        A step that takes a triple term apart reads no view; its key has no meaning.
        """
        if self.whole is not None:
            return self.whole
        return self.predicate if self.view is None else self.view

    @property
    def ends(self) -> tuple[End, End, End]:
        """Subject, predicate and object."""
        return (self.subject, self.predicate, self.object)

    @property
    def slots(self) -> frozenset[int]:
        """The slots that the step binds."""
        ends = self.ends if self.whole is None else (*self.ends, self.whole)
        return frozenset(end for end in ends if isinstance(end, int))


Size: TypeAlias = Callable[[Step], float]


def guessed(step: Step) -> float:
    """The size of the view of a step before the first event."""
    return GUESSED_EVENT if isinstance(step.predicate, int) else GUESSED_VIEW


def fan_out(step: Step, bound: Set[int], size: float) -> float:
    """The expected number of rows that the step makes of a row with these slots bound."""
    if step.whole is not None:
        return CHECKED
    known = [not isinstance(end, int) or end in bound for end in step.ends]
    ends = known[0] + known[2]
    if isinstance(step.predicate, int) and known[1]:
        size = size**0.5
    if ends == 2:
        return min(size, CHECKED)
    if ends == 1:
        # A constant selects one of many nodes; the value of a variable is a node of the event.
        return max(size, 0.0) ** 0.5 if size > 1 else size
    return size / 2 if step.subject == step.object else size


def positions(steps: Sequence[Step], bound: frozenset[int], sizes: Sequence[float]) -> list[int]:
    """The order of steps over views of these sizes after rows that bind some slots, as indexes."""
    return Greedy(steps, bound, sizes).order()


class Greedy:
    """The choice of the next step, until none is left.

    A step is ranked again when one of its slots is bound, which happens once per slot: `ranked`
    counts the ranks computed. Older entries of the heap are ignored.
    """

    def __init__(self, steps: Sequence[Step], bound: frozenset[int], sizes: Sequence[float]):
        self._steps = steps
        self._sizes = sizes
        self._bound = set(bound)
        self._ranks: dict[int, _Rank] = {}
        self._heap: list[_Rank] = []
        self._over: dict[int, list[int]] = {}
        self.ranked = 0
        for position, step in enumerate(steps):
            for slot in step.slots:
                self._over.setdefault(slot, []).append(position)

    def order(self) -> list[int]:
        """The positions of the steps in the order in which they are joined."""
        chosen: list[int] = []
        self._rank(range(len(self._steps)))
        while self._ranks:
            rank = heappop(self._heap)
            position = rank[-1]
            if self._ranks.get(position) != rank:
                continue
            del self._ranks[position]
            chosen.append(position)
            first = not self._bound
            new = self._steps[position].slots - self._bound
            self._bound |= new
            # The first slot bound separates the steps that share it from all others.
            self._rank(tuple(self._ranks) if first and new else self._users(new))
        return chosen

    def _users(self, slots: frozenset[int]) -> Iterable[int]:
        """The steps that are left and use some of the slots."""
        users = dict.fromkeys(user for slot in slots for user in self._over[slot])
        return [user for user in users if user in self._ranks]

    def _rank(self, positions: Iterable[int]) -> None:
        for position in positions:
            step, bound = self._steps[position], self._bound
            slots = step.slots
            self.ranked += 1
            rank = self._ranks[position] = (
                step.whole is not None and step.whole not in bound,
                bool(slots) and bool(bound) and slots.isdisjoint(bound),
                fan_out(step, bound, self._sizes[position]),
                position,
            )
            heappush(self._heap, rank)


def ordered(steps: Sequence[Step], bound: frozenset[int], size: Size = guessed) -> tuple[Step, ...]:
    """The steps in the order in which they join rows that bind some slots."""
    return tuple(steps[i] for i in positions(steps, bound, [size(step) for step in steps]))


def cost(steps: Sequence[Step], bound: frozenset[int], size: Size = guessed) -> float:
    """The expected number of rows of all steps in this order, intermediate rows included."""
    total, rows, known = 0.0, 1.0, set(bound)
    for step in steps:
        rows *= fan_out(step, known, size(step))
        total += rows
        known |= step.slots
    return total
