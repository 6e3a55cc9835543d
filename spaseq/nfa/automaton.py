"""The automaton of one sequence expression: places, edges, atoms and guards, as flat data.

A *place* is one occurrence of an operator that waits for its right operand. Each of its
*edges* is one alternative first step of that operand: an *atom* (a GPM, a conjunction `&`
or `AND`) together with the iterations that taking it begins. A finished atom *links* to
the places that wait next. A *guard* is a unit that must not occur between the partial
match and what is joined to it. Sources: Agrawal et al., SASE+, for places and edges;
Alevizos et al., Register Match Automata, for registers.

Invariants (`validate`): indices are in range; a place's `live` registers are sorted;
`DONE` links occur in guards only, `ACCEPT` links outside them only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

ACCEPT = -1
"""Link target: the match is complete (at the closing of its window if the link has guards)."""
DONE = -2
"""Link target inside a guard: the guarded unit has occurred."""

Operator = Literal[",", ";", ":"]
Relation = Literal["less", "equal", "greater"]
"""What a filter wants; `less` and `greater` may be equal too."""


@dataclass(frozen=True, slots=True)
class Action:
    """What taking an edge does to iterated unit `unit`: begin a run, or go `again`."""

    unit: int
    again: bool


@dataclass(frozen=True, slots=True)
class Edge:
    atom: int
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class Bound:
    """A link may be followed iff `least` ≤ iteration number of `unit` < `below`."""

    unit: int
    least: int = 0
    below: int | None = None


@dataclass(frozen=True, slots=True)
class Sighting:
    """A guard of a place that is decided as soon as its event comes (first-chance negation).

    What deciding it reads is known of everybody who waits, and nothing that joins them later
    changes it; so its event ends the partial matches it finds waiting. `keys` are (register,
    variable) pairs bound on both sides: an equality index.
    """

    guard: int
    keys: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Link:
    target: int
    bounds: tuple[Bound, ...] = ()
    guards: tuple[int, ...] = ()
    """Of ACCEPT and DONE links only; a place has its own."""
    sightings: tuple[Sighting, ...] = ()
    """Of ACCEPT links: the guards that end a match that waits for its window to close."""


@dataclass(frozen=True, slots=True)
class Atom:
    """What one edge consumes.

    operands → alternatives → occurrences that share a timestamp. `single` has one operand
    with one alternative of one occurrence; `together` (`&`) one operand with one
    alternative of several; `any-order` (`AND`) several operands.
    """

    kind: Literal["single", "together", "any-order"]
    operands: tuple[tuple[tuple[int, ...], ...], ...]
    links: tuple[Link, ...] = ()

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
    """`operator` is None where nothing precedes (the start)."""

    operator: Operator | None
    guards: tuple[int, ...]
    edges: tuple[Edge, ...]
    start: bool = False
    live: tuple[int, ...] = ()
    """Registers that something further on can still read, ascending."""
    keys: tuple[tuple[tuple[int, str], ...], ...] = ()
    """Per edge: (register, variable) pairs bound on both sides: the equality index."""
    joint: tuple[tuple[tuple[tuple[int, str], ...], ...], ...] = ()
    """Per edge that takes several events, and occurrence of its atom: the same for a row that is
    the last to come; empty where another occurrence has rows of the same GPM."""
    equal: tuple[tuple[tuple[int, str], ...], ...] = ()
    """Per edge: (register, variable) pairs that the index compares by value, not as terms."""
    orders: tuple[tuple[int, str, Relation] | None, ...] = ()
    """Per edge: (register, variable, what that must be compared with it), where an ordered index
    serves a comparison."""
    sightings: tuple[Sighting, ...] = ()
    """The guards that are decided on sight."""

    def shared(self, position: int) -> tuple[tuple[int, str], ...]:
        """The keys of an edge, whichever of its events comes last."""
        first, *others = self.joint[position] or self.keys[position : position + 1]
        return tuple(key for key in first if all(key in other for other in others))


@dataclass(frozen=True, slots=True)
class Guard:
    """A unit that must not occur strictly between a partial match and what follows it.

    `occurrence` is set where the unit is one GPM; otherwise `starts` are the places where
    an occurrence may begin. `units` are the iterated units around the guard whose current
    iteration is the partial match's (none for a step skipped at the start of a sequence:
    its iteration is that of what follows). `reads` are the registers that deciding it reads.
    """

    units: tuple[int, ...]
    starts: tuple[int, ...]
    occurrence: int | None
    negated: bool
    """Written as a negation; otherwise the absence of an optional step."""
    relative: bool = False
    """What counts as an occurrence depends on the instant the search begins from: the unit
    begins with a step that may be skipped, or with an `AND` group under `;`, whose operands
    look for earlier events since that instant."""
    reads: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Automaton:
    """All of it; indices of each kind count from 0."""

    places: tuple[Place, ...]
    atoms: tuple[Atom, ...]
    guards: tuple[Guard, ...]
    starts: tuple[int, ...]
    register_names: tuple[str, ...]
    ambiguous: bool = True
    """Whether one list of witnesses may be found in two ways."""

    @property
    def waits(self) -> bool:
        """Whether some matches are complete only when their window closes."""
        return any(link.target == ACCEPT and link.guards for a in self.atoms for link in a.links)

    def validate(self) -> None:
        """Reject a program whose indices do not fit: raises ValueError naming the part."""
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

    def describe(self, occurrence_names: Sequence[str]) -> str:
        """One line per place: `^` marks a start, `>` what may come next."""
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
        operands = [
            " | ".join(" & ".join(names[o] for o in alternative) for alternative in operand)
            for operand in value.operands
        ]
        return " AND ".join(operands)

    def _edge(self, edge: Edge, names: Sequence[str]) -> str:
        actions = "".join(
            f" {'again' if action.again else 'begin'} unit {action.unit}" for action in edge.actions
        )
        return self.atom_text(edge.atom, names) + actions

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
        if value.occurrence is not None:
            return names[value.occurrence]
        atoms = [
            self.atom_text(edge.atom, names)
            for start in value.starts
            for edge in self.places[start].edges
        ]
        return f"({' | '.join(atoms)} …)"
