"""Automata → the tables that the compiled core runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spaseq.nfa.automaton import ACCEPT, Automaton, EagerGuard, Edge, Link, Place
from spaseq.nfa.native import conjunction_tables, lazy_join_tables
from spaseq.nfa.native.range_tables import deciding_operator, joins_whole
from spaseq.nfa.native.register_tables import NativeRegisters, bound_by
from spaseq.nfa.native.straight_edges import Binding
from spaseq.nfa.native.table_types import (
    CLOSING,
    DEADLINE,
    RELATIONS,
    CoreTables,
    EdgeRow,
    Index,
    Range,
)
from spaseq.nfa.registers import RegisterFile
from spaseq.nfa.wiring import (
    behind_deadlines,
    dispatch,
    fragment_places,
    reads_times,
    time_back,
    windows_back,
)
from spaseq.plan.logical import QueryPlan
from spaseq.plan.references import IS_FIRST, iteration_register, mark_registers

_NO_OCCURRENCE = _NO_LIMIT = 2**32 - 1


def joins_strictly(plan: QueryPlan, automaton: Automaton) -> bool:
    """Whether the core runs every operator as `,`, so that no match is dropped afterwards.

    This implements `EMIT STRICT`. For single steps, a contiguous match is one in which each step
    follows at the next instant (of its partition), which is also the first acceptable instant. If
    the automaton looks back, matches are dropped at the end instead.
    """
    return plan.emit == "STRICT" and not looks_back(automaton)


def operator_of(plan: QueryPlan, automaton: Automaton, place: Place) -> str | None:
    """The operator that the core uses for a place."""
    if place.operator == "for":
        return DEADLINE
    return "," if joins_strictly(plan, automaton) else place.operator


def looks_back(automaton: Automaton) -> bool:
    """Whether there are conjunctions, or guards that are not decided on sight."""
    if any(atom.kind != "single" for atom in automaton.atoms):
        return True  # under EMIT STRICT, an absence does not permit events in between
    inside = fragment_places(automaton)
    outside = [place for n, place in enumerate(automaton.places) if n not in inside]
    links = [link for p in outside for e in p.edges for link in automaton.atoms[e.atom].links]
    return any(len(link.eager_guards) < len(link.guards) for link in links) or any(
        len(place.eager_guards) < len(place.guards) for place in outside
    )


def closing_registers(plan: QueryPlan, automaton: Automaton, link: Link) -> tuple[int, ...]:
    """The registers of a match that waits for its window to close."""
    read = {number for guard in link.guards for number in automaton.guards[guard].reads}
    if _contiguous_inside(automaton):
        read.update(n for n, r in enumerate(plan.registers) if r.name in plan.partition)
    return tuple(sorted(read))


def _contiguous_inside(automaton: Automaton) -> bool:
    """Whether a `,` occurs inside a guard."""
    inside = fragment_places(automaton)
    return any(automaton.places[number].operator == "," for number in inside)


def tables(plan: QueryPlan, automaton: Automaton, registers: RegisterFile) -> CoreTables:
    """The tables of an automaton that the core can run."""
    writing = _Writing(plan, automaton, registers)
    writing.write()
    return writing.tables


class _Writing:
    def __init__(self, plan: QueryPlan, automaton: Automaton, registers: RegisterFile):
        self._plan = plan
        self._automaton = automaton
        self._registers = registers
        self._native = NativeRegisters(plan, automaton, registers)
        self._edges: dict[tuple[int, int], int] = {}
        self._closing: list[tuple[str | None, int, int, list[Index], int]] = []
        self._waiting: dict[tuple[int, ...], int] = {}
        self._eager_guards: dict[int, list[tuple[int, int, int, int, int, bool]]] = {}
        self._joint: dict[tuple[int, int, int], tuple[int, int, int]] = {}
        """By place, position of the edge, and GPM: an index, and its columns of a row."""
        window = plan.window
        cells = len(registers.blank())
        self.tables = CoreTables(
            window.size,
            tumbling=window.tumbles,
            counted=window.counts_events,
            endless=window.is_endless,
            windows=windows_back(automaton),
            lookback=time_back(plan, automaton),
            clocked=reads_times(automaton) and not window.is_of_time,
            cells=cells,
            kept=self._native.kept,
        )
        inside = fragment_places(automaton)
        self.tables.adjacent = plan.emit == "STRICT" or any(
            place.operator == "," for place in automaton.places
        )
        self.tables.width = len(plan.partition)
        self.tables.partition_registers = [registers.number[name] for name in plan.partition]
        self.tables.recorded = bool(plan.partition) and (
            (plan.emit == "STRICT" and not joins_strictly(plan, automaton))
            or _contiguous_inside(automaton)
        )
        contiguous = bool(plan.partition) and any(
            operator_of(plan, automaton, place) == ","
            for number, place in enumerate(automaton.places)
            if number not in inside and not place.start
        )
        self.tables.recorded |= contiguous and looks_back(automaton)
        self.tables.tracked = contiguous or self.tables.recorded
        self.tables.apart = bool(plan.partition) and plan.skip_past_last

    def write(self) -> None:
        for occurrence in self._plan.occurrences:
            first = len(self.tables.bindings)
            names = bound_by(self._plan, occurrence)
            self.tables.bindings += [self._binding(c, name) for c, name in enumerate(names)]
            end = len(self.tables.bindings)
            counts = self._listed(self._native.counts(occurrence))
            keeps = self._native.keeps_rows(occurrence)
            self.tables.occurrences.append(
                (
                    first,
                    end - len(occurrence.assignments),
                    end,
                    *counts,
                    keeps,
                    bool(occurrence.residual),
                )
            )
        for number, gpm in enumerate(self._plan.gpms):
            self.tables.required_first.append(len(self.tables.required))
            self.tables.compared_first.append(len(self.tables.compared))
            if gpm.positive:
                self.tables.required += map(gpm.variables.index, self._plan.partition)
            self.tables.compared += self._native.compared(number)
            known = set(self._plan.partition) <= set(gpm.variables)
            keys = map(gpm.variables.index, self._plan.partition) if known else ()
            self.tables.partition.append(list(keys))
        self.tables.required_first.append(len(self.tables.required))
        self.tables.compared_first.append(len(self.tables.compared))
        for number, place in enumerate(self._automaton.places):
            live = self._listed(place.live)
            indexes: list[Index] = []
            first = len(self.tables.edges)
            for position, edge in enumerate(place.edges):
                self._edges[number, position] = len(self.tables.edges)
                taken = self._automaton.atoms[edge.atom].occurrences
                self.tables.edge_gpms.append([self._plan.occurrences[o].gpm for o in taken])
                self.tables.edges.append(self._edge(number, position, edge, indexes))
                self._add_joint(number, position, indexes)
            self._add_eager_guards(number, place.live, place.eager_guards, indexes)
            operator = None if place.start else operator_of(self._plan, self._automaton, place)
            self.tables.places.append((operator, *live, indexes, first))
            self._add_floor(number, place)
        self.tables.places += self._closing
        self._straighten()
        self._write_ways()
        self._write_eager_guards()
        self.tables.chain = lazy_join_tables.tables(self._plan, self._automaton)
        self.tables.search = conjunction_tables.tables(
            self._plan, self._automaton, self.tables.closing
        )
        self._write_deadlines()
        for name, cell in self._registers.views.items():
            if name.startswith(IS_FIRST):
                unit = int(name.removeprefix(IS_FIRST))
                register = self._registers.number[iteration_register(unit)]
                self.tables.firsts.append((register, cell))

    def _straighten(self) -> None:
        tables = self.tables
        live = [tables.numbers[first:end] for _, first, end, _, _ in tables.places]
        for (number, _), edge in self._edges.items():
            row = tables.edges[edge]
            plain = row.occurrence != _NO_OCCURRENCE and (row.marks, row.limits) == (
                row.marks_end,
                row.limits_end,
            )
            tables.straight.add(
                live[number],
                tables.effects[row.effects : row.effects_end],
                self._bindings(row.occurrence) if plain else None,
                [
                    None if bounds > bound or target < -1 else () if target < 0 else live[target]
                    for target, bound, bounds in tables.links[row.links : row.links_end]
                ],
            )

    def _bindings(self, occurrence: int) -> list[Binding] | None:
        """The bindings of an occurrence; None if its rows do more than bind columns."""
        first, end, assigned, count, counts, keeps, _ = self.tables.occurrences[occurrence]
        if assigned > end or counts > count or keeps:
            return None
        return [
            (column, register, self.tables.followers[since:until])
            for column, register, since, until in self.tables.bindings[first:end]
        ]

    def _write_ways(self) -> None:
        ways = dispatch(self._plan, self._automaton, fragment_places(self._automaton))
        for gpm in range(len(self._plan.gpms)):
            self.tables.way_first.append(len(self.tables.ways))
            self.tables.ways += [
                (
                    place,
                    self._edges[place, position],
                    *self._joint.get((place, position, gpm), (0, 0, 0)),
                )
                for place, position, _ in ways[gpm]
            ]
        self.tables.way_first.append(len(self.tables.ways))

    def _add_floor(self, number: int, place: Place) -> None:
        """Add the floor of the groups of a place, if they have one."""
        for edge in place.edges:
            for occurrence in self._automaton.atoms[edge.atom].occurrences:
                gpm = self._plan.gpms[self._plan.occurrences[occurrence].gpm]
                if gpm.floor is not None:
                    floor = place.live.index(self._registers.number[gpm.floor.register])
                    rank = gpm.variables.index(gpm.floor.rank)
                    self.tables.floors[number] = floor, rank, gpm.floor.most

    def _add_joint(self, number: int, position: int, indexes: list[Index]) -> None:
        """Add the indexes by which the last row of a conjunction finds waiting groups."""
        place = self._automaton.places[number]
        taken = self._automaton.atoms[place.edges[position].atom].occurrences
        for occurrence, keys in zip(taken, place.joint[position], strict=False):
            if keys:
                index: Index = ([place.live.index(register) for register, _ in keys], -1)
                if index not in indexes:
                    indexes.append(index)
                gpm = self._plan.occurrences[occurrence].gpm
                columns = [self._plan.gpms[gpm].variables.index(name) for _, name in keys]
                where = (indexes.index(index) + 1, *self._listed(columns))
                self._joint[number, position, gpm] = where

    def _add_eager_guards(
        self,
        place: int,
        live: Sequence[int],
        eager_guards: Sequence[EagerGuard],
        indexes: list[Index],
    ) -> None:
        for eager in eager_guards:
            guard = self._automaton.guards[eager.guard]
            assert guard.occurrence is not None
            gpm = self._plan.occurrences[guard.occurrence].gpm
            index = 0
            if eager.keys:
                indexes.append(([live.index(register) for register, _ in eager.keys], -1))
                index = len(indexes)
            variables = self._plan.gpms[gpm].variables
            columns = self._listed([variables.index(name) for _, name in eager.keys])
            row = (place, guard.occurrence, index, *columns, guard.negated)
            self._eager_guards.setdefault(gpm, []).append(row)

    def _write_eager_guards(self) -> None:
        for gpm in range(len(self._plan.gpms)):
            self.tables.eager_first.append(len(self.tables.eager_guards))
            self.tables.eager_guards += self._eager_guards.get(gpm, ())
        self.tables.eager_first.append(len(self.tables.eager_guards))

    def _write_deadlines(self) -> None:
        automaton, tables = self._automaton, self.tables
        inside = fragment_places(automaton)
        behind: dict[int, set[int]] = {}
        for number in range(len(automaton.places)):
            atom = automaton.deadline(number)
            if atom is None or number in inside:
                continue
            reached = behind_deadlines(automaton, number)
            ending = [automaton.deadline(place) for place in reached]
            ends = any(
                link.target == ACCEPT for atom in ending if atom is not None for link in atom.links
            )
            begins = bool(automaton.places[number].edges[0].actions)
            tables.deadlines.append((number, ends, begins))
            behind[number] = {
                target
                for place in reached
                if automaton.deadline(place) is not None
                for target, _, _ in self._links_of(place)
                if target >= 0
            } | set(reached)
        for gpm in range(len(self._plan.gpms)):
            first, end = tables.way_first[gpm : gpm + 2]
            reading = {place for place, *_ in tables.ways[first:end]}
            first, end = tables.eager_first[gpm : gpm + 2]
            reading.update(place for place, *_ in tables.eager_guards[first:end])
            first, end = tables.search.searches[gpm]
            reading.update(tables.search.searchers[first:end])
            tables.behind_first.append(len(tables.behind))
            tables.behind += [n for n, places in behind.items() if not reading.isdisjoint(places)]
        tables.behind_first.append(len(tables.behind))

    def _links_of(self, place: int) -> list[tuple[int, int, int]]:
        """The links of the only edge of a place."""
        edge = self.tables.edges[self._edges[place, 0]]
        return self.tables.links[edge.links : edge.links_end]

    def _listed(self, numbers: Sequence[int]) -> Range:
        first = len(self.tables.numbers)
        self.tables.numbers += numbers
        return first, len(self.tables.numbers)

    def _binding(self, column: int, name: str) -> tuple[int, int, int, int]:
        first = len(self.tables.followers)
        self.tables.followers += self._native.followers(name)
        return column, self._registers.number[name], first, len(self.tables.followers)

    def _edge(self, number: int, position: int, edge: Edge, indexes: list[Index]) -> EdgeRow:
        place = self._automaton.places[number]
        atom = self._automaton.atoms[edge.atom]
        occurrence = atom.occurrences[0] if atom.kind == "single" else _NO_OCCURRENCE
        effects = len(self.tables.effects)
        for action in edge.actions:
            self.tables.effects += self._native.effects(action)
        links = len(self.tables.links)
        self.tables.links += [self._link(link) for link in atom.links]
        bounds = (*self._listed(list(map(self._mark, edge.marks))), *self._limits(edge))
        if atom.kind == "deadline":
            key_columns = self._listed(())
            return EdgeRow(
                occurrence,
                effects,
                len(self.tables.effects),
                links,
                len(self.tables.links),
                0,
                *key_columns,
                -1,
                0,
                False,
                False,
                False,
                atom.size,
                *bounds,
            )
        keys = () if place.start else place.keys[position]
        index, ordered = 0, -1
        order = None if place.start else place.orders[position]
        if order is not None and order[0] in place.live:
            ordered = place.live.index(order[0])
        if keys or ordered >= 0:
            indexes.append(([place.live.index(register) for register, _ in keys], ordered))
            index = len(indexes)
        variables = self._plan.gpms[self._plan.occurrences[atom.occurrences[0]].gpm].variables
        operator = deciding_operator(self._plan, self._automaton, number, position)
        compared = -1 if ordered < 0 or order is None else variables.index(order[1])
        key_columns = self._listed([variables.index(name) for _, name in keys])
        return EdgeRow(
            occurrence,
            effects,
            len(self.tables.effects),
            links,
            len(self.tables.links),
            index,
            *key_columns,
            compared,
            0 if order is None else RELATIONS.index(order[2]),
            joins_whole(self._plan, self._automaton, number, position),
            operator is not None,
            operator in ("<", ">"),
            -1 if edge.within is None else edge.within,
            *bounds,
        )

    def _mark(self, bounded: int) -> int:
        """The first of the two registers from which a bound counts."""
        return self._registers.number[mark_registers(bounded)[0]]

    def _limits(self, edge: Edge) -> Range:
        first = len(self.tables.limits)
        self.tables.limits += [
            (self._mark(bounded), size) for bounded, size in self._automaton.limits(edge)
        ]
        return first, len(self.tables.limits)

    def _link(self, link: Link) -> tuple[int, int, int]:
        first = len(self.tables.bounds)
        for bound in link.bounds:
            register = self._registers.number[iteration_register(bound.unit)]
            below = _NO_LIMIT if bound.below is None else bound.below
            self.tables.bounds.append((register, bound.least, below))
        target = -1 if link.target == ACCEPT else link.target
        if link.target == ACCEPT and link.guards:
            target = self._waiting_place(link)
        return target, first, len(self.tables.bounds)

    def _waiting_place(self, link: Link) -> int:
        """The place where matches wait for their windows to close; it follows all others."""
        known = self._waiting.get(link.guards)
        if known is not None:
            return known
        number = len(self._automaton.places) + len(self._closing)
        self._waiting[link.guards] = number
        live = closing_registers(self._plan, self._automaton, link)
        indexes: list[Index] = []
        self._add_eager_guards(number, live, self._shared_eager_guards(link), indexes)
        self._closing.append((CLOSING, *self._listed(live), indexes, 0))
        self.tables.closing.append(link)
        return number

    def _shared_eager_guards(self, link: Link) -> Sequence[EagerGuard]:
        """The eager guards of a link, keyed by the registers that all matches with them bind."""
        same = [
            other.eager_guards
            for atom in self._automaton.atoms
            for other in atom.links
            if other.target == ACCEPT and other.guards == link.guards
        ]
        return [
            replace(eager, keys=tuple(k for k in eager.keys if all(k in o.keys for o in each)))
            for eager, each in zip(link.eager_guards, zip(*same, strict=True), strict=True)
        ]
