"""The state of a compiled automaton ↔ plain data (`spaseq.nfa.state`).

Shared structure remains shared, and the snapshot omits parts that the window has passed. The cells
of registers and rows hold positions of terms in `AutomatonState.terms` instead of the term numbers
of one run. Invariant: groups with equal registers have equal cells.

Cost: linear in the state; each part is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, TypeAlias, cast

import pyoxigraph as ox

from spaseq.engine.aggregates import heeds_distinct
from spaseq.engine.native.query_run import NativeRun
from spaseq.nfa.counters import CoreCounts
from spaseq.nfa.native.register_tables import FAILED, NEVER_BOUND, OPENED
from spaseq.nfa.native.tables import closing_registers
from spaseq.nfa.state import (
    NOTHING,
    AutomatonState,
    AwaitedState,
    BufferedRow,
    Cell,
    ClockState,
    EndedState,
    GroupState,
    LabelState,
    NodeAt,
    NodeState,
    Number,
    PartitionState,
    UnionState,
)
from spaseq.plan.logical import Register
from spaseq.rdf.checked import listed, refuse, whole
from spaseq.rdf.event import Term
from spaseq.rdf.native._terms import EventBatch
from spaseq.rdf.native._values import DECIMAL, DOUBLE, FLOAT, INTEGER, WIDE, decode

_Count: TypeAlias = tuple[Callable[[NativeRun], Any], Callable[[NativeRun, Any], None]]
_DIGITS = 8
"""The hexadecimal digits of each number in the text of an aggregate's state."""
_NO_TERM = {OPENED: -1, NEVER_BOUND: -2, FAILED: -3}
_MOST_COUNTED = 2**31
_NUMERIC = frozenset((INTEGER, DECIMAL, WIDE, FLOAT, DOUBLE))
_STRING = ox.NamedNode("http://www.w3.org/2001/XMLSchema#string")
_UNSETTLED = frozenset((_NO_TERM[OPENED], _NO_TERM[NEVER_BOUND]))
"""The states of a first value before it is bound."""
GONE = -4
"""A term that the window has freed."""


def save_automaton(native: NativeRun, over: bool) -> AutomatonState:
    """The state of a core; the core does not change.

    Args:
        native: The core.
        over: Whether the last timestamp is closed.
    """
    return _Saver(native).all(over)


def restore_automaton(native: NativeRun, state: AutomatonState) -> None:
    """Restore a state into a fresh core."""
    _Restorer(native, state).all()


def counts_of(native: NativeRun) -> CoreCounts:
    """What a core has counted."""
    return CoreCounts(**{name: read(native) for name, (read, _) in _COUNTS.items()})


def add_counts(native: NativeRun, counts: CoreCounts) -> None:
    """Add what another core of the same automaton has counted."""
    for name, (_, add) in _COUNTS.items():
        add(native, getattr(counts, name))


def _per_occurrence(
    read: Callable[[NativeRun, int], Any], add: Callable[[NativeRun, int, Any], None]
) -> _Count:
    """The counts of all occurrences, from functions for one."""

    def read_all(native: NativeRun) -> list[Any]:
        return [read(native, number) for number in range(len(native.compiled.plan.occurrences))]

    def add_all(native: NativeRun, counts: Sequence[Any]) -> None:
        for number, count in enumerate(counts):
            add(native, number, count)

    return read_all, add_all


def _places(native: NativeRun) -> list[dict[str, int]]:
    numbers = range(len(native.compiled.automaton.places))
    return [native.core.tables.counters(number) for number in numbers]


def _add_places(native: NativeRun, counts: Sequence[dict[str, int]]) -> None:
    for number, count in enumerate(counts):
        native.core.tables.count_on(number, count)


def _of_lazy_join(name: str) -> _Count:
    """A count of the lazy join."""

    def add(native: NativeRun, count: int) -> None:
        join = native.core.lazy_join
        setattr(join, name, getattr(join, name) + count)

    return lambda native: getattr(native.core.lazy_join, name), add


