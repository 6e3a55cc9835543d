"""The automaton of one sequence expression: places, edges, atoms and guards, as flat data.

A *place* is one occurrence of an operator that waits for its right operand. Each of its *edges* is
one alternative first step of that operand: an *atom* (a GPM, a conjunction `&` or an any-order
group `AND`) and the iterations that taking the edge begins. A place that waits for a deadline has
one edge, whose atom consumes no event. A finished atom *links* to the next waiting places. A
*guard* is a unit that must not occur between a partial match and the next step. Sources: Agrawal et
al., SASE+, for places and edges; Alevizos et al., Register Match Automata, for registers.

Invariants (`validate`): indices are in range; the `live` registers of a place are sorted; `DONE`
links occur in guards only, `ACCEPT` links outside guards only.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal

from spaseq.records import dataclass

ACCEPT = -1
"""Link target: the match is complete, or complete when its window closes if the link has guards."""
DONE = -2
"""Link target inside a guard: the guarded unit has occurred."""

Operator = Literal[",", ";", ":", "for"]
"""An operator of the query, or `for` where a place waits for a deadline."""
Relation = Literal["less", "equal", "greater"]
"""The relation that a filter requires; `less` and `greater` include equality."""


@dataclass(frozen=True, slots=True)
class Action:
    """Effect of an edge on iterated unit `unit`: begin a run, or the next iteration (`again`)."""

    unit: int
    again: bool


@dataclass(frozen=True, slots=True)
class Edge:
    atom: int
    actions: tuple[Action, ...] = ()
    within: int | None = None
    """The greatest time in microseconds from the last event of the partial match to that of the
    step. At a start, and in a unit searched before a match, it counts from the first event of the
    step. None: no bound."""
    marks: tuple[int, ...] = ()
    """The bounded units of several steps that the edge begins."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A link may be followed iff `least` ≤ iteration number of `unit` < `below`."""

    unit: int
    least: int = 0
    below: int | None = None


@dataclass(frozen=True, slots=True)
class EagerGuard:
    """A guard of a place that is decided as soon as its event arrives (first-chance negation).

    Every waiting partial match determines the registers that the guard reads, and no later step
    changes them. The event therefore removes the partial matches that it agrees with. `keys` are
    (register, variable) pairs bound on both sides: an equality index.
    """

    guard: int
    keys: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Link:
    target: int
    bounds: tuple[Bound, ...] = ()
    guards: tuple[int, ...] = ()
    """Guards of ACCEPT and DONE links; the guards of other links belong to the target place."""
    eager_guards: tuple[EagerGuard, ...] = ()
    """Of ACCEPT links: guards that remove a match while it waits for its window to close."""


@dataclass(frozen=True, slots=True)
class Atom:
    """The events that one edge consumes.

    An atom has operands, an operand has alternatives, and an alternative has occurrences that share
    a timestamp. `single` has one operand with one alternative of one occurrence; `together` (`&`)
    one operand with one alternative of several; `any-order` (`AND`) several operands. A `deadline`
    has no operands: it is complete `size` microseconds after the last event, or deadline, before
    it. `limits` are the (number, microseconds) of the bounded units around it.
    """

    kind: Literal["single", "together", "any-order", "deadline"]
    operands: tuple[tuple[tuple[int, ...], ...], ...]
    links: tuple[Link, ...] = ()
    size: int = 0
    limits: tuple[tuple[int, int], ...] = ()

    @property
    def conjoined(self) -> bool:
        """Whether it may consume several events."""
        return self.kind in ("together", "any-order")

    @property
    def occurrences(self) -> tuple[int, ...]:
        return tuple(
            occurrence
            for operand in self.operands
            for alternative in operand
            for occurrence in alternative
        )


