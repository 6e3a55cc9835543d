"""Live registers of each place, and the registers that index its groups.

A backward analysis: a register is live at a place if some path from it reads the register before a
new iteration resets it. No later event can distinguish partial matches that agree on the live
registers of a place (Alevizos et al., Register Match Automata), so they wait there as one group. A
forward analysis: a variable bound on every path to a place and by every row of an edge keys an
equality index.

Both are fixpoints. Cost: places × registers × the length of the longest path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

from spaseq.nfa.automaton import Action, Automaton, EagerGuard, Edge, Guard, Link, Place, Relation
from spaseq.plan.logical import Condition, QueryPlan, Register
from spaseq.plan.references import iteration_register, mark_registers
from spaseq.rules import enabled


def analyse(automaton: Automaton, plan: QueryPlan) -> Automaton:
    """The automaton with `live`, `keys` and the guards' `reads` filled in."""
    flow = _Flow(automaton, plan)
    flow.solve()
    sure = _bound_on_every_way(automaton, plan)
    changed = _changed_on_some_way(automaton, plan)
    places = tuple(
        replace(
            _indexed(place, flow, sure[number]),
            live=flow.sorted(flow.live[number] & changed[number]),
        )
        for number, place in enumerate(automaton.places)
    )
    guards = tuple(
        replace(guard, reads=flow.sorted(flow.guard_reads(guard))) for guard in automaton.guards
    )
    atoms = tuple(
        replace(atom, links=tuple(_closing(link, flow, known) for link in atom.links))
        for atom, known in zip(automaton.atoms, _bound_after(automaton, flow, sure), strict=True)
    )
    return replace(automaton, places=places, atoms=atoms, guards=guards)


Names = frozenset[str]


class _Flow:
    def __init__(self, automaton: Automaton, plan: QueryPlan):
        self.automaton = automaton
        self.plan = plan
        self.registers = {register.name: register for register in plan.registers}
        self.numbers = {register.name: n for n, register in enumerate(plan.registers)}
        self.live: list[Names] = [frozenset() for _ in automaton.places]

    def sorted(self, names: Names) -> tuple[int, ...]:
        return tuple(sorted(self.numbers[name] for name in names))

    def solve(self) -> None:
        changed = True
        while changed:
            changed = False
            for number, place in enumerate(self.automaton.places):
                found = self._place(place)
                if found != self.live[number]:
                    self.live[number] = found
                    changed = True

    def guard_reads(self, guard: Guard) -> Names:
        return frozenset().union(*(self.live[start] for start in guard.starts))

    def _place(self, place: Place) -> Names:
        # The partition of a partial match decides contiguity and emission in every place.
        names = frozenset(self.plan.partition)
        names = self._union(names, *(self.guard_reads(self._guard(g)) for g in place.guards))
        return self._union(names, *(self._edge(edge) for edge in place.edges))

    def _guard(self, number: int) -> Guard:
        return self.automaton.guards[number]

    def _edge(self, edge: Edge) -> Names:
        atom = self.automaton.atoms[edge.atom]
        after = self._union(frozenset(), *(self._link(link) for link in atom.links))
        for number in atom.occurrences:
            occurrence = self.plan.occurrences[number]
            gpm = self.plan.gpms[occurrence.gpm]
            conditions: list[Condition] = list(occurrence.residual)
            conditions += [assignment.value for assignment in occurrence.assignments]
            bound = (*gpm.variables, *(a.variable for a in occurrence.assignments))
            after = self._union(after, frozenset(bound), *(c.reads for c in conditions))
        after |= _marks(number for number, _ in self.automaton.limits(edge))
        return self._before_actions(after - _marks(edge.marks), edge)

    def _link(self, link: Link) -> Names:
        names = frozenset(iteration_register(bound.unit) for bound in link.bounds)
        names = self._union(names, *(self.guard_reads(self._guard(g)) for g in link.guards))
        return names | self.live[link.target] if link.target >= 0 else names

    def _before_actions(self, after: Names, edge: Edge) -> Names:
        again = {action.unit for action in edge.actions if action.again}
        begun = {action.unit for action in edge.actions if not action.again}
        before: set[str] = set()
        for name in after:
            register = self.registers[name]
            fresh = register.unit is not None and register.unit in again | begun
            if register.scope is not None and register.scope in again | begun:
                continue
            if register.kind == "value" and fresh:
                continue
            if register.kind == "previous" and fresh:
                if register.unit in again:
                    before.add(register.variable)
                continue
            if register.kind == "last" and fresh:
                continue
            if register.kind == "iterations" and (
                register.unit in begun or (fresh and register.again is not None)
            ):
                continue
            before.add(name)
        return frozenset(before)

    @staticmethod
    def _union(first: Names, *rest: Names) -> Names:
        return reduce(frozenset.union, rest, first)


