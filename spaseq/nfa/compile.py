"""Sequence expression → automaton.

A Glushkov construction over steps: every unit yields its *arrivals* (ways in: operator, guards and
atoms) and its *exits* (the atoms that end it). Joining a unit to what precedes it makes one place
for each pair of exit and arrival, so each operator occurrence has its own obligation. An optional
step is a left join: the next step can also be reached without it, under a guard that the optional
step does not occur.

An absence with a deadline is a separate atom without events: its place waits for the deadline, and
a guard forbids the absent unit. If nothing precedes the absence, it is a guard that looks back
instead.

Occurrences and iterated units are numbered in the order of the text, as `plan` does. A guard over
an optional step names the same occurrences as the step itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, permutations, product
from math import prod

from spaseq.errors import Diagnostic, QuerySemanticError
from spaseq.nfa.ambiguity import ambiguous
from spaseq.nfa.automaton import (
    ACCEPT,
    DONE,
    Action,
    Atom,
    Automaton,
    Bound,
    Edge,
    Guard,
    Link,
    Operator,
    Place,
)
from spaseq.nfa.liveness import analyse
from spaseq.parser import ast
from spaseq.plan.logical import QueryPlan
from spaseq.plan.places import bounded_units
from spaseq.records import dataclass

MAX_TRANSITIONS = 50_000
"""Ways from step to step in one query, each with the steps that must be absent on it.

