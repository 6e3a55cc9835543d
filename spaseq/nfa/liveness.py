"""Live registers of each place, and the registers that index its groups.

A backward analysis: a register is live at a place if some path from it reads the register before a
new iteration resets it. Nothing to come distinguishes partial matches that agree on the live
registers of a place (Alevizos et al., Register Match Automata), so they wait there as one group. A
forward analysis: a variable bound on every path to a place and by every row of an edge keys an
equality index.

Both are fixpoints over sets of registers. A set is an integer with one bit per register, so its
operations cost one machine word per 64 registers. A place is visited again only if a place whose
result it depends on has changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property, reduce
from heapq import heappop, heappush
from operator import or_

from spaseq.nfa.automaton import Action, Automaton, EagerGuard, Edge, Guard, Link, Place, Relation
from spaseq.plan.logical import QueryPlan
from spaseq.plan.references import iteration_register, mark_registers
from spaseq.rules import enabled

Registers = int
"""A set of registers: the bit of each is set."""


def analyse(automaton: Automaton, plan: QueryPlan) -> Automaton:
    """The automaton with `live`, `keys` and the guards' `reads` filled in."""
    flow = Flow(automaton, plan)
    flow.solve()
    sure = flow.bound_on_every_way()
    changed = flow.changed_on_some_way()
    places = tuple(
        replace(
            _indexed(place, flow, sure[number]),
            live=tuple(_numbers(flow.live[number] & changed[number])),
        )
        for number, place in enumerate(automaton.places)
    )
    guards = tuple(
        replace(guard, reads=tuple(_numbers(flow.guard_reads(guard)))) for guard in automaton.guards
    )
    atoms = tuple(
        replace(atom, links=tuple(_closing(link, flow, known) for link in atom.links))
        for atom, known in zip(automaton.atoms, _bound_after(automaton, flow, sure), strict=True)
    )
    return replace(automaton, places=places, atoms=atoms, guards=guards)