def _changed_on_some_way(automaton: Automaton, plan: QueryPlan) -> list[Names]:
    """For each place the registers that some partial match waiting there may have set.

    All other registers have their initial value in every partial match, and so do not distinguish
    any.
    """
    found: list[Names] = [frozenset() for _ in automaton.places]
    changed = True
    while changed:
        changed = False
        for number, place in enumerate(automaton.places):
            for edge in place.edges:
                atom = automaton.atoms[edge.atom]
                here = set(found[number] | _marks(edge.marks))
                for action in edge.actions:
                    _enter(here, action, plan.registers)
                for occurrence in (plan.occurrences[o] for o in atom.occurrences):
                    bound = {a.variable for a in occurrence.assignments}
                    bound.update(plan.gpms[occurrence.gpm].variables, occurrence.counts)
                    here.update(
                        register.name
                        for register in plan.registers
                        if register.name in bound
                        or (register.variable in bound and register.kind != "previous")
                    )
                for link in atom.links:
                    if link.target >= 0 and not here <= found[link.target]:
                        found[link.target] |= here
                        changed = True
    return found


def _marks(bounded: Iterable[int]) -> Names:
    """The registers from which bounds count."""
    return frozenset(name for number in bounded for name in mark_registers(number))


def _enter(names: set[str], action: Action, registers: Sequence[Register]) -> None:
    """Apply the effect of beginning an iteration to the registers that may be set."""
    values = frozenset(names)
    for register in registers:
        if register.scope == action.unit:
            names.discard(register.name)
        if register.unit != action.unit:
            continue
        match register.kind:
            case "value" | "last":
                names.discard(register.name)
            case "previous":
                names.discard(register.name)
                if action.again and register.variable in values:
                    names.add(register.name)
            case "first" | "iterations":
                names.add(register.name)


def _bound_on_every_way(automaton: Automaton, plan: QueryPlan) -> list[Names]:
    """For each place the value registers that every partial match waiting there has bound."""
    everything = frozenset(r.name for r in plan.registers if r.kind == "value")
    registers = {register.name: register for register in plan.registers}
    fragment_starts = {start for guard in automaton.guards for start in guard.starts}
    sure = [
        frozenset() if place.start or number in fragment_starts else everything
        for number, place in enumerate(automaton.places)
    ]
    changed = True
    while changed:
        changed = False
        for number, place in enumerate(automaton.places):
            for edge in place.edges:
                atom = automaton.atoms[edge.atom]
                kept = _kept(sure[number], edge, registers)
                for occurrence in _surely_met(atom.operands):
                    kept |= plan.gpms[plan.occurrences[occurrence].gpm].certain
                for link in atom.links:
                    if link.target >= 0 and not sure[link.target] <= kept:
                        sure[link.target] &= kept
                        changed = True
    return sure


def _surely_met(operands: tuple[tuple[tuple[int, ...], ...], ...]) -> list[int]:
    return [o for operand in operands if len(operand) == 1 for o in operand[0]]


def _kept(names: Names, edge: Edge, registers: dict[str, Register]) -> Names:
    fresh = {action.unit for action in edge.actions}
    return frozenset(name for name in names if registers[name].unit not in fresh)


def _indexed(place: Place, flow: _Flow, sure: Names) -> Place:
    """The place with the indexes of each of its edges."""
    keys: list[tuple[tuple[int, str], ...]] = []
    equal: list[tuple[tuple[int, str], ...]] = []
    joint: list[tuple[tuple[tuple[int, str], ...], ...]] = []
    for edge in place.edges:
        atom = flow.automaton.atoms[edge.atom]
        if atom.kind == "deadline":
            keys.append(())
            equal.append(())
            joint.append(())
            continue
        joint.append(() if place.start else tuple(_joint(edge, flow, sure)))
        kept: Names = frozenset()
        if atom.kind == "single" and not place.start:
            kept = _kept(sure, edge, flow.registers)
        occurrence = flow.plan.occurrences[atom.occurrences[0]]
        shared = sorted(kept & flow.plan.gpms[occurrence.gpm].certain)
        served = shared if enabled("equality_index") else ()
        keys.append(tuple((flow.numbers[name], name) for name in served))
        equal.append(
            tuple(
                (flow.numbers[other], own) for own, other in occurrence.equalities if other in kept
            )
        )
    return replace(
        place,
        keys=tuple(keys),
        joint=tuple(joint),
        equal=tuple(equal),
        orders=tuple(None if place.start else _order(edge, flow) for edge in place.edges),
        eager_guards=() if place.start else tuple(_eager_guards(place, flow, sure)),
    )


