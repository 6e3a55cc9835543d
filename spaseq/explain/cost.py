"""The cost of one event for a compiled query: the guarantee that `explain` states.

The cost of a row at a place is the number of groups it is compared with. There is one group if no
register is live, and an index finds one group if every live register is bound on both sides. Any
other live register multiplies the groups that a row visits, with one exception: if a filter
compares the register, the core orders the groups by its value and visits only groups for which the
comparison can hold, or joins whole ranges at once if nothing later reads the groups' registers. A
guard that is decided on sight visits groups in the same way. Other guards, and conjunctions, search
the buffered rows of the window. The cost of the matches is added: each takes time linear in its
length, and their number can double with each event (`doubles`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from spaseq.engine.compiled import CompiledQuery, selection_clause
from spaseq.engine.place_names import Notation
from spaseq.errors import Diagnostic
from spaseq.nfa.automaton import Edge
from spaseq.nfa.native.conjunction_tables import Shared, guards_at_the_end, later_guards
from spaseq.nfa.native.range_tables import joins_whole
from spaseq.plan.logical import Condition, Occurrence, Register
from spaseq.plan.places import sequence_places
from spaseq.records import dataclass

Kind = Literal["constant", "indexed", "summed", "ordered", "looks back", "groups"]
_FITS = {"less": "no less than", "equal": "equal to", "greater": "no greater than"}
DOUBLING = (
    "the number of matches of one event can double with each earlier event that the iteration may "
    "take or leave out"
)
DOUBLING_REMEDY = (
    "; in place of : takes the next event each time; EMIT NEXT, LAST, ANY or MAX lists the chosen "
    "matches only; --max-matches (max_matches=) bounds the matches of one event"
)
_SURE = {"less": "greater than", "greater": "less than"}
_ORDER: tuple[Kind, ...] = ("constant", "indexed", "summed", "ordered", "looks back", "groups")


@dataclass(frozen=True, slots=True)
class EdgeCost:
    """The cost of a row for one edge of one place; `place` is the number that `explain` prints."""

    place: int
    edge: str
    kind: Kind
    because: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The worst cost of all edges, its description, and the edges whose cost is not constant.

    `matches` says how many matches an event can have, if they must be listed and can double.
    """

    kind: Kind
    sentence: str
    edges: tuple[EdgeCost, ...]
    matches: str | None


def guarantee(notation: Notation) -> Guarantee:
    """The maximum cost of an event for the query, besides evaluating its GPMs."""
    costs = [
        cost
        for place in notation.order
        for position in range(len(notation.automaton.places[place].edges))
        for cost in _Edge(notation, place, position).costs()
    ]
    kinds: set[Kind] = {cost.kind for cost in costs}
    kind = max(kinds, key=_ORDER.index, default=_ORDER[0])
    edges = tuple(c for c in costs if c.kind != "indexed")
    matches = DOUBLING if doubles(notation.compiled) else None
    return Guarantee(kind, _sentence(kind, costs), edges, matches)


def doubles(query: CompiledQuery) -> bool:
    """Whether the number of matches of one event that must be listed can double with each event."""
    clause = selection_clause(query)
    is_answer = query.plan.output.form == "ask" and query.plan.output.grouping is None
    listed = not is_answer if clause is None else bool(clause["lists_all"])
    return listed and bool(query.automaton.doubling)


def doubling_note(query: CompiledQuery) -> Diagnostic | None:
    """A note on `doubles` for `check`, at the first place by which the matches double."""
    if not doubles(query):
        return None
    automaton, sequence = query.automaton, query.plan.sequence
    atoms = (automaton.atoms[edge.atom] for edge in automaton.places[automaton.doubling[0]].edges)
    occurrence = next((number for atom in atoms for number in atom.occurrences), None)
    span = sequence.span
    if occurrence is not None:
        span = sequence_places(sequence).occurrences[occurrence].reference.span
    return Diagnostic(DOUBLING, span, DOUBLING_REMEDY, severity="note")


