"""An automaton's guards and conjunctions → tables for the compiled core.

The core searches the rows of the window for the events that a guard forbids and for those that an
edge over several graph patterns consumes (`spaseq/nfa/native/automaton/conjunction.pxi`). Guards
that are decided on sight are not in these tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from spaseq.nfa.automaton import ACCEPT, Atom, Automaton, Edge, Link, Place
from spaseq.nfa.wiring import fragment_places
from spaseq.parser import ast
from spaseq.plan.logical import QueryPlan, Register
from spaseq.rules import enabled

Range = tuple[int, int]

DATED, GUARDED, RELATIVE, CONJOINED, SEARCHES_BACK, RIVALS, APART = 1, 2, 4, 8, 16, 32, 64
"""Flags of a place, as `PlaceFlags` in _tecs.pxd."""


@dataclass(slots=True)
class SearchTables:
    """Rows of numbers; ranges are (first, end) of the named list."""

    gpms: list[int] = field(default_factory=list)
    """By occurrence."""
    kept: list[list[int] | None] = field(default_factory=list)
    """By GPM the columns that index its buffered rows; None: its rows are not buffered."""
    columns: list[Range] = field(default_factory=list)
    """By GPM the columns that its buffered rows store, of `column_numbers`; all columns for
    witnesses."""
    column_numbers: list[int] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    """By GPM whether its buffered rows may be witnesses."""
    searches: list[Range] = field(default_factory=list)
    """By GPM, of `searchers`."""
    searchers: list[int] = field(default_factory=list)
    """Places that search the rows of a GPM, including those where matches wait for the close."""
    guards: list[tuple[bool, int, int, int]] = field(default_factory=list)
    """(whether negated, places where the unit begins as a range of `starts`, microseconds that the
    search reaches back before a match or -1)."""
    starts: list[int] = field(default_factory=list)
    checks: list[tuple[int, int, int]] = field(default_factory=list)
    """(guard, registers that it reads as they were before the edge, as a range of `restored`)."""
    restored: list[int] = field(default_factory=list)
    edge_checks: list[Range] = field(default_factory=list)
    link_checks: list[Range] = field(default_factory=list)
    place_checks: list[Range] = field(default_factory=list)
    """Of the places where matches wait for their windows to close."""
    place_edges: list[Range] = field(default_factory=list)
    manners: list[int] = field(default_factory=list)
    edge_choices: list[Range] = field(default_factory=list)
    any_order: list[bool] = field(default_factory=list)
    edge_operands: list[Range] = field(default_factory=list)
    operand_choices: list[Range] = field(default_factory=list)
    choices: list[Range] = field(default_factory=list)
    """Of `parts`: the patterns of a step, or of an operand of a step."""
    parts: list[tuple[int, int, int]] = field(default_factory=list)
    """(occurrence, operand, its position in the step)."""
    early: list[Range] = field(default_factory=list)
    """By occurrence, of `early_tests`."""
    early_tests: list[tuple[int, int, int]] = field(default_factory=list)
    """(number among all residual filters, registers it reads as a range of `early_read`)."""
    early_read: list[int] = field(default_factory=list)


def later_guards(place: Place) -> tuple[int, ...]:
    """The guards of a place that are decided when the next step arrives."""
    seen = {eager.guard for eager in place.eager_guards}
    return tuple(guard for guard in place.guards if guard not in seen)


def guards_at_the_end(link: Link) -> tuple[int, ...]:
    """The guards of a match that are decided when its window closes."""
    seen = {eager.guard for eager in link.eager_guards}
    return tuple(guard for guard in link.guards if guard not in seen)


class Shared:
    """The variables that several steps of a plan bind."""

    def __init__(self, plan: QueryPlan):
        self._plan = plan
        self._steps = Counter(occurrence.gpm for occurrence in plan.occurrences)
        self._gpms = Counter(name for gpm in plan.gpms for name in gpm.variables)

    def columns(self, gpm: int) -> Iterator[int]:
        """The columns that index buffered rows: bound in each, and bound by other steps too."""
        for column, name in enumerate(self._plan.gpms[gpm].variables):
            several = self._steps[gpm] > 1 or self._gpms[name] > 1
            if name in self._plan.gpms[gpm].certain and several:
                yield column


def tables(plan: QueryPlan, automaton: Automaton, closing: Sequence[Link]) -> SearchTables:
    """Write the tables; `closing` are the links to the places where matches wait for the close."""
    writing = _Writing(plan, automaton, closing)
    writing.write()
    return writing.tables


class _Writing:
    def __init__(self, plan: QueryPlan, automaton: Automaton, closing: Sequence[Link]):
        self._plan = plan
        self._automaton = automaton
        self._closing = closing
        self._inside = fragment_places(automaton)
        self._searches: list[dict[int, None]] = [{} for _ in plan.gpms]
        self._whole: set[int] = set()
        self._shared = Shared(plan)
        self.tables = SearchTables()

    def write(self) -> None:
        out = self.tables
        out.gpms = [occurrence.gpm for occurrence in self._plan.occurrences]
        self._early()
        for guard in self._automaton.guards:
            back = -1 if guard.lookback is None else guard.lookback
            out.guards.append((guard.negated, *self._listed(out.starts, guard.starts), back))
        for number, place in enumerate(self._automaton.places):
            self._place(number, place)
        for number, link in enumerate(self._closing, len(self._automaton.places)):
            guards = guards_at_the_end(link)
            out.place_edges.append((0, 0))
            out.manners.append(0)
            out.place_checks.append(self._checks(guards))
            self._record_searches(number, guards)
        for gpm, searching in enumerate(self._searches):
            out.searches.append(self._listed(out.searchers, list(searching)))
            out.kept.append(list(self._shared.columns(gpm)) if searching else None)
            out.whole.append(gpm in self._whole)
            needed = self._needed(gpm) if searching else ()
            out.columns.append(self._listed(out.column_numbers, list(needed)))

    def _place(self, number: int, place: Place) -> None:
        out = self.tables
        first = len(out.edge_checks)
        inside = number in self._inside
        guards = place.guards if inside else later_guards(place)
        for edge in place.edges:
            out.edge_checks.append(self._checks(guards, edge))
            self._edge(edge)
            for link in self._automaton.atoms[edge.atom].links:
                out.link_checks.append(self._checks(() if link.target == ACCEPT else link.guards))
        out.place_edges.append((first, len(out.edge_checks)))
        out.place_checks.append((0, 0))
        out.manners.append(0)
        if inside:
            return
        self._record_searches(number, guards)
        kinds = {self._automaton.atoms[edge.atom].kind for edge in place.edges}
        conjoined = not kinds.isdisjoint(("together", "any-order"))
        manner = CONJOINED * conjoined
        if guards and place.start:
            manner |= GUARDED
        bounded = any(edge.within is not None for edge in place.edges)
        timed = "deadline" in kinds
        if (guards or conjoined or bounded or timed) and not place.start:
            manner |= DATED
        if any(self._automaton.guards[guard].relative for guard in guards):
            manner |= RELATIVE
        if conjoined and place.operator == ";":
            manner |= SEARCHES_BACK if "any-order" in kinds else RIVALS * ("single" in kinds)
        apart = (
            place.operator == ";" and len({edge.within for edge in place.edges}) > 1
        ) and not place.start
        out.manners[-1] = manner | APART * apart
        for edge in place.edges if conjoined or apart else ():
            for occurrence in self._automaton.atoms[edge.atom].occurrences:
                gpm = self._plan.occurrences[occurrence].gpm
                self._searches[gpm][number] = None
                if conjoined:
                    self._whole.add(gpm)

    def _edge(self, edge: Edge) -> None:
        out = self.tables
        atom = self._automaton.atoms[edge.atom]
        where = {occurrence: part for part, occurrence in enumerate(atom.occurrences)}
        first = len(out.choices)
        for choice in product(*atom.operands):
            parts = [
                (occurrence, operand, where[occurrence])
                for operand, alternative in enumerate(choice)
                for occurrence in alternative
            ]
            out.choices.append(self._listed(out.parts, sorted(parts)))
        out.edge_choices.append((first, len(out.choices)))
        out.any_order.append(atom.kind == "any-order")
        operands: list[Range] = []
        for operand, alternatives in enumerate(atom.operands):
            first = len(out.choices)
            for alternative in alternatives:
                alone = [(occurrence, operand, where[occurrence]) for occurrence in alternative]
                out.choices.append(self._listed(out.parts, alone))
            operands.append((first, len(out.choices)))
        out.edge_operands.append(self._listed(out.operand_choices, operands))

    def _early(self) -> None:
        """Add the filters that can be evaluated before all parts are joined: they read values."""
        out, plan = self.tables, self._plan
        values = {r.name: n for n, r in enumerate(plan.registers) if r.kind == "value"}
        early = enabled("early_filters")
        number = 0
        for occurrence in plan.occurrences:
            first = len(out.early_tests)
            for condition in occurrence.residual:
                exists = any(isinstance(e, ast.Exists) for e in ast.walk(condition.expression))
                if early and not exists and condition.reads <= values.keys():
                    read = [values[name] for name in sorted(condition.reads)]
                    out.early_tests.append((number, *self._listed(out.early_read, read)))
                number += 1
            out.early.append((first, len(out.early_tests)))

    def _checks(self, guards: Sequence[int], edge: Edge | None = None) -> Range:
        """Add the guards before an edge, or those of a link."""
        first = len(self.tables.checks)
        entered = {action.unit for action in edge.actions} if edge is not None else set()
        for guard in guards:
            own = entered & set(self._automaton.guards[guard].units)
            restored = sorted({number for unit in own for number in self._of_units.get(unit, ())})
            self.tables.checks.append((guard, *self._listed(self.tables.restored, restored)))
        return first, len(self.tables.checks)

    def _record_searches(self, place: int, guards: Sequence[int]) -> None:
        """Record that a place searches all rows that its guards read."""
        todo = [start for guard in guards for start in self._automaton.guards[guard].starts]
        seen: set[int] = set()
        while todo:
            number = todo.pop()
            if number in seen:
                continue
            seen.add(number)
            inner = self._automaton.places[number]
            todo += [start for g in inner.guards for start in self._automaton.guards[g].starts]
            for edge in inner.edges:
                atom = self._automaton.atoms[edge.atom]
                for occurrence in atom.occurrences:
                    self._searches[self._plan.occurrences[occurrence].gpm][place] = None
                todo += [link.target for link in atom.links if link.target >= 0]
                todo += [
                    start
                    for link in atom.links
                    for guard in link.guards
                    for start in self._automaton.guards[guard].starts
                ]

    def _needed(self, gpm: int) -> Iterator[int]:
        """The columns of a GPM that some guard reads or that distinguish partial matches.

        The filters of a step over several events read the columns of all its GPMs.
        """
        names = self._distinguishing | self._read_beside(gpm)
        for column, name in enumerate(self._plan.gpms[gpm].variables):
            if name in names:
                yield column

    @cached_property
    def _of_units(self) -> Mapping[int, list[int]]:
        """The registers that the iterations of each unit update or reset."""
        found: dict[int, list[int]] = {}
        for number, register in enumerate(self._plan.registers):
            for unit in {register.unit, register.scope}:
                if unit is not None:
                    found.setdefault(unit, []).append(number)
        return found

    @cached_property
    def _distinguishing(self) -> frozenset[str]:
        """The variables that distinguish partial matches or that guards read."""
        live = {register for place in self._automaton.places for register in place.live}
        live.update(register for guard in self._automaton.guards for register in guard.reads)
        return frozenset(self._variable(self._plan.registers[number]) for number in live)

    @cached_property
    def _steps_of(self) -> Mapping[int, list[Atom]]:
        """The steps that each GPM is a part of."""
        found: dict[int, list[Atom]] = {}
        for atom in self._automaton.atoms:
            for gpm in {self._plan.occurrences[number].gpm for number in atom.occurrences}:
                found.setdefault(gpm, []).append(atom)
        return found

    def _read_beside(self, gpm: int) -> set[str]:
        """The variables that the conditions of the steps with a GPM read."""
        occurrences = {n for atom in self._steps_of.get(gpm, ()) for n in atom.occurrences}
        conditions = (c for n in occurrences for c in self._plan.occurrences[n].conditions)
        read = frozenset[str]().union(*(condition.reads for condition in conditions))
        return {self._variable(self._named[name]) for name in read if name in self._named}

    @cached_property
    def _named(self) -> Mapping[str, Register]:
        return {register.name: register for register in self._plan.registers}

    @staticmethod
    def _variable(register: Register) -> str:
        return register.variable or register.name

    @staticmethod
    def _listed(into: list, items: Sequence) -> Range:  # type: ignore[type-arg]
        first = len(into)
        into += items
        return first, len(into)
