"""The position of a query's automaton inside that of a template that branches.

The steps of other queries in the template might give a variable another role. This module therefore
compares the two automata part by part, from the start. The query must have the places and edges of
its branch and no others, with the same guards, conditions and registers. Since each operator waits
in a separate place, every partial match in the common places or in the branch is a partial match of
the query, and the rest of the template does not affect it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace

from spaseq.engine.compiled import CompiledQuery
from spaseq.nfa.automaton import ACCEPT, DONE, Edge, Link
from spaseq.nfa.native import conjunction_tables, lazy_join_tables
from spaseq.nfa.native.conjunction_tables import DATED, SearchTables
from spaseq.nfa.wiring import reads_times, time_back, windows_back
from spaseq.parser import ast
from spaseq.plan.logical import QueryPlan
from spaseq.plan.references import IS_FIRST
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class Embedding:
    """The positions of a query's parts in the automaton that evaluates it."""

    places: Sequence[int]
    """Per place of the query."""
    occurrences: Sequence[int]
    gpms: Sequence[int]


def whole(query: CompiledQuery) -> Embedding:
    """The parts of a query that has an automaton with the same places and steps."""
    plan, automaton = query.plan, query.automaton
    return Embedding(
        range(len(automaton.places)), range(len(plan.occurrences)), range(len(plan.gpms))
    )


def ends(template: CompiledQuery, branches: Sequence[Sequence[int]]) -> list[int | None]:
    """Per edge of a template: the branch that it belongs to; None in the common steps."""
    counts = Counter(occurrence for branch in branches for occurrence in branch)
    own = {o: n for n, branch in enumerate(branches) for o in branch if counts[o] == 1}
    automaton = template.automaton
    taken = [automaton.atoms[edge.atom] for place in automaton.places for edge in place.edges]
    return [own.get(atom.occurrences[0]) for atom in taken]


def traits(query: CompiledQuery) -> Hashable:
    """What must be equal in queries that share their first steps, apart from these steps.

    It decides how an automaton is run as a whole, and the roles of variables in iterations.
    """
    plan, automaton = query.plan, query.automaton
    return (
        windows_back(automaton),
        time_back(plan, automaton),
        reads_times(automaton),
        any(place.operator == "," for place in automaton.places),
        frozenset(r for r in plan.registers if r.kind != "value" or r.unit is not None),
    )


def waiting(query: CompiledQuery) -> list[Hashable]:
    """Per step of a query's sequence: the plan of the step, and what is awaited before it."""
    plan, automaton = query.plan, query.automaton
    found: list[Hashable] = []
    first = 0
    for step in plan.sequence.steps:
        end = first + sum(isinstance(node, ast.GpmRef) for node in ast.walk(step))
        fronts = set()
        for place in automaton.places:
            taken = (o for edge in place.edges for o in automaton.atoms[edge.atom].occurrences)
            if any(first <= occurrence < end for occurrence in taken):
                names = frozenset(plan.registers[number].name for number in place.live)
                fronts.add((place.operator, names))
        parts = tuple(
            (replace(occurrence, index=0, gpm=0), plan.gpms[occurrence.gpm])
            for occurrence in plan.occurrences[first:end]
        )
        found.append((frozenset(fronts), parts))
        first = end
    return found


def names_unbound(plan: QueryPlan) -> bool:
    """Whether a condition names a variable that no step binds; another query might bind it."""
    known = {register.name for register in plan.registers}
    conditions = [each for gpm in plan.gpms for each in gpm.local]
    conditions += [each for occurrence in plan.occurrences for each in occurrence.conditions]
    return any(
        isinstance(node, ast.Var) and node.name not in known and not node.name.startswith(IS_FIRST)
        for condition in conditions
        for node in ast.walk(condition.expression)
    )