_COUNTS: dict[str, _Count] = {
    "places": (_places, _add_places),
    "disagreed": _per_occurrence(
        lambda native, number: native.core.tables.disagreed(number),
        lambda native, number, count: native.core.tables.disagreed_on(number, count),
    ),
    "untrue": _per_occurrence(
        lambda native, number: native.step.untrue_counts(number),
        lambda native, number, count: native.step.untrue_on(number, count),
    ),
    "errors": _per_occurrence(
        lambda native, number: native.step.errors(number),
        lambda native, number, count: native.step.errors_on(number, count),
    ),
    **{name: _of_lazy_join(name) for name in ("switches", "searched", "sampled")},
}
"""The fields of `CoreCounts`: how a core's is read, and another core's added."""
assert _COUNTS.keys() == {field.name for field in fields(CoreCounts)}, "a count is not added"


class LiveRegisters:
    """The registers that the partial matches of each place store."""

    def __init__(self, native: NativeRun):
        self._plan, self._automaton = native.compiled.plan, native.compiled.automaton
        self._closing = native.closing
        self._places: dict[int, Sequence[Register]] = {}
        self._terms: dict[int, int] = {}

    def terms(self, place: int) -> int:
        """The number of registers of a place if all hold terms; -1 with counts or aggregates."""
        known = self._terms.get(place)
        if known is None:
            registers = self.of(place)
            is_plain = not any(r.is_number or r.kind == "aggregate" for r in registers)
            known = self._terms[place] = len(registers) if is_plain else -1
        return known

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


class _Saver:
    def __init__(self, native: NativeRun):
        self._native, self._parts = native, native.parts
        self._registers = LiveRegisters(native)
        self._terms = Terms(native.parts.term)
        self._labels: dict[int, int] = {}
        """Label address → position in `labels`."""
        self._graph: dict[tuple[int, bool], int] = {}
        """(address, is node) → position in `graph`; a union of one node has the node's address."""
        self._state = AutomatonState(
            ClockState(*native.parts.clock()),
            native.core.window.skipped,
            native.core.transitions.waited,
            native.parts.ended(),
            terms=self._terms.found,
            files=native.files,
            last_start=native.last_start,
        )

    def all(self, over: bool) -> AutomatonState:
        native, parts, state = self._native, self._parts, self._state
        for place, values, members, taken, dates, floor in parts.groups(over):
            cells = self._cells(place, values)
            if GONE in cells:
                continue  # the window of the group has passed all later events
            if dates is not None:
                dates = (*dates[:-1], [(*some, self._union(each)) for *some, each in dates[-1]])
            state.groups.append(
                GroupState(place, cells, self._union(members), taken, dates, self._terms[floor])
            )
        state.pending += [
            NodeAt(place, self._cells(place, values), self._node(node))
            for place, values, node in parts.pending()
        ]
        registers = native.compiled.plan.registers
        state.begun += [
            NodeAt(place, self._of(registers, values), self._node(node))
            for place, values, node in parts.deferred()
        ]
        # The core lists the newest first.
        state.awaited += [
            AwaitedState(
                place, self._cells(place, values), start, [self._label(label) for label in labels]
            )
            for place, values, start, labels in filter(None, reversed(list(parts.awaited())))
        ]
        state.complete += map(self._node, parts.completed())
        state.kept += [
            BufferedRow(gpm, keyed, self._label(label))
            for gpm, keyed, label in parts.buffered_rows()
        ]
        state.recalled += [
            (*key, event)
            for key, event in native.step.recalls.items()
            if key[0] >= native.core.window.reach
        ]
        state.chained = parts.strategy()
        partitions = native.core.partitions
        for key, instants, skipped in () if partitions is None else partitions.dump():
            state.partitions.append(PartitionState(list(map(self._terms, key)), instants, skipped))
        if native.ended is not None:
            state.ended += [
                EndedState(list(map(self._terms.place, key)), first, end)
                for key, first, end in native.ended.dump(native.core.window.bound)
            ]
        return state

    def _cells(self, place: int, values: Sequence[int]) -> list[Cell]:
        if self._registers.terms(place) == len(values):
            return list(map(self._terms.__getitem__, values))
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
            fields, terms = self._parts.fields(address), self._terms
            self._state.labels.append(
                LabelState(
                    *fields[:9],
                    terms[fields[9]],
                    terms[fields[10]],
                    fields[11],
                    fields[12],
                    list(map(terms.__getitem__, fields[13])),
                )
            )
        return place

    def _node(self, address: int) -> int:
        return self._reach(address, is_node=True)

    def _union(self, address: int) -> int:
        return self._reach(address, is_node=False)

    def _reach(self, top: int, *, is_node: bool) -> int:
        """Write a node or union after all items that it refers to, without recursion."""
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