def _sentence(kind: Kind, costs: list[EdgeCost]) -> str:
    if kind == "constant":
        return (
            "constant time per event and row, for any window and any number of waiting partial "
            "matches: no step depends on the values of another"
        )
    if kind == "indexed":
        return (
            "constant time per event and row, for any window and any number of waiting partial "
            "matches: an index finds groups by the shared variables"
        )
    if kind == "summed":
        return (
            "logarithmic in the waiting groups, however many of them an event is joined to: an "
            "index holds unions of groups in the order of a compared register"
        )
    if kind == "ordered":
        return (
            "logarithmic in the waiting groups, and linear in the groups that an event is joined "
            "to: an index holds groups in the order of a compared register"
        )
    if kind == "looks back":
        return "linear in the buffered rows of the window that an event makes it search"
    places = sorted({cost.place for cost in costs if cost.kind == "groups"})
    named = ", ".join(map(str, places))
    return (
        f"linear in the groups waiting in place{'s' * (len(places) > 1)} {named}, "
        "which are visited one by one"
    )


def conditions(occurrence: Occurrence) -> list[tuple[str, Condition]]:
    """The stateful BINDs and the residual filters of a place, each with its text."""
    binds = [(f"BIND({a.value.text} AS ?{a.variable})", a.value) for a in occurrence.assignments]
    return binds + [(f"FILTER({c.text})", c) for c in occurrence.residual]