@dataclass(frozen=True, slots=True)
class Place:
    """A state of the automaton; `operator` is None at the start."""

    operator: Operator | None
    guards: tuple[int, ...]
    edges: tuple[Edge, ...]
    start: bool = False
    live: tuple[int, ...] = ()
    """Registers that a later step or filter can read, ascending."""
    keys: tuple[tuple[tuple[int, str], ...], ...] = ()
    """Per edge: (register, variable) pairs bound on both sides; they key the equality index."""
    joint: tuple[tuple[tuple[tuple[int, str], ...], ...], ...] = ()
    """Per edge over several events, and per occurrence of its atom: the keys for a row that
    completes the step. Empty if another occurrence has the same GPM."""
    equal: tuple[tuple[tuple[int, str], ...], ...] = ()
    """Per edge: (register, variable) pairs that the index compares by value, not as terms."""
    orders: tuple[tuple[int, str, Relation] | None, ...] = ()
    """Per edge: (register, variable, relation of the variable to the register), where a range index
    serves a comparison."""
    eager_guards: tuple[EagerGuard, ...] = ()
    """Guards that are decided on sight."""

    def shared(self, position: int) -> tuple[tuple[int, str], ...]:
        """The keys of an edge that hold for every event that may complete it."""
        first, *others = self.joint[position] or self.keys[position : position + 1]
        return tuple(key for key in first if all(key in other for other in others))


@dataclass(frozen=True, slots=True)
class Guard:
    """A unit that must not occur strictly between a partial match and the next step.

    `occurrence` is set if the unit is one GPM; otherwise `starts` are the places where an
    occurrence may begin. `units` are the iterated units around the guard whose current iteration
    belongs to the partial match. It is empty for a step skipped at the start of a sequence: that
    iteration belongs to the following step. `reads` are the registers that the decision reads.
    """

    units: tuple[int, ...]
    starts: tuple[int, ...]
    occurrence: int | None
    negated: bool
    """True for a written negation, False for the absence of an optional step."""
    relative: bool = False
    """Whether an occurrence depends on the instant from which the search begins: the unit begins
    with a step that may be skipped or has a bound, or with an `AND` group under `;`, whose operands
    look for earlier events since that instant."""
    reads: tuple[int, ...] = ()
    lookback: int | None = None
    """Before a match: the microseconds that the search reaches back; None: the window."""


def within_text(within: int | None) -> str:
    """The bound of an edge in seconds: ` within 5 s`; empty without one."""
    return "" if within is None else f" within {seconds_text(within)}"


def seconds_text(micros: int) -> str:
    """Microseconds as seconds: `5 s`."""
    return f"{Decimal(micros).scaleb(-6).normalize():f} s"