class _Restorer:
    def __init__(self, native: NativeRun, state: AutomatonState):
        self._native, self._parts, self._state = native, native.parts, state
        if state.clock.now >= 0:
            native.parts.load_clock(*state.clock)
        self._registers = LiveRegisters(native)
        self._batch = EventBatch(native.matchers.dictionary)
        self._numbers = Numbers(state.terms, self._hold)
        self._labels: list[int] = []
        self._graph: list[int] = []

    def _hold(self, term: Term) -> int:
        return self._native.step.window.py_intern(self._batch, self._batch.number(term))

    def all(self) -> None:
        native, parts, state = self._native, self._parts, self._state
        native.core.window.skipped = state.skipped
        if state.last_start is not None:
            native.start_until(*state.last_start)
        for key, instants, skipped in state.partitions:
            assert native.core.partitions is not None
            native.core.partitions.load(list(map(self._numbers, key)), instants, skipped)
        for instant, stream, event in state.recalled:
            native.step.recall(instant, stream, event)
        if native.ended is not None:
            terms = [None, *state.terms]
            native.ended.load(
                (tuple(terms[number] for number in key), first, end)
                for key, first, end in state.ended
            )
        self._put_graph()
        for gpm, keyed, label in state.kept:
            parts.load_row(gpm, self._labels[label], keyed)
        parts.load_strategy(state.chained)
        for place, values, members, taken, dates, floor in state.groups:
            if dates is not None:
                dates = (*dates[:-1], [(*some, self._graph[each]) for *some, each in dates[-1]])
            parts.load_group(
                place, self._values(place, values), self._graph[members], taken, dates,
                self._numbers(floor),
            )  # fmt: skip
        parts.order_deadlines()
        for place, values, start, labels in state.awaited:
            addresses = [self._labels[label] for label in labels]
            parts.load_awaited(place, self._values(place, values), start, addresses)
        for place, values, node in state.pending:
            parts.load_pending(place, self._values(place, values), self._graph[node])
        registers = native.compiled.plan.registers
        for place, values, node in state.begun:
            parts.load_deferred(place, self._of(registers, values), self._graph[node])
        for node in state.complete:
            parts.load_complete(self._graph[node])
        native.core.transitions.waited, native.core.forbidden = state.waited, state.forbidden

    def _put_graph(self) -> None:
        parts, numbers = self._parts, self._numbers
        files = list(map(self._native.file_number, self._state.files))
        at = numbers.at
        for label in self._state.labels:
            cells = list(map(at, label.row))
            self._labels.append(
                parts.load_label(
                    *label[:7], files[label.file], label.ordinal, at(label.name), at(label.stamp),
                    label.part, label.parts, cells,
                )
            )  # fmt: skip
        made = self._graph
        for item in self._state.graph:
            if isinstance(item, NodeState):
                made.append(
                    parts.load_node(self._labels[item.label], self._at(item.before), item.start)
                )
            else:
                node, left, right = map(self._at, (item.node, item.left, item.right))
                made.append(parts.load_union(item.latest, node, left, right))

    def _at(self, place: int) -> int:
        return 0 if place == NOTHING else self._graph[place]

    def _values(self, place: int, cells: Sequence[Cell]) -> list[int]:
        return self._of(self._registers.of(place), cells)

    def _of(self, registers: Iterable[Register], cells: Sequence[Cell]) -> list[int]:
        return [
            number_of(register, cell, self._numbers)
            for register, cell in zip(registers, cells, strict=False)
        ]