A row of n optional steps has about n³/6 of them, so 50,000 suffice for some 60."""


def compile_automaton(plan: QueryPlan, most: int | None = None) -> Automaton:
    """The automaton of a plan, with its live registers and equality indexes.

    Raises:
        QuerySemanticError: if the automaton has more than `most` transitions.
    """
    builder = _Builder(plan, most)
    arrivals, exits = builder.sequence(plan.sequence, None)
    starts = tuple(
        builder.place(Place(None, builder.in_front(arrival.guards), arrival.edges, start=True))
        for arrival in arrivals
        if arrival.begins is not False
    )
    for leaving in exits:
        builder.end(leaving)
    whole = Automaton(
        tuple(builder.places),
        tuple(
            replace(atom, links=tuple(dict.fromkeys(links)))
            for atom, links in zip(builder.atoms, builder.links, strict=True)
        ),
        tuple(builder.guards),
        starts,
        tuple(register.name for register in plan.registers),
    )
    automaton = analyse(_reachable(whole) if whole.timed else whole, plan)
    automaton.validate()
    return replace(automaton, ambiguous=ambiguous(automaton, plan))


def _reachable(automaton: Automaton) -> Automaton:
    """The automaton without the places and atoms that nothing leads to.

    A deadline with which the pattern begins is never waited for: its guard looks back.
    """
    places: dict[int, None] = {}
    todo = [*automaton.starts, *(start for guard in automaton.guards for start in guard.starts)]
    while todo:
        number = todo.pop()
        if number not in places:
            places[number] = None
            edges = automaton.places[number].edges
            links = (link for edge in edges for link in automaton.atoms[edge.atom].links)
            todo += [link.target for link in links if link.target >= 0]
    place_of = {number: new for new, number in enumerate(sorted(places))}
    atoms = sorted({edge.atom for number in places for edge in automaton.places[number].edges})
    atom_of = {number: new for new, number in enumerate(atoms)}

    def moved(link: Link) -> Link:
        return link if link.target < 0 else replace(link, target=place_of[link.target])

    return replace(
        automaton,
        places=tuple(
            replace(place, edges=tuple(replace(e, atom=atom_of[e.atom]) for e in place.edges))
            for place in (automaton.places[number] for number in place_of)
        ),
        atoms=tuple(
            replace(automaton.atoms[n], links=tuple(map(moved, automaton.atoms[n].links)))
            for n in atoms
        ),
        guards=tuple(
            replace(guard, starts=tuple(place_of[start] for start in guard.starts))
            for guard in automaton.guards
        ),
        starts=tuple(place_of[start] for start in automaton.starts),
    )


@dataclass(frozen=True, slots=True)
class _Arrival:
    """One way into a unit; if `operator` is None, the operator before the unit applies."""

    operator: Operator | None
    guards: tuple[int, ...]
    edges: tuple[Edge, ...]
    begins: bool | None = None
    """True: only at the start of a pattern; False: only after another step; None: either."""


@dataclass(frozen=True, slots=True)
class _Exit:
    atom: int
    bounds: tuple[Bound, ...] = ()
    guards: tuple[int, ...] = ()


_Ways = tuple[list[_Arrival], list[_Exit]]


class _Builder:
    def __init__(self, plan: QueryPlan, most: int | None) -> None:
        self._plan = plan
        self._most = most
        self._transitions = 0
        self.places: list[Place] = []
        self._numbers: dict[Place, int] = {}
        self.atoms: list[Atom] = []
        self.links: list[list[Link]] = []
        self.guards: list[Guard] = []
        self._occurrence = 0
        self._unit = 0
        self._around: tuple[int, ...] = ()
        self._bounded = bounded_units(plan.sequence)
        self._limits: tuple[tuple[int, int], ...] = ()
        self._fronts_behind: dict[int, tuple[int, ...]] = {}
        """By guard: its starts at the start of a pattern, if they differ."""
        self._absent_for: dict[int, int] = {}
        """By guard: the bound of the optional step that it stands for."""
        self._ends: dict[int, int] = {}
        """By time: the atom of a deadline at the end of the pattern."""

    def place(self, place: Place) -> int:
        number = self._numbers.setdefault(place, len(self.places))
        if number == len(self.places):
            self.places.append(place)
            ways = sum(_choices(self.atoms[edge.atom].operands) for edge in place.edges)
            self._add_transitions(ways + len(place.guards))
        self._add_transitions(1)
        return number

    def _add_transitions(self, count: int) -> None:
        self._transitions += count
        if self._most is not None and self._transitions > self._most:
            raise QuerySemanticError(
                [
                    Diagnostic(
                        f"SEQ has more than {self._most:,} transitions, the maximum of one query",
                        self._plan.sequence.span,
                        "many optional steps in a row, or `|` in many operands of `&` or AND, "
                        "multiply the ways through SEQ: write fewer of them, or divide the query",
                    )
                ],
                self._plan.source,
                self._plan.name,
            )

    def sequence(self, sequence: ast.Sequence, reach: Operator | None) -> _Ways:
        """The ways of a sequence; `reach` is the operator on its left, also through parentheses."""
        arrivals: list[_Arrival] = []
        exits: list[_Exit] = []
        skipped: tuple[int, ...] | None = ()
        begins: bool | None = None
        for step in sequence.steps:
            reaching = step.operator or reach
            if step.negated:
                guard = self._guard(step, reaching)
                exits = [replace(e, guards=(*e.guards, guard)) for e in exits]
                back = None if step.bound is None else step.bound.microseconds
                front = None if skipped is None else self._leading(guard, back)
                if step.bound is not None:
                    ways_in, ways_out = self._atoms(
                        [Atom("deadline", (), (), step.bound.microseconds)]
                    )
                    self._join(exits, ways_in, "for")
                    exits = ways_out
                    if skipped is not None and begins is None:
                        absent = (*skipped, self._leading(guard))
                        arrivals += [_Arrival("for", absent, a.edges, False) for a in ways_in]
                    begins = True
                if skipped is not None and front is not None:
                    skipped = (*skipped, front)
                continue
            optional = step.quantifier is not None and step.quantifier.least == 0
            guard = self._guard(step, reaching) if optional else -1
            if optional and step.bound is not None:
                self._absent_for[guard] = step.bound.microseconds
            ways_in, ways_out = self._step(step, reaching)
            self._join(exits, ways_in, step.operator)
            if skipped is not None:
                arrivals += [
                    replace(
                        a,
                        operator=a.operator or step.operator,
                        guards=skipped + a.guards,
                        begins=a.begins if begins is None else begins,
                    )
                    for a in ways_in
                    if begins is None or a.begins is not False
                ]
            if optional:
                exits = [replace(e, guards=(*e.guards, guard)) for e in exits] + ways_out
                skipped = (*skipped, self._leading(guard)) if skipped is not None else None
            else:
                exits, skipped = ways_out, None
        return arrivals, exits

    def end(self, leaving: _Exit) -> None:
        """End the pattern with an exit: at once, at the close of the window, or at a deadline.

        If everything that must be absent is an optional step with a bound, the latest bound is the
        deadline.
        """
        if not leaving.guards or not all(guard in self._absent_for for guard in leaving.guards):
            self.links[leaving.atom].append(Link(ACCEPT, leaving.bounds, leaving.guards))
            return
        size = max(self._absent_for[guard] for guard in leaving.guards)
        if size not in self._ends:
            (_, (made,)) = self._atoms([Atom("deadline", (), (), size)])
            self._ends[size] = made.atom
            self.links[made.atom].append(Link(ACCEPT))
        waits = Place("for", leaving.guards, (Edge(self._ends[size]),))
        self.links[leaving.atom].append(Link(self.place(waits), leaving.bounds))

    def _join(
        self, exits: list[_Exit], arrivals: list[_Arrival], operator: Operator | None
    ) -> None:
        for leaving, arrival in product(exits, arrivals):
            if arrival.begins:
                continue
            waits = Place(
                arrival.operator or operator or ";",
                leaving.guards + arrival.guards,
                arrival.edges,
            )
            self.links[leaving.atom].append(Link(self.place(waits), leaving.bounds))

    def _step(self, step: ast.Step, reach: Operator | None) -> _Ways:
        quantifier = step.quantifier
        if quantifier is None or quantifier.optional:
            return self._within(step.unit, reach, step.bound)
        least = max(quantifier.least, 1)
        return self._iteration(step.unit, least, quantifier.most, reach, step.bound)

    def _iteration(
        self,
        unit: ast.Unit,
        least: int,
        most: int | None,
        reach: Operator | None,
        bound: ast.Bound | None,
    ) -> _Ways:
        """The ways of an iteration; `bound` is that of each of its rounds."""
        number = self._unit
        self._unit += 1
        around, self._around = self._around, (*self._around, number)
        arrivals, exits = self._within(unit, reach, bound)
        self._around = around
        if most is None or most > 1:
            again = [_entering(arrival, Action(number, again=True)) for arrival in arrivals]
            below = () if most is None else (Bound(number, below=most),)
            self._join([replace(e, bounds=e.bounds + below) for e in exits], again, reach)
        enough = () if least <= 1 else (Bound(number, least=least),)
        return (
            [_entering(arrival, Action(number, again=False)) for arrival in arrivals],
            [replace(e, bounds=e.bounds + enough) for e in exits],
        )

    def _within(self, unit: ast.Unit, reach: Operator | None, bound: ast.Bound | None) -> _Ways:
        """The ways of a unit that must end within a bound.

        If the unit has several steps, each of them must respect the bound, which counts from a mark
        that the first one sets.
        """
        if bound is None:
            return self._parts(unit, reach)
        number, size = self._bounded.get(bound.span), bound.microseconds
        if number is None:
            return _bounded(self._parts(unit, reach), size)
        limits, self._limits = self._limits, (*self._limits, (number, size))
        ways = _bounded(self._parts(unit, reach), size, (number,))
        self._limits = limits
        return ways

    def _parts(self, unit: ast.Unit, reach: Operator | None) -> _Ways:
        if isinstance(unit, ast.Sequence):
            return self.sequence(unit, reach)
        if isinstance(unit, ast.Disjunction):
            return self._disjunction(unit, reach)
        if isinstance(unit, ast.GpmRef):
            return self._atoms([Atom("single", (((self._next(),),),))])
        if isinstance(unit, ast.Conjunction):
            return self._atoms([Atom("together", ((a,),)) for a in self._alternatives(unit)])
        operands = tuple(tuple(self._alternatives(operand)) for operand in unit.operands)
        self._add_transitions(_choices(operands))
        return self._atoms([Atom("any-order", operands)])

    def _disjunction(self, unit: ast.Disjunction, reach: Operator | None) -> _Ways:
        """The ways of a disjunction. The branches of a template have operators of their own."""
        together: list[Edge] = []
        apart: list[_Arrival] = []
        exits: list[_Exit] = []
        for side in unit.operands:
            ways_in, ways_out = self._parts(side, reach)
            for arrival in ways_in:
                if arrival.operator is None and not arrival.guards:
                    together += arrival.edges
                else:
                    apart.append(arrival)
            exits += ways_out
        whole = [_Arrival(None, (), tuple(together))] if together else []
        return [*whole, *apart], exits

    def _atoms(self, atoms: list[Atom]) -> _Ways:
        first = len(self.atoms)
        self.atoms += [replace(atom, limits=self._limits) for atom in atoms]
        self.links += [[] for _ in atoms]
        numbers = range(first, len(self.atoms))
        return (
            [_Arrival(None, (), tuple(Edge(number) for number in numbers))],
            [_Exit(number) for number in numbers],
        )

    def _alternatives(self, unit: ast.Unit) -> list[tuple[int, ...]]:
        """The alternatives of an operand of `&` or `AND`: occurrences that share a timestamp."""
        while isinstance(unit, ast.Sequence) and len(unit.steps) == 1:
            unit = unit.steps[0].unit
        if isinstance(unit, ast.GpmRef):
            return [(self._next(),)]
        assert isinstance(unit, ast.Conjunction | ast.Disjunction)
        parts = [self._alternatives(operand) for operand in unit.operands]
        if isinstance(unit, ast.Disjunction):
            return [alternative for part in parts for alternative in part]
        self._add_transitions(_choices(parts))
        return [sum(choice, ()) for choice in product(*parts)]

    def _next(self) -> int:
        self._occurrence += 1
        return self._occurrence - 1

    def _guard(self, step: ast.Step, reach: Operator | None) -> int:
        """A guard over the unit of a negated or optional step.

        `reach` is the operator on the left. It does not apply to the unit as a whole, but between
        its iterations and to each operand of an `AND` group at its start. For an optional step the
        numbering is reset, since guard and step share their occurrences.
        """
        marks = self._occurrence, self._unit
        limits, self._limits = self._limits, ()
        quantifier = step.quantifier
        bound = None if step.negated else step.bound
        if quantifier is not None and not quantifier.optional:
            least = max(quantifier.least, 1)
            arrivals, exits = self._iteration(step.unit, least, least, reach, bound)
        else:
            arrivals, exits = self._within(step.unit, reach, bound)
        self._limits = limits
        for leaving in exits:
            self.links[leaving.atom].append(Link(DONE, leaving.bounds, leaving.guards))
        starts = self._guard_starts([a for a in arrivals if not a.begins], reach)
        single = self._single(starts)
        first = [self.places[start] for start in starts]
        relative = any(
            place.guards
            or place.operator in (";", "for")
            or any(edge.within is not None for edge in place.edges)
            for place in first
        )
        if any(arrival.begins is not None for arrival in arrivals):
            front = self._guard_starts([a for a in arrivals if a.begins is not False], reach)
            self._fronts_behind[len(self.guards)] = front
        self.guards.append(Guard(self._around, starts, single, step.negated, relative))
        if not step.negated:
            self._occurrence, self._unit = marks
        return len(self.guards) - 1

    def _guard_starts(self, arrivals: list[_Arrival], reach: Operator | None) -> tuple[int, ...]:
        """The places where a guarded unit may begin."""
        return tuple(
            self.place(Place(operator, arrival.guards, edges))
            for arrival in arrivals
            for operator, edges in self._fronts(arrival, reach)
        )

    def _fronts(
        self, arrival: _Arrival, reach: Operator | None
    ) -> list[tuple[Operator, tuple[Edge, ...]]]:
        """The first steps of a guarded unit, with the operator that each obeys.

        If no operator reaches the unit, `;` holds in the rounds after the first. The first round
        looks back from the start of a match, where no operator binds.
        """
        if arrival.operator == "for":
            return [("for", arrival.edges)]
        if (arrival.operator or reach or ";") != ";":
            return [(":", arrival.edges)]
        fronts: list[tuple[Operator, tuple[Edge, ...]]] = []
        for obliged, some in groupby(arrival.edges, lambda edge: self._obliged(edge.atom)):
            edges = tuple(some)
            fronts += [(";", (edge,)) for edge in edges] if obliged else [(":", edges)]
        return fronts

    def _obliged(self, number: int) -> bool:
        """Whether `;` in front of a first step affects whether a guarded unit occurs.

        It does not if the unit is an `AND` group whose operands read no variables of each other,
        because the group then also occurs with each earlier event that an operand accepts.
        """
        atom = self.atoms[number]
        if atom.kind != "any-order":
            return False
        whole = all(
            link.target == DONE and not link.guards and not link.bounds
            for link in self.links[number]
        )
        return not whole or read_one_another(self._plan, atom.operands)

    def in_front(self, guards: tuple[int, ...]) -> tuple[int, ...]:
        """The guards, in the order of the text, that look back from the first step of a match.

        A negation after a skipped step is not at the start: it forbids nothing if no step precedes
        it, unless it has a bound.
        """
        negated = [self.guards[guard].negated for guard in guards]
        first = negated.index(False) if False in negated else len(guards)
        return tuple(
            g
            for n, g in enumerate(guards)
            if n < first or not negated[n] or self.guards[g].lookback is not None
        )

    def _leading(self, guard: int, lookback: int | None = None) -> int:
        """The guard of a step skipped at the start of its sequence.

        It belongs to the iteration that the next step begins, not to the one before. Before a
        match, it looks back by the bound of an absence.
        """
        starts = self._fronts_behind.get(guard, self.guards[guard].starts)
        leading = replace(self.guards[guard], units=(), lookback=lookback, starts=starts)
        self.guards.append(leading)
        return len(self.guards) - 1

    def _single(self, starts: tuple[int, ...]) -> int | None:
        """The occurrence of a guard that is one GPM, matched once; None for other guards."""
        if len(starts) != 1 or len(self.places[starts[0]].edges) != 1:
            return None
        edge = self.places[starts[0]].edges[0]
        atom = self.atoms[edge.atom]
        only_done = all(
            link.target == DONE and not link.guards and not link.bounds
            for link in self.links[edge.atom]
        )
        if atom.kind != "single" or edge.actions or not only_done:
            return None
        return atom.operands[0][0][0]


def read_one_another(plan: QueryPlan, operands: Sequence[Sequence[Sequence[int]]]) -> bool:
    """Whether a filter or BIND of an operand reads a variable that another operand binds."""
    registers = {register.name: register for register in plan.registers}
    read: list[set[str]] = []
    bound: list[set[str]] = []
    for operand in operands:
        occurrences = [plan.occurrences[o] for alternative in operand for o in alternative]
        names = {name for o in occurrences for c in o.conditions for name in c.reads}
        read.append({registers[name].variable for name in names})
        assigned = {assignment.variable for o in occurrences for assignment in o.assignments}
        gpms = [plan.gpms[o.gpm] for o in occurrences]
        bound.append(assigned.union(*(gpm.variables for gpm in gpms), (g.name for g in gpms)))
    return any(
        not read[one].isdisjoint(bound[other])
        for one, other in permutations(range(len(operands)), 2)
    )


def _choices(operands: Sequence[Sequence[Sequence[int]]]) -> int:
    """How many occurrences all choices of one alternative per operand have, at least."""
    return prod(map(len, operands)) * len(operands)


def _entering(arrival: _Arrival, action: Action) -> _Arrival:
    edges = tuple(replace(edge, actions=(action, *edge.actions)) for edge in arrival.edges)
    return replace(arrival, edges=edges)


def _bounded(ways: _Ways, within: int, marks: tuple[int, ...] = ()) -> _Ways:
    """The ways of a unit whose first step must be within a bound and begins bounded units."""
    arrivals, exits = ways
    return [
        replace(
            arrival,
            edges=tuple(
                replace(
                    edge,
                    within=within if edge.within is None else min(within, edge.within),
                    marks=(*marks, *edge.marks),
                )
                for edge in arrival.edges
            ),
        )
        for arrival in arrivals
    ], exits