class _Edge:
    """One edge of one place."""

    def __init__(self, notation: Notation, place: int, position: int):
        self.notation = notation
        self.number = place
        self.position = position
        self.place = notation.automaton.places[place]
        self.edge: Edge = self.place.edges[position]
        self.atom = notation.automaton.atoms[self.edge.atom]
        self.occurrences = [notation.plan.occurrences[o] for o in self.atom.occurrences]
        self.keys = {number for number, _ in self.place.shared(position)}
        self.name = notation.atom(self.edge.atom)

    def costs(self) -> Iterator[EdgeCost]:
        registers = self.notation.plan.registers
        apart = [registers[n] for n in self.place.live if n not in self.keys]
        unbounded = [register for register in apart if register.kind != "iterations"]
        order = self.place.orders[self.position]
        if self.atom.kind == "deadline":
            unbounded = []  # only the groups whose deadline has passed are visited
        if order is not None and self._joins_whole():
            yield self._cost("summed", self._visited(unbounded))
        elif order is not None and unbounded == [registers[order[0]]]:
            yield self._cost("ordered", self._visited(unbounded))
        elif unbounded:
            yield self._cost("groups", self._visited(unbounded))
        elif self.keys:
            yield self._cost("indexed", ())
        ended = tuple(self._ended()) if self.position == 0 else ()
        if ended:
            yield self._cost("groups", ended)
        looked = tuple(self._lookback())
        if looked:
            yield self._cost("looks back", looked)

    def _joins_whole(self) -> bool:
        return joins_whole(self.notation.plan, self.notation.automaton, self.number, self.position)

    def _cost(self, kind: Kind, because: tuple[str, ...]) -> EdgeCost:
        return EdgeCost(self.notation.numbers[self.number], self.name, kind, because)

    def _visited(self, apart: list[Register]) -> tuple[str, ...]:
        order = self.place.orders[self.position]
        index = [f"?{name}" for _, name in self.place.shared(self.position)]
        which = f"those with the same {', '.join(index)}" if index else "all of them"
        if order is not None and self._joins_whole():
            shown = self.notation.register(self.notation.plan.registers[order[0]])
            which = f"unions of those whose {shown} is {_SURE[order[2]]} ?{order[1]}, and the equal"
        elif order is not None:
            shown = self.notation.register(self.notation.plan.registers[order[0]])
            which += f" whose {shown} is {_FITS[order[2]]} ?{order[1]}"
        if self.place.operator == "," and not self.notation.plan.partition:
            which += ", which are of the last instant only"
        reasons = dict.fromkeys(reason for r in apart for reason in self._reasons(r))
        return (which, *reasons)

    def _reasons(self, register: Register) -> list[str]:
        shown = self.notation.register(register)
        readers = [
            f"{text} of {self.notation.names[occurrence.index]}"
            for occurrence in self.occurrences
            for text, condition in conditions(occurrence)
            if self._reads(condition, register)
        ]
        if readers:
            return readers
        if any(register.name in self._variables(o) for o in self.occurrences):
            if self.atom.kind != "single":
                return [f"{shown} is shared, but not with every graph pattern, or with two alike"]
            return [f"{shown} is shared, but may be unbound on one side"]
        later = self._later_readers(register)
        return [f"{shown} is kept for {' and '.join(later)}" if later else f"{shown} is kept"]

    def _variables(self, occurrence: Occurrence) -> tuple[str, ...]:
        return self.notation.plan.gpms[occurrence.gpm].variables

    def _reads(self, condition: Condition, register: Register) -> bool:
        """Whether a condition reads the register, or another one of the same variable."""
        read = [r for r in self.notation.plan.registers if r.name in condition.reads]
        if register.variable:
            return any(r.variable == register.variable for r in read)
        return register.name in condition.reads

    def _later_readers(self, register: Register) -> list[str]:
        """The later GPMs that join on the register or filter by it."""
        automaton = self.notation.automaton
        readers: dict[str, None] = {}
        waiting = [self.number]
        seen = set(waiting)
        while waiting:
            place = automaton.places[waiting.pop()]
            for guard in place.guards:
                if self.notation.plan.registers.index(register) in automaton.guards[guard].reads:
                    readers[self.notation.guard(guard)] = None
            for edge in place.edges:
                for number in automaton.atoms[edge.atom].occurrences:
                    occurrence = self.notation.plan.occurrences[number]
                    if register.variable in self._variables(occurrence) or any(
                        self._reads(condition, register) for _, condition in conditions(occurrence)
                    ):
                        readers[self.notation.names[number]] = None
                for link in self.notation.ways(edge):
                    if link.target >= 0 and link.target not in seen:
                        seen.add(link.target)
                        waiting.append(link.target)
        return list(readers)

    def _ended(self) -> Iterator[str]:
        """The guards decided on sight for whose rows no index finds the groups to remove."""
        for eager in self.place.eager_guards:
            keys = {number for number, _ in eager.keys}
            if set(self.place.live) > keys:
                which = ", ".join(f"?{name}" for _, name in eager.keys)
                visited = f"those with the same {which}" if which else "all of them"
                guard = self.notation.guard(eager.guard)
                yield f"groups that a row of {guard} may remove: {visited}"

    def _lookback(self) -> Iterator[str]:
        guards = later_guards(self.place)
        if guards:
            since = "of the window" if self.place.start else "since the partial match's last event"
            yield (
                f"to decide {self.notation.guards(guards)}, its rows {since} are searched"
                f"{self._index_text(guards)}"
            )
        if self.atom.kind == "together":
            yield f"{self.name} joins the rows of one timestamp"
        if self.atom.kind == "any-order":
            yield f"{self.name} joins the rows of its operands in the window"
        for link in self.notation.ways(self.edge):
            later = guards_at_the_end(link)
            ended = [guard for guard in link.guards if guard not in later]
            ways = []
            if ended:
                ways.append(f"unless a row of {self.notation.guards(ended)} removes it")
            if later:
                ways.append(f"then the rows of {self.notation.guards(later)} are searched")
            if ways:
                yield f"each match waits for its window to close, {', '.join(ways)}"

    def _index_text(self, guards: Sequence[int]) -> str:
        """The index by which the core finds the rows of the guards of one GPM."""
        plan, known = self.notation.plan, self.notation.automaton.guards
        names: dict[str, None] = {}
        for occurrence in (known[guard].occurrence for guard in guards):
            if occurrence is not None:
                gpm = plan.occurrences[occurrence].gpm
                columns = Shared(plan).columns(gpm)
                names.update((f"?{plan.gpms[gpm].variables[c]}", None) for c in columns)
        return f", by an index where {' or '.join(names)} is bound" if names else ""