# ------------------------------------------------------------------ cells


class Terms(dict[int, Number]):
    """Term number of a run → position of the term; `decode` decodes a number."""

    def __init__(self, decode: Callable[[int], Term | None]):
        super().__init__({**_NO_TERM, 0: 0})
        self.decode = decode
        self.found: list[Term] = []

    def __missing__(self, number: int) -> Number:
        term = self.decode(number)
        if term is not None:
            self.found.append(term)
        place = self[number] = GONE if term is None else len(self.found)
        return place

    def __call__(self, number: int) -> Number:
        return self[number]

    def place(self, term: Term | None) -> Number:
        """The position of a term that is added to the others; 0 for None."""
        if term is None:
            return 0
        self.found.append(term)
        return len(self.found)


class _Held(dict[Number, int]):
    """The numbers of the requested terms."""

    def __init__(self, terms: Sequence[Term], hold: Callable[[Term], int]):
        super().__init__({apart: number for number, apart in _NO_TERM.items()} | {0: 0, GONE: 0})
        self._terms, self._hold = terms, hold

    def __missing__(self, place: Number) -> int:
        if place < 0:
            raise KeyError(place)
        number = self[place] = self._hold(self._terms[place - 1])
        return number


class Numbers:
    """Position of a term → term number in another run; `hold` stores a term there."""

    def __init__(self, terms: Sequence[Term], hold: Callable[[Term], int]):
        self.hold = hold
        self._numbers = _Held(terms, hold)
        self.at = self._numbers.__getitem__
        """As a call of this object, without its cost."""

    def __call__(self, place: Number) -> int:
        return self._numbers[place]


class CellCheck:
    """Checks that cells of a saved state are valid for a register or a row."""

    def __init__(self, terms: Sequence[Term]):
        self.terms = terms
        self._numeric: dict[int, bool] = {}

    def are_terms(self, cells: Sequence[object]) -> bool:
        """Whether every cell holds a term or nothing, as the cells of a term register must."""
        most = len(self.terms)
        for cell in cells:  # noqa: SIM110 (half the time of `all`)
            if type(cell) is not int or not 0 <= cell <= most:
                return False
        return True

    def row(self, cells: Sequence[object], where: str) -> None:
        """Check the cells of a row or of a key."""
        most = len(self.terms)
        for cell in cells:
            if type(cell) is not int or not (0 <= cell <= most or cell == GONE):
                refuse(where, f"a cell does not hold one of the {most} terms")

    def name(self, cell: int, where: str) -> None:
        """Check the name of a graph."""
        if isinstance(self._term(cell, where), ox.Literal):
            refuse(where, "has a literal as the name of its graph")

    def stamp(self, cell: int, where: str) -> None:
        """Check the literal of a time."""
        if not isinstance(self._term(cell, where), ox.Literal | None):
            refuse(where, "has a time that is not a literal")

    def register(self, register: Register, cell: object, where: str) -> None:
        """Check the value of a register of a partial match."""
        if register.is_number:
            whole(cell, where, 0, 2**32 - 1 if register.kind == "mark" else _MOST_COUNTED)
        elif register.kind != "aggregate":
            if register.kind != "first" or type(cell) is not int or cell not in _UNSETTLED:
                self.row((cell,), where)
        elif cell in (_NO_TERM[FAILED], GONE, 0) and type(cell) is int:
            if register.function == "COUNT" and cell and not _has_values(register):
                refuse(where, "a count has failed")
        elif _has_values(register):
            state, *values = listed(cell, where)
            self._state(register, state, where)
            for value in values:
                whole(value, where, 1, len(self.terms))
        else:
            self._state(register, cell, where)

    def _state(self, register: Register, cell: object, where: str) -> None:
        """Check the state of an aggregate over at least one value, without its distinct values."""
        if register.function == "COUNT":
            whole(cell, where, 1, _MOST_COUNTED)
        elif register.function == "AVG":
            total, count = listed(cell, where, 2)
            self._is_number(total, where)
            whole(count, where, 1, _MOST_COUNTED)
        elif register.function == "SUM":
            self._is_number(cell, where)
        else:
            term = self.terms[whole(cell, where, 1, len(self.terms)) - 1]
            if register.function == "GROUP_CONCAT" and not _is_plain(term):
                refuse(where, "the joined value is not a string")

    def _is_number(self, cell: object, where: str) -> None:
        number = whole(cell, where, 1, len(self.terms))
        known = self._numeric.get(number)
        if known is None:
            known = self._numeric[number] = decode(self.terms[number - 1]).kind in _NUMERIC
        if not known:
            refuse(where, "a sum is not a number")

    def _term(self, cell: int, where: str) -> Term | None:
        self.row((cell,), where)
        return self.terms[cell - 1] if cell > 0 else None