class Flow:
    """The registers that each part of the automaton reads, binds and resets.

    `visits` counts the places that the fixpoints have looked at.
    """

    def __init__(self, automaton: Automaton, plan: QueryPlan):
        self.automaton = automaton
        self.plan = plan
        self.registers = plan.registers
        self.numbers = {register.name: n for n, register in enumerate(plan.registers)}
        self.values = _of(
            n for n, register in enumerate(plan.registers) if register.kind == "value"
        )
        self.live: list[Registers] = [0] * len(automaton.places)
        self.visits = 0
        self._units: dict[int, _UnitRegisters] = {}
        self._certain = [self.named(gpm.certain) for gpm in plan.gpms]

    def named(self, names: Iterable[str]) -> Registers:
        """The registers of these names."""
        return _of(self.numbers[name] for name in names)

    def certain(self, occurrence: int) -> Registers:
        """The variables that every row of an occurrence binds."""
        return self._certain[self.plan.occurrences[occurrence].gpm]

    def pairs(self, registers: Registers) -> tuple[tuple[int, str], ...]:
        """The number and the name of each register, by name."""
        named = ((self.registers[number].name, number) for number in _numbers(registers))
        return tuple((number, name) for name, number in sorted(named))

    def unit(self, number: int) -> _UnitRegisters:
        """What the iterations of a unit do to registers."""
        if number not in self._units:
            own, scoped = self._of_units
            self._units[number] = _UnitRegisters(self, own.get(number, 0), scoped.get(number, 0))
        return self._units[number]

    @cached_property
    def _of_units(self) -> tuple[dict[int | None, Registers], dict[int | None, Registers]]:
        """The registers that the iterations of each unit update, and those that they reset."""
        own: dict[int | None, Registers] = {}
        scoped: dict[int | None, Registers] = {}
        for number, register in enumerate(self.registers):
            own[register.unit] = own.get(register.unit, 0) | 1 << number
            scoped[register.scope] = scoped.get(register.scope, 0) | 1 << number
        return own, scoped

    def kept(self, registers: Registers, edge: Edge) -> Registers:
        """The registers without those of the iterations that an edge begins."""
        for action in edge.actions:
            registers &= ~self.unit(action.unit).own
        return registers

    # -------------------------------------------------------------- fixpoints

    def solve(self) -> None:
        """Fill in `live`."""
        readers = self._readers

        def visit(number: int) -> Iterable[int]:
            found = self._live_at(self.automaton.places[number])
            if found == self.live[number]:
                return ()
            self.live[number] = found
            return readers[number]

        self._until_stable(visit, backward=True)

    def changed_on_some_way(self) -> list[Registers]:
        """For each place the registers that some partial match waiting there may have set.

        All others have their initial value in every partial match, so they distinguish none.
        """
        found: list[Registers] = [0] * len(self.automaton.places)

        def follow(number: int, edge: Edge) -> Iterator[int]:
            here = found[number] | _marks(edge.marks, self)
            for action in edge.actions:
                here = self.unit(action.unit).entered(here, action)
            here |= self._set_by[edge.atom]
            for target in self._targets[edge.atom]:
                if here & ~found[target]:
                    found[target] |= here
                    yield target

        self._forward(follow)
        return found

    def bound_on_every_way(self) -> list[Registers]:
        """For each place the value registers that every partial match waiting there has bound."""
        automaton = self.automaton
        fragment_starts = {start for guard in automaton.guards for start in guard.starts}
        sure = [
            0 if place.start or number in fragment_starts else self.values
            for number, place in enumerate(automaton.places)
        ]

        def follow(number: int, edge: Edge) -> Iterator[int]:
            kept = self.kept(sure[number], edge)
            for occurrence in _surely_met(automaton.atoms[edge.atom].operands):
                kept |= self.certain(occurrence)
            for target in self._targets[edge.atom]:
                if sure[target] & ~kept:
                    sure[target] &= kept
                    yield target

        self._forward(follow)
        return sure

    def _forward(self, follow: Callable[[int, Edge], Iterable[int]]) -> None:
        """Follow the edges of all places, and again those of each place that `follow` yields."""

        def visit(number: int) -> Iterator[int]:
            for edge in self.automaton.places[number].edges:
                yield from follow(number, edge)

        self._until_stable(visit, backward=False)

    def _until_stable(self, visit: Callable[[int], Iterable[int]], backward: bool) -> None:
        """Visit all places, then again those that a visit yields, until none is left.

        Places are numbered roughly in the order of the text, so each round goes one way through
        them; the number of rounds grows with the nesting of iterations and guards only.
        """
        sign = -1 if backward else 1
        queued = set(range(len(self.automaton.places)))
        heap = sorted((0, sign * number) for number in queued)
        while heap:
            turn, key = heappop(heap)
            queued.discard(sign * key)
            self.visits += 1
            for other in visit(sign * key):
                if other not in queued:
                    queued.add(other)
                    heappush(heap, (turn + (sign * other <= key), sign * other))

    # -------------------------------------------------------------- parts of the automaton

    @cached_property
    def _targets(self) -> list[list[int]]:
        """The places that each atom links to."""
        return [[n for n in _targets(atom.links) if n >= 0] for atom in self.automaton.atoms]

    @cached_property
    def _readers(self) -> list[list[int]]:
        """For each place the places whose live registers depend on its own."""
        automaton = self.automaton
        found: list[list[int]] = [[] for _ in automaton.places]
        over: list[list[int]] = [[] for _ in automaton.atoms]
        for number, place in enumerate(automaton.places):
            for guard in place.guards:
                for start in automaton.guards[guard].starts:
                    found[start].append(number)
            for edge in place.edges:
                over[edge.atom].append(number)
        for atom, places in zip(automaton.atoms, over, strict=True):
            guarding = (automaton.guards[g].starts for link in atom.links for g in link.guards)
            followed = {n for n in _targets(atom.links) if n >= 0}.union(*guarding)
            for target in followed:
                found[target] += places
        return found

    @cached_property
    def _read_by(self) -> list[Registers]:
        """The registers that each atom compares with, or reads in conditions."""
        return [
            _union(self._read_by_occurrence[number] for number in atom.occurrences)
            for atom in self.automaton.atoms
        ]

    @cached_property
    def _read_by_occurrence(self) -> list[Registers]:
        found = []
        for occurrence in self.plan.occurrences:
            names = {*self.plan.gpms[occurrence.gpm].variables}
            names.update(assignment.variable for assignment in occurrence.assignments)
            names.update(*(condition.reads for condition in occurrence.residual))
            names.update(*(assignment.value.reads for assignment in occurrence.assignments))
            found.append(self.named(names))
        return found

    @cached_property
    def _set_by(self) -> list[Registers]:
        """The registers that a step over each atom may set."""
        following: dict[str, Registers] = {}
        for number, register in enumerate(self.registers):
            if register.kind != "previous":
                own = following.get(register.variable, 0)
                following[register.variable] = own | 1 << number
        found = []
        for atom in self.automaton.atoms:
            names: set[str] = set()
            for occurrence in (self.plan.occurrences[number] for number in atom.occurrences):
                names.update(assignment.variable for assignment in occurrence.assignments)
                names.update(self.plan.gpms[occurrence.gpm].variables, occurrence.counts)
            own = self.named(name for name in names if name in self.numbers)
            found.append(own | _union(following.get(name, 0) for name in names))
        return found

    def guard_reads(self, guard: Guard) -> Registers:
        return _union(self.live[start] for start in guard.starts)

    def _read_by_guards(self, guards: Iterable[int]) -> Registers:
        return _union(self.guard_reads(self.automaton.guards[guard]) for guard in guards)

    def _live_at(self, place: Place) -> Registers:
        # The partition of a partial match decides contiguity and emission in every place.
        partition = self.named(self.plan.partition)
        edges = _union(self._live_before(edge) for edge in place.edges)
        return partition | self._read_by_guards(place.guards) | edges

    def _live_before(self, edge: Edge) -> Registers:
        after = self._read_by[edge.atom]
        for link in self.automaton.atoms[edge.atom].links:
            after |= self.named(iteration_register(bound.unit) for bound in link.bounds)
            after |= self._read_by_guards(link.guards)
            if link.target >= 0:
                after |= self.live[link.target]
        after |= _marks((number for number, _ in self.automaton.limits(edge)), self)
        return self._before_actions(after & ~_marks(edge.marks, self), edge)

    def _before_actions(self, after: Registers, edge: Edge) -> Registers:
        """The registers to read before an edge begins iterations, for those read after it."""
        before = after
        for action in edge.actions:
            unit = self.unit(action.unit)
            before &= ~(unit.reset_again if action.again else unit.reset_begun)
        for action in edge.actions:
            if action.again:
                for number in _numbers(after & self.unit(action.unit).previous):
                    before |= 1 << self.numbers[self.registers[number].variable]
        return before


