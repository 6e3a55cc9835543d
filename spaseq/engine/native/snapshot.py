"""The state of a compiled automaton ↔ plain data (`spaseq.nfa.state`).

Shared structure stays shared; what the window has passed over is left out. Cost: linear in what
is there, once for each part, however often it is referred to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spaseq.engine.native.cells import GONE, Numbers, Terms, cell_of, number_of
from spaseq.engine.native.query_run import NativeRun
from spaseq.nfa.native.tables import closing_registers
from spaseq.nfa.state import (
    NOTHING,
    AutomatonState,
    AwaitedState,
    Cell,
    ClockState,
    GroupState,
    KeptRow,
    LabelState,
    NodeAt,
    NodeState,
    PartitionState,
    UnionState,
)
from spaseq.plan.logical import Register
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.event import Term


def taken_out(native: NativeRun, over: bool) -> AutomatonState:
    """What a core remembers, which stays as it is.

    `over`: nothing more comes at the last timestamp.
    """
    return _TakingOut(native).all(over)


def put_back(native: NativeRun, state: AutomatonState) -> None:
    """Go on from a state, in a core that has seen nothing yet."""
    _PuttingBack(native, state).all()


def count_on(native: NativeRun, before: NativeRun) -> None:
    """What happened in another core of the same automaton has happened here too."""
    for number in range(len(native.compiled.automaton.places)):
        native.core.tables.count_on(number, before.core.tables.counters(number))
    for occurrence in range(len(native.compiled.plan.occurrences)):
        native.core.tables.disagreed_on(occurrence, before.core.tables.disagreed(occurrence))
        native.step.untrue_on(occurrence, before.step.untrue_counts(occurrence))
    native.core.lazy_join.turns = before.core.lazy_join.turns


class LiveRegisters:
    """Which registers the partial matches of a place remember."""

    def __init__(self, native: NativeRun):
        self._plan, self._automaton = native.compiled.plan, native.compiled.automaton
        self._closing = native.closing
        self._places: dict[int, Sequence[Register]] = {}

    def of(self, place: int) -> Sequence[Register]:
        known = self._places.get(place)
        if known is None:
            own = self._automaton.places
            numbers = (
                own[place].live
                if place < len(own)
                else closing_registers(self._plan, self._automaton, self._closing[place - len(own)])
            )
            known = self._places[place] = [self._plan.registers[number] for number in numbers]
        return known


class _TakingOut:
    def __init__(self, native: NativeRun):
        self._native, self._parts = native, native.parts
        self._registers = LiveRegisters(native)
        self._terms = Terms(native.parts.term)
        self._labels: dict[int, int] = {}
        """Labels by address: where they stand."""
        self._graph: dict[tuple[int, bool], int] = {}
        """The same of nodes and unions. A union of one node has its address: True says the node."""
        self._state = AutomatonState(
            ClockState(*native.parts.clock()),
            native.core.window.skipped,
            native.core.transitions.waited,
            native.parts.ended(),
            terms=self._terms.found,
            files=native.files,
        )

    def all(self, over: bool) -> AutomatonState:
        native, parts, state = self._native, self._parts, self._state
        for place, values, members, taken, dates in parts.groups(over):
            cells = self._cells(place, values)
            if GONE in cells:
                continue  # nothing that comes is in their window
            if dates is not None:
                dates = (*dates[:-1], [(*some, self._union(each)) for *some, each in dates[-1]])
            state.groups.append(GroupState(place, cells, self._union(members), taken, dates))
        state.pending += [
            NodeAt(place, self._cells(place, values), self._node(node))
            for place, values, node in parts.pended()
        ]
        registers = native.compiled.plan.registers
        state.begun += [
            NodeAt(place, self._of(registers, values), self._node(node))
            for place, values, node in parts.begun()
        ]
        # The core tells of the one that came last first.
        state.awaited += [
            AwaitedState(
                place, self._cells(place, values), start, [self._label(label) for label in labels]
            )
            for place, values, start, labels in filter(None, reversed(list(parts.awaited())))
        ]
        state.complete += map(self._node, parts.completed())
        state.kept += [
            KeptRow(gpm, keyed, self._label(label)) for gpm, keyed, label in parts.kept()
        ]
        state.recalled += [
            (*key, event)
            for key, event in native.step.recalls.items()
            if key[0] >= native.core.window.reach
        ]
        state.chained = parts.chained()
        partitions = native.core.partitions
        for key, instants, skipped in () if partitions is None else partitions.known():
            state.partitions.append(PartitionState(list(map(self._terms, key)), instants, skipped))
        return state

    def _cells(self, place: int, values: Sequence[int]) -> list[Cell]:
        return self._of(self._registers.of(place), values)

    def _of(self, registers: Iterable[Register], values: Sequence[int]) -> list[Cell]:
        return [
            cell_of(register, value, self._terms)
            for register, value in zip(registers, values, strict=False)
        ]

    def _label(self, address: int) -> int:
        place = self._labels.get(address)
        if place is None:
            place = self._labels[address] = len(self._state.labels)
            label, terms = LabelState(*self._parts.fields(address)), self._terms
            self._state.labels.append(
                label._replace(
                    name=terms(label.name),
                    stamp=terms(label.stamp),
                    row=list(map(terms, label.row)),
                )
            )
        return place

    def _node(self, address: int) -> int:
        return self._reach(address, is_node=True)

    def _union(self, address: int) -> int:
        return self._reach(address, is_node=False)

    def _reach(self, top: int, *, is_node: bool) -> int:
        """A node or union and all below it, deepest first and without recursion."""
        todo = [(top, is_node)]
        while todo:
            address, a_node = each = todo[-1]
            if each in self._graph:
                todo.pop()
                continue
            if a_node:
                label, before, start = self._parts.node(address)
                below = [(before, False)]
            else:
                latest, node, left, right = self._parts.union(address)
                below = [(node, True), (left, False), (right, False)]
            missing = [part for part in below if part[0] and part not in self._graph]
            if missing:
                todo += missing
                continue
            where = [self._graph.get(part, NOTHING) for part in below]
            made = (
                NodeState(self._label(label), where[0], start)
                if a_node
                else UnionState(latest, where[0], where[1], where[2])
            )
            self._graph[each] = len(self._state.graph)
            self._state.graph.append(made)
        return self._graph[top, is_node]


class _PuttingBack:
    def __init__(self, native: NativeRun, state: AutomatonState):
        self._native, self._parts, self._state = native, native.parts, state
        if state.clock.now >= 0:
            native.parts.set_clock(*state.clock)
        self._registers = LiveRegisters(native)
        self._batch = EventBatch(native.matchers.dictionary)
        self._numbers = Numbers(state.terms, self._hold)
        self._labels: list[int] = []
        self._graph: list[int] = []

    def _hold(self, term: Term) -> int:
        return self._native.step.window.hold(self._batch, self._batch.number(term))

    def all(self) -> None:
        native, parts, state = self._native, self._parts, self._state
        native.core.window.skipped = state.skipped
        for key, instants, skipped in state.partitions:
            assert native.core.partitions is not None
            native.core.partitions.put(list(map(self._numbers, key)), instants, skipped)
        for instant, stream, event in state.recalled:
            native.step.recall(instant, stream, event)
        self._put_graph()
        for gpm, keyed, label in state.kept:
            parts.put_kept(gpm, self._labels[label], keyed)
        parts.put_chained(state.chained)
        for place, values, members, taken, dates in state.groups:
            if dates is not None:
                dates = (*dates[:-1], [(*some, self._graph[each]) for *some, each in dates[-1]])
            parts.put_group(place, self._values(place, values), self._graph[members], taken, dates)
        for place, values, start, labels in state.awaited:
            addresses = [self._labels[label] for label in labels]
            parts.put_awaited(place, self._values(place, values), start, addresses)
        for place, values, node in state.pending:
            parts.put_pended(place, self._values(place, values), self._graph[node])
        registers = native.compiled.plan.registers
        for place, values, node in state.begun:
            parts.put_begun(place, self._of(registers, values), self._graph[node])
        for node in state.complete:
            parts.put_complete(self._graph[node])
        native.core.transitions.waited, native.core.forbidden = state.waited, state.forbidden

    def _put_graph(self) -> None:
        parts, numbers = self._parts, self._numbers
        files = list(map(self._native.file_number, self._state.files))
        for label in self._state.labels:
            self._labels.append(
                parts.put_label(
                    *label._replace(
                        file=files[label.file],
                        name=numbers(label.name),
                        stamp=numbers(label.stamp),
                        row=list(map(numbers, label.row)),
                    )
                )
            )
        made = self._graph
        for item in self._state.graph:
            if isinstance(item, NodeState):
                made.append(
                    parts.put_node(self._labels[item.label], self._at(item.before), item.start)
                )
            else:
                node, left, right = map(self._at, (item.node, item.left, item.right))
                made.append(parts.put_union(item.latest, node, left, right))

    def _at(self, place: int) -> int:
        return 0 if place == NOTHING else self._graph[place]

    def _values(self, place: int, cells: Sequence[Cell]) -> list[int]:
        return self._of(self._registers.of(place), cells)

    def _of(self, registers: Iterable[Register], cells: Sequence[Cell]) -> list[int]:
        return [
            number_of(register, cell, self._numbers)
            for register, cell in zip(registers, cells, strict=False)
        ]