def _joint(edge: Edge, flow: _Flow, sure: Names) -> Iterator[tuple[tuple[int, str], ...]]:
    """For each occurrence of a conjunction, the keys that its row shares with waiting groups."""
    atom = flow.automaton.atoms[edge.atom]
    if atom.kind == "single":
        return
    kept = _kept(sure, edge, flow.registers)
    taken = [flow.plan.occurrences[number].gpm for number in atom.occurrences]
    for gpm in taken:
        served = taken.count(gpm) == 1 and enabled("equality_index")
        shared = sorted(kept & flow.plan.gpms[gpm].certain) if served else ()
        yield tuple((flow.numbers[name], name) for name in shared)


def _order(edge: Edge, flow: _Flow) -> tuple[int, str, Relation] | None:
    """The register that a filter of the edge compares, as stored in waiting groups."""
    atom = flow.automaton.atoms[edge.atom]
    if atom.kind != "single" or not enabled("range_index"):
        return None
    entered = {action.unit for action in edge.actions}
    again = {action.unit for action in edge.actions if action.again}
    occurrence = flow.plan.occurrences[atom.occurrences[0]]
    compared: list[tuple[str, Relation, str]] = [
        (own, "equal", other) for own, other in occurrence.equalities
    ]
    compared += [
        (own, "greater" if more else "less", other)
        for own, more, other, unit in occurrence.comparisons
        if unit is None or unit in entered - again
    ]
    for own, relation, other in compared:
        register = flow.registers[other]
        if register.kind == "previous" and register.unit in again:
            # PREV takes the value of the iteration that ends here.
            return flow.numbers[register.variable], own, relation
        if register.kind == "value" and not {register.unit, register.scope} & entered:
            return flow.numbers[other], own, relation
    return None


def _eager_guards(place: Place, flow: _Flow, sure: Names) -> Iterator[EagerGuard]:
    """The guards of a place that no later step affects.

    A step over several events begins before its last one, so its guards search between its events
    and are not decided on sight.
    """
    if not enabled("first_chance_negation") or any(
        flow.automaton.atoms[edge.atom].conjoined for edge in place.edges
    ):
        return
    for number in place.guards:
        guard = flow.automaton.guards[number]
        if guard.occurrence is None or guard.relative:
            continue
        reads = flow.guard_reads(guard)
        if not any(_touches(edge, guard, reads, flow, sure) for edge in place.edges):
            gpm = flow.plan.gpms[flow.plan.occurrences[guard.occurrence].gpm]
            shared = sorted(reads & sure & gpm.certain)
            yield EagerGuard(number, tuple((flow.numbers[name], name) for name in shared))


def _bound_after(automaton: Automaton, flow: _Flow, sure: list[Names]) -> list[Names]:
    """For each atom the value registers that are bound in every place with an edge over it."""
    found: list[Names | None] = [None] * len(automaton.atoms)
    for number, place in enumerate(automaton.places):
        for edge in place.edges:
            kept = _kept(sure[number], edge, flow.registers)
            for occurrence in _surely_met(automaton.atoms[edge.atom].operands):
                kept |= flow.plan.gpms[flow.plan.occurrences[occurrence].gpm].certain
            known = found[edge.atom]
            found[edge.atom] = kept if known is None else known & kept
    return [frozenset() if known is None else known for known in found]


def _closing(link: Link, flow: _Flow, known: Names) -> Link:
    """A link with its guards that are single GPMs; `known` registers are bound in all matches."""
    found = []
    for number in link.guards:
        guard = flow.automaton.guards[number]
        if guard.occurrence is not None and not guard.relative and enabled("first_chance_negation"):
            gpm = flow.plan.gpms[flow.plan.occurrences[guard.occurrence].gpm]
            shared = sorted(flow.guard_reads(guard) & known & gpm.certain)
            found.append(EagerGuard(number, tuple((flow.numbers[name], name) for name in shared)))
    return replace(link, eager_guards=tuple(found))


def _touches(edge: Edge, guard: Guard, reads: Names, flow: _Flow, sure: Names) -> bool:
    """Whether taking an edge changes a register that a guard reads."""
    entered = {action.unit for action in edge.actions}
    own = entered & set(guard.units)
    bound: set[str] = set()
    for number in flow.automaton.atoms[edge.atom].occurrences:
        occurrence = flow.plan.occurrences[number]
        bound.update(flow.plan.gpms[occurrence.gpm].variables, occurrence.counts)
        bound.update(assignment.variable for assignment in occurrence.assignments)
    for register in (flow.registers[name] for name in reads):
        around = {register.unit, register.scope}
        if around & own:
            continue  # the guard sees its own iteration, not the one entered here
        if around & entered or (register.name in bound and register.name not in sure):
            return True
        if register.variable in bound and register.kind not in ("value", "previous"):
            return True
    return False