class _UnitRegisters:
    """What the iterations of one unit do to registers."""

    def __init__(self, flow: Flow, own: Registers, scoped: Registers):
        self._numbers = flow.numbers
        self._registers = flow.registers
        self.own = own
        self.scoped = scoped
        self.previous = self._of_kind("previous")
        self.values = self._of_kind("value", "last")
        self.started = self._of_kind("first", "iterations")
        iterations = self._of_kind("iterations")
        restarted = _of(n for n in _numbers(iterations) if self._registers[n].again is not None)
        always = self.scoped | self.values | self.previous
        self.reset_begun = always | iterations
        self.reset_again = always | restarted

    def _of_kind(self, *kinds: str) -> Registers:
        return _of(n for n in _numbers(self.own) if self._registers[n].kind in kinds)

    def entered(self, known: Registers, action: Action) -> Registers:
        """The registers that may be set once an iteration has begun."""
        after = known & ~(self.scoped | self.values | self.previous) | self.started
        if action.again:
            for number in _numbers(self.previous):
                if known >> self._numbers[self._registers[number].variable] & 1:
                    after |= 1 << number
        return after


def _of(numbers: Iterable[int]) -> Registers:
    return reduce(lambda found, number: found | 1 << number, numbers, 0)


def _numbers(registers: Registers) -> Iterator[int]:
    """The numbers of some registers, ascending."""
    while registers:
        lowest = registers & -registers
        yield lowest.bit_length() - 1
        registers ^= lowest


def _union(sets: Iterable[Registers]) -> Registers:
    return reduce(or_, sets, 0)


def _targets(links: Iterable[Link]) -> Iterator[int]:
    return (link.target for link in links)


def _marks(bounded: Iterable[int], flow: Flow) -> Registers:
    """The registers from which bounds count."""
    return flow.named(name for number in bounded for name in mark_registers(number))