@dataclass(frozen=True, slots=True)
class Automaton:
    """The automaton; indices of each kind count from 0."""

    places: tuple[Place, ...]
    atoms: tuple[Atom, ...]
    guards: tuple[Guard, ...]
    starts: tuple[int, ...]
    register_names: tuple[str, ...]
    ambiguous: bool = True
    """Whether two runs may accept the same list of witnesses."""

    def limits(self, edge: Edge) -> tuple[tuple[int, int], ...]:
        """The bounds of the units around the step of an edge that were begun before it."""
        return tuple(each for each in self.atoms[edge.atom].limits if each[0] not in edge.marks)

    @property
    def doubling(self) -> tuple[int, ...]:
        """The places by which the number of matches of an event can double with each earlier event.

        They lie in an iteration without an upper bound, and a match can go on from them in two ways
        that meet again: with this event or, under `:`, a later one; or with another round of an
        outer iteration. Rows apart: several solutions of one event multiply in any iteration.
        """
        after = [self._iterating(place) for place in self.places]
        left = set(range(len(after)))
        while True:
            # What is left are the cycles, and what leads from one to another.
            met = {target for place in left for some in after[place] for target in some & left}
            kept = {place for place in met & left if any(some & left for some in after[place])}
            if kept == left:
                break
            left = kept
        reached = {place: self._reached(place, after, left) for place in left}
        found = []
        for place in sorted(left):
            cycle = {other for other in reached[place] if place in reached[other]}
            ways = [some & cycle for some in after[place]]
            if self.places[place].operator == ":":
                doubles = any(ways)
            else:
                strict = all(self.places[other].operator == "," for other in cycle)
                doubles = not strict and any(len(some) > 1 for some in ways)
            if doubles:
                found.append(place)
        return tuple(found)

    def _iterating(self, place: Place) -> list[set[int]]:
        """Per edge of a place: the places after it, by links that bound no iterations."""
        return [
            {
                link.target
                for link in self.atoms[edge.atom].links
                if link.target >= 0 and all(bound.below is None for bound in link.bounds)
            }
            for edge in place.edges
        ]

    @staticmethod
    def _reached(place: int, after: Sequence[Sequence[set[int]]], within: set[int]) -> set[int]:
        found: set[int] = set()
        todo = [place]
        while todo:
            for some in after[todo.pop()]:
                todo += (some & within) - found
                found |= some & within
        return found

    @property
    def waits(self) -> bool:
        """Whether some matches are complete only at the close of their window."""
        return any(link.target == ACCEPT and link.guards for a in self.atoms for link in a.links)

    @property
    def expires(self) -> bool:
        """Whether some matches are complete at a deadline."""
        return any(
            link.target == ACCEPT and not link.guards
            for atom in self.atoms
            if atom.kind == "deadline"
            for link in atom.links
        )

    @property
    def timed(self) -> bool:
        """Whether some place waits for a deadline."""
        return any(atom.kind == "deadline" for atom in self.atoms)

    def deadline(self, place: int) -> Atom | None:
        """The deadline that a place waits for; None for other places."""
        edges = self.places[place].edges
        atom = self.atoms[edges[0].atom] if edges else None
        return atom if atom is not None and atom.kind == "deadline" else None

    def validate(self) -> None:
        """Check that indices fit; raises ValueError naming the part."""
        for number, place in enumerate(self.places):
            if any(not 0 <= edge.atom < len(self.atoms) for edge in place.edges):
                raise ValueError(f"place {number} has an edge to no atom")
            if any(not 0 <= guard < len(self.guards) for guard in place.guards):
                raise ValueError(f"place {number} names an unknown guard")
            if list(place.live) != sorted(set(place.live)):
                raise ValueError(f"place {number} has unsorted live registers")
            if any(not 0 <= r < len(self.register_names) for r in place.live):
                raise ValueError(f"place {number} names an unknown register")
        for number, atom in enumerate(self.atoms):
            for link in atom.links:
                if not (link.target in (ACCEPT, DONE) or 0 <= link.target < len(self.places)):
                    raise ValueError(f"atom {number} links to no place")

    def __str__(self) -> str:
        """The text of `describe`, with the numbers of occurrences in place of names."""
        occurrences = (number for atom in self.atoms for number in atom.occurrences)
        return self.describe([f"#{number}" for number in range(max(occurrences, default=-1) + 1)])

    def describe(self, occurrence_names: Sequence[str]) -> str:
        """One line per place: `^` marks a start, `>` precedes the next places."""
        lines = []
        for number, place in enumerate(self.places):
            mark = "^" if number in self.starts else " "
            edges = " | ".join(
                f"{self._edge(edge, occurrence_names)} > {self._targets(edge)}"
                for edge in place.edges
            )
            guards = "".join(
                f" not {self._guard(guard, occurrence_names)}" for guard in place.guards
            )
            live = ", ".join(self.register_names[r] for r in place.live) or "none"
            operator = place.operator or "start"
            lines.append(f"{mark}{number:>3} {operator:<5}{guards} {edges}   registers: {live}")
        return "\n".join(lines)

    def atom_text(self, atom: int, names: Sequence[str]) -> str:
        """The atom in the query's own notation."""
        value = self.atoms[atom]
        if value.kind == "deadline":
            return seconds_text(value.size)
        operands = [
            " | ".join(" & ".join(names[o] for o in alternative) for alternative in operand)
            for operand in value.operands
        ]
        return " AND ".join(operands)

    def _edge(self, edge: Edge, names: Sequence[str]) -> str:
        actions = "".join(
            f" {'again' if action.again else 'begin'} unit {action.unit}" for action in edge.actions
        )
        return self.atom_text(edge.atom, names) + within_text(edge.within) + actions

    def _targets(self, edge: Edge) -> str:
        return ", ".join(
            "accept" + (" at closing" if link.guards else "")
            if link.target == ACCEPT
            else "done"
            if link.target == DONE
            else str(link.target)
            for link in self.atoms[edge.atom].links
        )

    def _guard(self, guard: int, names: Sequence[str]) -> str:
        value = self.guards[guard]
        back = within_text(value.lookback)
        if value.occurrence is not None:
            return names[value.occurrence] + back
        atoms = [
            self.atom_text(edge.atom, names)
            for start in value.starts
            for edge in self.places[start].edges
        ]
        return f"({' | '.join(atoms)} …){back}"