def _is_plain(term: Term) -> bool:
    return isinstance(term, ox.Literal) and term.language is None and term.datatype == _STRING


def cell_of(register: Register, number: int, terms: Terms) -> Cell:
    """The cell for a register's number in a run."""
    if register.is_number:
        return number
    if register.kind != "aggregate":
        return terms(number)
    if number in (0, FAILED) or (register.function == "COUNT" and not _has_values(register)):
        return _one_of(register, number, terms)
    text = terms.decode(number)
    if text is None:
        return GONE
    if not _has_values(register):
        return _one_of(register, number, terms)
    number, *values = _unpacked(text)
    state = _one_of(register, number, terms)
    cells = [state, *map(terms, values)]
    return GONE if GONE in cells else cells


def number_of(register: Register, cell: Cell, numbers: Numbers) -> int:
    """The register's number in another run for a cell."""
    if register.is_number:
        return cast(int, cell)
    if register.kind == "aggregate" and _has_values(register) and isinstance(cell, list):
        first, *values = cell
        parts = (_one_number(register, first, numbers), *map(numbers, values))
        return numbers.hold(_packed(*parts))
    return _one_number(register, cell, numbers)


def _has_values(register: Register) -> bool:
    """Whether the state of an aggregate includes its distinct values."""
    return register.distinct and heeds_distinct(register.function)


def _one_of(register: Register, number: int, terms: Terms) -> Cell:
    """The cell of an aggregate's state, without its distinct values."""
    if register.function == "COUNT":
        return number
    if register.function == "AVG" and number not in (0, FAILED):
        total, count = _unpacked(terms.decode(number))
        cell = terms(total)
        return GONE if cell == GONE else [cell, count]
    return terms(number)


def _one_number(register: Register, cell: Cell, numbers: Numbers) -> int:
    if isinstance(cell, list):
        total, count = cell
        return numbers.hold(_packed(numbers(total), count))
    return cell if register.function == "COUNT" else numbers(cell)


def _packed(*numbers: int) -> ox.Literal:
    return ox.Literal("".join(f"{number:0{_DIGITS}x}" for number in numbers))


def _unpacked(text: Term | None) -> list[int]:
    assert isinstance(text, ox.Literal)
    return [
        int(text.value[place : place + _DIGITS], 16) for place in range(0, len(text.value), _DIGITS)
    ]
