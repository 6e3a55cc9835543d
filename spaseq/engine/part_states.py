"""The state of one query of a template, taken out of the state of the template's automaton.

Both automata have the same places, edges and guards. The template's has more registers, and its
rows more columns: those of the constants and of the number of the query. Every group, and so every
partial match, belongs to one query, whose number is one of the registers of the group. A query with
thresholds has the partial matches whose rows reach the thresholds. Where partial matches wait with
a floor (`spaseq.plan.floors`), a query has those whose floor is not above its place in the order of
the thresholds, and groups that differ in their floors become one. A query in a template that
branches has the groups of its own places, with the same registers.

Cost: linear in the state for all queries together, and in the instants of the window for each
query. With branches, the groups in common places count once for each query that shares them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyoxigraph as ox

from spaseq.engine.compiled import CompiledQuery
from spaseq.engine.embedding import Embedding, searching
from spaseq.engine.instants import QueryRun
from spaseq.nfa.automaton import Automaton, Guard
from spaseq.nfa.native import lazy_join_tables
from spaseq.nfa.native.conjunction_tables import DATED
from spaseq.nfa.native.register_tables import bound_by
from spaseq.nfa.state import (
    NOTHING,
    AutomatonState,
    BufferedRow,
    GroupState,
    LabelState,
    NodeAt,
    NodeState,
    UnionState,
)
from spaseq.parser import ast
from spaseq.plan.floors import number_of
from spaseq.plan.logical import Occurrence
from spaseq.plan.templates import NUMBER, Template
from spaseq.rdf.event import Term
from spaseq.records import dataclass


def corresponds(template: CompiledQuery, query: CompiledQuery, numbered: bool) -> bool:
    """Whether the automaton of a template differs from that of its query in registers only.

    If `numbered`, all groups of the template must also have the number of their query.
    """
    whole, part = template.automaton, query.automaton
    if any(lazy_join_tables.weighed(one.plan, one.automaton) for one in (template, query)):
        return False
    waiting = {link.target for atom in whole.atoms for link in atom.links}
    return (
        whole.atoms == part.atoms
        and _without_reads(whole) == _without_reads(part)
        and whole.starts == part.starts
        and len(whole.places) == len(part.places)
        and all(
            (a.operator, a.guards, a.edges, a.start) == (b.operator, b.guards, b.edges, b.start)
            and [g.guard for g in a.eager_guards] == [g.guard for g in b.eager_guards]
            for a, b in zip(whole.places, part.places, strict=True)
        )
        and _stored(template) == _stored(query)
        and not (
            numbered
            and any(
                number in waiting and _number_at(template, place.live) is None
                for number, place in enumerate(whole.places)
            )
        )
    )


def _stored(query: CompiledQuery) -> tuple[object, ...]:
    """How the members of groups are stored, and whose rows are stored."""
    search = searching(query)
    return [manner & DATED for manner in search.manners], [rows is None for rows in search.kept]


def _without_reads(automaton: Automaton) -> list[Guard]:
    return [replace(guard, reads=()) for guard in automaton.guards]


def _number_at(template: CompiledQuery, registers: Sequence[int]) -> int | None:
    """The position of the number of the query among some registers."""
    names = [template.plan.registers[number].variable for number in registers]
    return names.index(NUMBER) if NUMBER in names else None


class PartStates:
    """The states of the queries of one template, at the time of the first call."""

    def __init__(self, query: QueryRun, template: Template):
        self._query = query
        self._thresholds, self._floors = template.thresholds, dict(template.floors)
        self._whole: AutomatonState | None = None
        self._groups: dict[int | None, list[GroupState]] = defaultdict(list)
        self._pending: dict[int | None, list[NodeAt]] = defaultdict(list)
        self._begun: dict[int | None, list[NodeAt]] = defaultdict(list)
        self._complete: dict[int | None, list[int]] = defaultdict(list)
        self._kept: dict[int | None, list[BufferedRow]] = defaultdict(list)
        self._of_gpm: dict[int, int] = {}
        """Label of a buffered row → its GPM."""

    def of(self, part: Part) -> AutomatonState:
        """The state of one query."""
        if self._whole is None:
            self._whole = self._query.state()
            self._divide(self._whole, part)
        return _Extraction(self, self._whole, part).state()

    def _divide(self, whole: AutomatonState, part: Part) -> None:
        """Divide the parts that refer to nodes and rows by the number of the query, or by place."""
        template = self._query.compiled
        places = template.automaton.places
        is_numbered, branches = part.number is not None, part.embedding is not None

        def of_cells(cells: Sequence[Any], registers: Sequence[int]) -> int | None:
            position = _number_at(template, registers) if is_numbered else None
            return None if position is None else _number(whole, cells[position])

        def of_row(names: Sequence[str], row: Sequence[int]) -> int | None:
            has = is_numbered and NUMBER in names
            return _number(whole, row[names.index(NUMBER)]) if has else None

        def of_place(place: int, cells: Sequence[Any]) -> int | None:
            return place if branches else of_cells(cells, places[place].live)

        for group in whole.groups:
            self._groups[of_place(group.place, group.values)].append(group)
        for node in whole.pending:
            self._pending[of_place(node.place, node.values)].append(node)
        every = range(len(template.plan.registers))
        for node in whole.begun:
            self._begun[of_cells(node.values, every)].append(node)
        for row in whole.kept:
            self._of_gpm[row.label] = row.gpm
            names = template.plan.gpms[row.gpm].variables
            number = of_row(names, whole.labels[row.label].row)
            self._kept[row.gpm if branches else number].append(row)
        for position in whole.complete:
            ending = whole.graph[position]
            assert isinstance(ending, NodeState)
            label = whole.labels[ending.label]
            number = of_row(columns_of(template, label.place, label.position), label.row)
            self._complete[label.place if branches else number].append(position)


def _number(whole: AutomatonState, cell: int) -> int:
    """The number that a cell holds."""
    term = whole.terms[cell - 1]
    assert isinstance(term, ox.Literal)
    return int(term.value)


def columns_of(query: CompiledQuery, place: int, position: int) -> tuple[str, ...]:
    """The variables of the rows that an edge takes."""
    return bound_by(query.plan, _occurrence(query, place, position))


def gpm_of(query: CompiledQuery, place: int, position: int) -> int:
    """The GPM of the rows that an edge takes."""
    return _occurrence(query, place, position).gpm


def _occurrence(query: CompiledQuery, place: int, position: int) -> Occurrence:
    edge = query.automaton.places[place].edges[position]
    (occurrence,) = query.automaton.atoms[edge.atom].occurrences
    return query.plan.occurrences[occurrence]


@dataclass(frozen=True, slots=True)
class Part:
    """One query of a template, for a `QueryRun` that continues it (`take_over`)."""

    whole: QueryRun
    """The template."""
    states: PartStates
    compiled: CompiledQuery
    number: int | None
    place: int
    """Its index among the queries with that number."""
    matched: int
    """The number of its matches so far."""
    embedding: Embedding | None = None
    """Its position in the template, if the template branches."""

    def state(self) -> AutomatonState:
        """The state of its automaton."""
        return self.states.of(self)


class _Extraction:
    """The part of a template's state that belongs to one query."""

    def __init__(self, parts: PartStates, whole: AutomatonState, part: Part):
        self._parts, self._whole = parts, whole
        self._place, self._number = part.place, part.number
        self._template, self._part = part.whole.compiled, part.compiled
        self._embedding = part.embedding
        places = range(len(self._part.automaton.places))
        gpms = range(len(self._part.plan.gpms))
        lies = self._embedding
        self._place_of = dict(zip(places if lies is None else lies.places, places, strict=True))
        self._gpm_of = dict(zip(gpms if lies is None else lies.gpms, gpms, strict=True))
        self._floor_at = {n: at for n, (at, *_) in part.whole.native.tables.floors.items()}
        """Place whose groups have floors → the position of the floor among their registers."""
        self._labels: dict[int, int] = {}
        self._graph: dict[int, int] = {NOTHING: NOTHING}
        """Node or union of the template → that of the query; `NOTHING` if it has no member."""
        self._reaches: dict[int, bool] = {}
        """Label of the template → whether its row reaches the thresholds of the query."""
        self._state = AutomatonState(
            whole.clock,
            whole.skipped,
            waited=0,
            forbidden=0,
            terms=whole.terms,
            files=whole.files,
            recalled=whole.recalled,
        )

    def state(self) -> AutomatonState:
        parts, state, number = self._parts, self._state, self._number
        own: list[int | None] = [number]
        rows: list[int | None] = list(dict.fromkeys((number, None)))
        if self._embedding is not None:
            own, rows = list(self._embedding.places), list(self._embedding.gpms)
        groups = [
            group for key in own for group in parts._groups.get(key, ()) if self._waits_in(group)
        ]
        pending = [node for key in own for node in parts._pending.get(key, ())]
        begun = [node for key in own for node in parts._begun.get(key, ())]
        complete = [node for key in own for node in parts._complete.get(key, ())]
        kept = [row for key in rows for row in parts._kept.get(key, ())]
        if len(rows) > 1 and kept:
            positions = {row: n for n, row in enumerate(self._whole.kept)}
            kept.sort(key=positions.__getitem__)
        self._copy(
            [
                *(group.members for group in groups),
                *(each for group in groups if group.dates for *_, each in group.dates[-1]),
                *(node.node for node in (*pending, *begun)),
                *complete,
            ]
        )
        at = self._graph.__getitem__
        state.kept = [
            row._replace(gpm=self._gpm_of[row.gpm], label=self._label(row.label))
            for row in kept
            if self._has(row.label)
        ]
        state.groups = self._united_groups(
            each for group in groups if (each := self._group(group)) is not None
        )
        state.pending = [
            each._replace(
                place=self._place_of[each.place],
                values=self._cells(each.place, each.values),
                node=at(each.node),
            )
            for each in pending
            if at(each.node) != NOTHING
        ]
        every = self._where(
            [register.name for register in self._template.plan.registers],
            [register.name for register in self._part.plan.registers],
        )
        state.begun = [
            each._replace(values=[each.values[n] for n in every], node=at(each.node))
            for each in begun
            if at(each.node) != NOTHING
        ]
        state.complete = [at(each) for each in complete if at(each) != NOTHING]
        return state

    def _group(self, group: GroupState) -> GroupState | None:
        """The members of a group that belong to the query; None if there are none."""
        at, dates = self._graph, group.dates
        if at[group.members] == NOTHING:
            return None
        # A query that is not below the raised floor has not taken the event, and still waits.
        taken = group.taken and not 0 < self._number_in(group.floor) <= self._place
        if dates is not None:
            oldest, floor, joined, joined_in, stretches = dates
            own = [
                (last, self._start(at[members]), at[members])
                for last, _, members in stretches
                if at[members] != NOTHING
            ]
            if not own or own[0][0] < floor:
                return None  # all members have been joined
            dates = oldest, floor, joined, joined_in, own
        values = self._cells(group.place, group.values)
        return group._replace(
            place=self._place_of[group.place],
            values=values,
            members=at[group.members],
            taken=taken,
            dates=dates,
            floor=0,
        )

    def _waits_in(self, group: GroupState) -> bool:
        """Whether the query has not taken its next event, as far as the floor of a group says."""
        floor = self._floor_at.get(group.place)
        return floor is None or self._number_in(group.values[floor]) <= self._place

    def _united_groups(self, groups: Iterable[GroupState]) -> list[GroupState]:
        """Groups that differed in their floors as one."""
        if not self._floor_at:
            return list(groups)
        found: dict[tuple[int, str], GroupState] = {}
        for group in groups:
            key = group.place, repr(group.values)  # cells of aggregates are lists
            other = found.setdefault(key, group)
            if other is not group:
                members = self._united(other.members, group.members)
                found[key] = other._replace(members=members)
        return list(found.values())

    def _number_in(self, cell: Any) -> int:
        """The number of a rank or a floor; 0 without one."""
        return number_of(self._whole.terms[cell - 1]) if cell else 0

    def _cells(self, place: int, values: Sequence[Any]) -> list[Any]:
        whole, part = self._template, self._part
        names = [whole.plan.registers[n].name for n in whole.automaton.places[place].live]
        live = part.automaton.places[self._place_of[place]].live
        own = [part.plan.registers[n].name for n in live]
        return [values[n] for n in self._where(names, own)]

    @staticmethod
    def _where(names: Sequence[str], own: Iterable[str]) -> list[int]:
        place = {name: number for number, name in enumerate(names)}
        return [place[name] for name in own]

    def _copy(self, roots: Iterable[int]) -> None:
        """Copy some nodes and unions with all their parts, in order."""
        graph, found, todo = self._whole.graph, set(), list(roots)
        while todo:
            position = todo.pop()
            if position in found or position == NOTHING:
                continue
            found.add(position)
            item = graph[position]
            todo += (item.before,) if isinstance(item, NodeState) else item[1:]
        for position in sorted(found):
            item = graph[position]
            self._graph[position] = (
                self._node(item) if isinstance(item, NodeState) else self._union(item)
            )

    def _node(self, item: NodeState) -> int:
        before = self._graph[item.before]
        if not self._has(item.label) or (before == NOTHING) != (item.before == NOTHING):
            return NOTHING
        start = item.start if before == NOTHING else self._start(before)
        if start < self._whole.clock.bound <= item.start:
            return NOTHING  # the window has passed the rest
        return self._add(NodeState(self._label(item.label), before, start))

    def _union(self, item: UnionState) -> int:
        """A union without the members that the query lacks, as a heap again."""
        node = self._graph[item.node]
        left, right = sides = self._graph[item.left], self._graph[item.right]
        if node != NOTHING:
            start = self._start(node)
            if all(side == NOTHING or self._start(side) <= start for side in sides):
                return self._add(UnionState(start, node, left, right))
            node = self._add(UnionState(start, node, NOTHING, NOTHING))
        return self._united(node, self._united(left, right))

    def _united(self, one: int, other: int) -> int:
        """The union of two unions, each of which may be empty."""
        if NOTHING in (one, other):
            return max(one, other)
        latest = max(self._start(one), self._start(other))
        return self._add(UnionState(latest, NOTHING, one, other))

    def _start(self, position: int) -> int:
        """The greatest start of a copied node or union."""
        item = self._state.graph[position]
        return item.start if isinstance(item, NodeState) else item.latest

    def _add(self, item: NodeState | UnionState) -> int:
        self._state.graph.append(item)
        return len(self._state.graph) - 1

    def _has(self, position: int) -> bool:
        """Whether the query has a row, since the row reaches its thresholds."""
        thresholds, floors = self._parts._thresholds, self._parts._floors
        if not thresholds:
            return True
        known = self._reaches.get(position)
        if known is None:
            label = self._whole.labels[position]
            gpm = self._parts._of_gpm.get(position)
            if gpm is None:
                gpm = gpm_of(self._template, label.place, label.position)
            if gpm in floors:
                known = self._takes(label, floors[gpm])
            else:
                known = all(
                    threshold.is_reached(self._value(label, gpm, threshold.variable), self._place)
                    for threshold in thresholds
                    if threshold.gpm == gpm
                )
            self._reaches[position] = known
        return known

    def _takes(self, label: LabelState, floor: ast.Floor) -> bool:
        """Whether the query is one of those that have taken a row."""
        names = columns_of(self._template, label.place, label.position)
        taken, rank = (
            self._number_in(label.row[names.index(name)]) for name in (floor.taken, floor.rank)
        )
        return taken <= self._place < rank

    def _value(self, label: LabelState, gpm: int, variable: str) -> Term:
        """What a row of a GPM binds a variable to."""
        cell = label.row[self._template.plan.gpms[gpm].variables.index(variable)]
        return self._whole.terms[cell - 1]

    def _label(self, position: int) -> int:
        known = self._labels.get(position)
        if known is None:
            known = self._labels[position] = len(self._state.labels)
            label = self._whole.labels[position]
            gpm, place = self._parts._of_gpm.get(position), label.place
            if gpm is None:
                names = columns_of(self._template, place, label.position)
                place = self._place_of[place]
                own = columns_of(self._part, place, label.position)
            else:
                names = self._template.plan.gpms[gpm].variables
                own = self._part.plan.gpms[self._gpm_of[gpm]].variables
            row = [label.row[n] for n in self._where(names, own)]
            self._state.labels.append(label._replace(place=place, row=row))
        return known