def repeats_searched(query: CompiledQuery) -> bool:
    """Whether a graph pattern occurs at several steps and its rows are stored for a search."""
    taken = Counter(occurrence.gpm for occurrence in query.plan.occurrences)
    repeated = [gpm for gpm, count in taken.items() if count > 1]
    return bool(repeated) and any(searching(query).kept[gpm] is not None for gpm in repeated)


def searching(query: CompiledQuery) -> SearchTables:
    """How group members are stored, and whose rows are stored; no match waits for its window."""
    return conjunction_tables.tables(query.plan, query.automaton, ())


class Branches:
    """A template that branches, to find its queries in it."""

    def __init__(self, template: CompiledQuery):
        self.template = template
        self.search = searching(template)
        self.registers = {register.name: register for register in template.plan.registers}
        self.is_lazy = lazy_join_tables.weighed(template.plan, template.automaton)
        self._traits = traits(template)
        automaton = template.automaton
        self._awaited: list[frozenset[int]] = []
        """Per place: the occurrences that it waits for."""
        self._waiting: dict[int, list[int]] = defaultdict(list)
        """Occurrence → the places that wait for it."""
        for number, place in enumerate(automaton.places):
            awaited = {o for edge in place.edges for o in automaton.atoms[edge.atom].occurrences}
            self._awaited.append(frozenset(awaited))
            for occurrence in awaited:
                self._waiting[occurrence].append(number)
        self._targets: list[dict[int, list[int]]] = []
        """Per atom: the target of its links → their positions."""
        for atom in automaton.atoms:
            positions: dict[int, list[int]] = defaultdict(list)
            for position, link in enumerate(atom.links):
                positions[link.target].append(position)
            self._targets.append(positions)

    def embedding(self, query: CompiledQuery, branch: Sequence[int]) -> Embedding | None:
        """The position of a query in the template; None if its branch differs from the query.

        Args:
            query: The query.
            branch: The occurrences of its steps among those of the template.
        """
        plan, registers = query.plan, self.registers
        if self.is_lazy:
            return None
        if any(registers.get(register.name) != register for register in plan.registers):
            return None
        if plan.units != self.template.plan.units or traits(query) != self._traits:
            return None
        gpms = self._gpms(plan, branch)
        return None if gpms is None else _Comparison(self, query, branch, gpms).embedding()

    def places(self, branch: Sequence[int]) -> frozenset[int]:
        """The places that wait for steps of a query only, by the occurrences of its steps."""
        own = frozenset(branch)
        waiting = {place for occurrence in branch for place in self._waiting[occurrence]}
        return frozenset(place for place in waiting if self._awaited[place] <= own)

    def links(self, atom: int, places: frozenset[int]) -> list[Link]:
        """The links of an atom that lead to some places, or out of the automaton."""
        targets = self._targets[atom]
        if len(targets) > len(places):
            leading = [n for p in (*places, ACCEPT, DONE) for n in targets.get(p, ())]
        else:
            leading = [n for p, some in targets.items() if p < 0 or p in places for n in some]
        links = self.template.automaton.atoms[atom].links
        return [links[position] for position in sorted(leading)]

    def _gpms(self, plan: QueryPlan, branch: Sequence[int]) -> list[int] | None:
        """Per GPM of the query: one of the template that differs in its name only."""
        whole, found = self.template.plan, dict[int, int]()
        for occurrence, number in zip(plan.occurrences, branch, strict=True):
            other = whole.occurrences[number]
            if replace(other, index=occurrence.index, gpm=occurrence.gpm) != occurrence:
                return None
            gpm = plan.gpms[occurrence.gpm]
            if replace(whole.gpms[other.gpm], name=gpm.name, positive=gpm.positive) != gpm:
                return None
            found.setdefault(occurrence.gpm, other.gpm)
        return [found[number] for number in range(len(plan.gpms))]