def _surely_met(operands: tuple[tuple[tuple[int, ...], ...], ...]) -> list[int]:
    return [o for operand in operands if len(operand) == 1 for o in operand[0]]


def _indexed(place: Place, flow: Flow, sure: Registers) -> Place:
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
        kept: Registers = 0
        if atom.kind == "single" and not place.start:
            kept = flow.kept(sure, edge)
        first = atom.occurrences[0]
        keys.append(flow.pairs(kept & flow.certain(first)) if enabled("equality_index") else ())
        compared = (
            (flow.numbers[other], own) for own, other in flow.plan.occurrences[first].equalities
        )
        equal.append(tuple((number, own) for number, own in compared if kept >> number & 1))
    return replace(
        place,
        keys=tuple(keys),
        joint=tuple(joint),
        equal=tuple(equal),
        orders=tuple(None if place.start else _order(edge, flow) for edge in place.edges),
        eager_guards=() if place.start else tuple(_eager_guards(place, flow, sure)),
    )


def _joint(edge: Edge, flow: Flow, sure: Registers) -> Iterator[tuple[tuple[int, str], ...]]:
    """For each occurrence of a conjunction, the keys that its row shares with waiting groups."""
    atom = flow.automaton.atoms[edge.atom]
    if atom.kind == "single":
        return
    kept = flow.kept(sure, edge)
    taken = Counter(flow.plan.occurrences[number].gpm for number in atom.occurrences)
    for number in atom.occurrences:
        alone = taken[flow.plan.occurrences[number].gpm] == 1
        served = alone and enabled("equality_index")
        yield flow.pairs(kept & flow.certain(number)) if served else ()


def _order(edge: Edge, flow: Flow) -> tuple[int, str, Relation] | None:
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
        register = flow.registers[flow.numbers[other]]
        if register.kind == "previous" and register.unit in again:
            # PREV takes the value of the iteration that ends here.
            return flow.numbers[register.variable], own, relation
        if register.kind == "value" and not {register.unit, register.scope} & entered:
            return flow.numbers[other], own, relation
    return None


def _eager_guards(place: Place, flow: Flow, sure: Registers) -> Iterator[EagerGuard]:
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
            yield EagerGuard(number, flow.pairs(reads & sure & flow.certain(guard.occurrence)))


def _bound_after(automaton: Automaton, flow: Flow, sure: list[Registers]) -> list[Registers]:
    """For each atom the value registers that are bound in every place with an edge over it."""
    found: list[Registers | None] = [None] * len(automaton.atoms)
    for number, place in enumerate(automaton.places):
        for edge in place.edges:
            kept = flow.kept(sure[number], edge)
            for occurrence in _surely_met(automaton.atoms[edge.atom].operands):
                kept |= flow.certain(occurrence)
            known = found[edge.atom]
            found[edge.atom] = kept if known is None else known & kept
    return [0 if known is None else known for known in found]


def _closing(link: Link, flow: Flow, known: Registers) -> Link:
    """A link with its guards that are single GPMs; `known` registers are bound in all matches."""
    if not link.guards:
        return link
    found = []
    for number in link.guards:
        guard = flow.automaton.guards[number]
        if guard.occurrence is not None and not guard.relative and enabled("first_chance_negation"):
            shared = flow.guard_reads(guard) & known & flow.certain(guard.occurrence)
            found.append(EagerGuard(number, flow.pairs(shared)))
    return replace(link, eager_guards=tuple(found))


def _touches(edge: Edge, guard: Guard, reads: Registers, flow: Flow, sure: Registers) -> bool:
    """Whether taking an edge changes a register that a guard reads."""
    entered = {action.unit for action in edge.actions}
    own = entered & set(guard.units)
    bound: set[str] = set()
    for number in flow.automaton.atoms[edge.atom].occurrences:
        occurrence = flow.plan.occurrences[number]
        bound.update(flow.plan.gpms[occurrence.gpm].variables, occurrence.counts)
        bound.update(assignment.variable for assignment in occurrence.assignments)
    for read in _numbers(reads):
        register = flow.registers[read]
        around = {register.unit, register.scope}
        if around & own:
            continue  # the guard sees its own iteration, not the one entered here
        if around & entered or (register.name in bound and not sure >> read & 1):
            return True
        if register.variable in bound and register.kind not in ("value", "previous"):
            return True
    return False