class _Comparison:
    """Compares a query with its branch, part by part from the start on."""

    def __init__(
        self, branches: Branches, query: CompiledQuery, branch: Sequence[int], gpms: Sequence[int]
    ):
        self._template, self._query, self._branches = branches.template, query, branches
        self._branch, self._own = branch, branches.places(branch)
        self._gpms = gpms
        self._searches = branches.search, searching(query)
        self._places: dict[int, int] = {}
        """Place of the query → of the template."""
        self._guards: dict[int, int] = {}

    def embedding(self) -> Embedding | None:
        whole, part = self._template.automaton, self._query.automaton
        kept, own_kept = (search.kept for search in self._searches)
        if any(
            (kept[number] is None) != (own_kept[gpm] is None)
            for gpm, number in enumerate(self._gpms)
        ):
            return None
        if not self._are_paired(part.starts, whole.starts):
            return None
        if len(self._places) != len(part.places):
            return None
        places = [self._places[number] for number in range(len(part.places))]
        return Embedding(places, self._branch, self._gpms)

    def _are_paired(self, places: Sequence[int], others: Sequence[int]) -> bool:
        """Whether places of the query equal those of the template, with all that follows them."""
        return len(places) == len(others) and all(map(self._is_place, places, others))

    def _is_place(self, number: int, other: int) -> bool:
        known = self._places.get(number)
        if known is not None:
            return known == other
        self._places[number] = other
        part, whole = self._query.automaton, self._template.automaton
        place, branch = part.places[number], whole.places[other]
        search, own_search = self._searches
        return (
            (place.operator, place.start) == (branch.operator, branch.start)
            and self._names(place.live, self._query) == self._names(branch.live, self._template)
            and (search.manners[other] ^ own_search.manners[number]) & DATED == 0
            and self._are_guards(place.guards, branch.guards)
            and self._are_guards(
                [each.guard for each in place.eager_guards],
                [each.guard for each in branch.eager_guards],
            )
            and len(place.edges) == len(branch.edges)
            and all(map(self._is_edge, place.edges, branch.edges))
        )

    @staticmethod
    def _names(live: Sequence[int], query: CompiledQuery) -> frozenset[str]:
        return frozenset(query.plan.registers[number].name for number in live)

    def _is_edge(self, edge: Edge, other: Edge) -> bool:
        part, whole = self._query.automaton, self._template.automaton
        atom, taken = part.atoms[edge.atom], whole.atoms[other.atom]
        operands = tuple(
            tuple(tuple(self._branch[o] for o in some) for some in operand)
            for operand in atom.operands
        )
        links = self._branches.links(other.atom, self._own)
        return (
            replace(edge, atom=0) == replace(other, atom=0)
            and (atom.kind, operands, atom.size, atom.limits)
            == (taken.kind, taken.operands, taken.size, taken.limits)
            and len(atom.links) == len(links)
            and all(map(self._is_link, atom.links, links))
        )

    def _is_link(self, link: Link, other: Link) -> bool:
        if link.bounds != other.bounds or not self._are_guards(link.guards, other.guards):
            return False
        if link.target < 0 or other.target < 0:
            return link.target == other.target
        return self._is_place(link.target, other.target)

    def _are_guards(self, guards: Sequence[int], others: Sequence[int]) -> bool:
        return len(guards) == len(others) and all(map(self._is_guard, guards, others))

    def _is_guard(self, number: int, other: int) -> bool:
        known = self._guards.get(number)
        if known is not None:
            return known == other
        self._guards[number] = other
        guard = self._query.automaton.guards[number]
        taken = self._template.automaton.guards[other]
        occurrence = None if guard.occurrence is None else self._branch[guard.occurrence]
        return (
            (guard.units, occurrence, guard.negated, guard.relative, guard.lookback)
            == (taken.units, taken.occurrence, taken.negated, taken.relative, taken.lookback)
            and self._names(guard.reads, self._query) == self._names(taken.reads, self._template)
            and self._are_paired(guard.starts, taken.starts)
        )
