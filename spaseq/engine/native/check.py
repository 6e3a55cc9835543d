"""Validation of plain data as the state of an automaton (`spaseq.nfa.state`).

The core uses positions, addresses and row widths without checks. Validation therefore compares each
of them with the automaton and with the rest of the state. An accepted state can lead to matches of
no stream, but never to undefined behaviour of the core.

Cost: linear in the state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from spaseq.engine.native.graph_check import GraphCheck
from spaseq.engine.native.query_run import NativeRun
from spaseq.engine.native.snapshot import CellCheck, LiveRegisters
from spaseq.nfa.automaton import ACCEPT
from spaseq.nfa.native.conjunction_tables import DATED
from spaseq.nfa.state import (
    AutomatonState,
    AwaitedState,
    Dates,
    GroupState,
    NodeAt,
    UnionState,
)
from spaseq.nfa.wiring import fragment_places
from spaseq.plan.floors import number_of
from spaseq.plan.logical import Register
from spaseq.rdf.checked import listed, refuse, rising, whole, wholes

MOST_EVENTS = 2**60
"""More than any run has: the core doubles such numbers in 64 bits."""

_WEIGHTS = 9
_WEIGHT_MAX = 2.0**52
"""The greatest weight; all weights up to it are exact as integers."""


def check(native: NativeRun, state: AutomatonState, *, dated: bool, opened: bool) -> None:
    """Refuse a state that no run of this automaton can have saved.

    Args:
        native: The automaton.
        state: The state.
        dated: Whether timestamps are dates.
        opened: Whether an instant is open.

    Raises:
        StateError: with the invalid part.
    """
    _Checking(native, state, dated).all(opened)


class _Checking:
    def __init__(self, native: NativeRun, state: AutomatonState, dated: bool):
        self.native, self.state, self.tables = native, state, native.tables
        self.plan, self.automaton = native.compiled.plan, native.compiled.automaton
        self.now, self.bound = state.clock.now, state.clock.bound
        self.reach = state.clock.bounds[0][0] if state.clock.bounds else self.bound
        if self.tables.lookback >= 0 and state.clock.times:
            self.reach = state.clock.times[0][0]
        self.registers = LiveRegisters(native)
        self.cells = CellCheck(state.terms)
        self.graph = GraphCheck(native, state, self.cells, dated)
        self.steps = {place for place, _ in self.tables.chain.steps}
        """The places of a chain that can be joined lazily."""
        self._waiting = {
            number
            for number, (operator, *_) in enumerate(self.tables.places)
            if operator is not None
        } - fragment_places(self.automaton)
        self._closing = range(len(self.automaton.places), len(self.tables.places))

    def all(self, opened: bool) -> None:
        state = self.state
        self.clock()
        self.times_of_labels()
        self.graph.all()
        for number, group in enumerate(state.groups):
            self.group(group, f"groups[{number}]")
        for number, waiting in enumerate(state.pending):
            self.pending(waiting, f"pending[{number}]")
        for number, begun in enumerate(state.begun):
            self.begun(begun, f"begun[{number}]")
        for number, match in enumerate(state.awaited):
            self.awaited(match, f"awaited[{number}]")
        for node in state.complete:
            steps = self.graph.ending(node, "complete")
            if steps and not any(self.graph.links(step, ACCEPT) for step in steps):
                refuse("complete", "a node ends no match")
        self.kept()
        self.recalled()
        self.partitions()
        self.ended()
        self.chained()
        taken = any(group.taken for group in state.groups)
        if not opened and (state.pending or state.begun or taken):
            refuse("pending", "something comes to wait, but no instant is open")

    # ------------------------------------------------------------------ time

    def clock(self) -> None:
        now, bound, start, _, times, bounds, clock = self.state.clock
        state, tables = self.state, self.tables
        if state.forbidden + len(state.awaited) > state.waited:
            refuse("waited", "more matches wait, or were forbidden, than ever waited")
        if now < 0:
            rows = (state.labels, state.graph, state.groups, state.partitions, state.recalled)
            if any(rows) or times or bounds or clock or bound or start or state.skipped:
                refuse("clock", "something is there before the first instant")
            return
        # A deadline after the last event may leave the window empty.
        most = now + (tables.counted or bool(tables.deadlines))
        whole(bound, "clock", 0, most)
        whole(start, "clock", 0, now)
        whole(state.skipped, "skipped", 0, now + 1)
        self.covers(clock, self.reach if tables.clocked else now + 1)
        rising((micros for _, micros in clock), "clock", strictly=False)
        if tables.endless:
            if times or bounds or bound:
                refuse("clock", "there is a time in a window, but no window")
            return
        whole(self.reach, "clock", 0, bound)
        first = bound if tables.counted and tables.lookback < 0 else self.reach
        self.covers(times, first)
        if tables.counted:
            wholes([events for _, events in times], "clock", 0, MOST_EVENTS)
            whole(sum(events for _, events in times), "clock", 0, MOST_EVENTS)
            inside = sum(events for instant, events in times if instant >= bound)
            whole(inside, "clock", 0, tables.size)
        else:
            rising((micros for _, micros in times), "clock", strictly=False)
            present = self.state.clock.micros
            if times and (times[-1][1], times[max(start - first, 0)][1]) != (present, present):
                refuse("clock", "the open timestamp is not the last one")
        if bounds and tables.windows < 2:
            refuse("clock", "there are bounds that no guard looks back to")
        if bounds:
            self.covers(bounds, self.reach)
            rising((least for _, least in bounds), "clock", strictly=False)
            for instant, least in bounds:
                whole(least, "clock", self.reach, instant + tables.counted)

    def covers(self, pairs: Sequence[Sequence[int]], first: int) -> None:
        """Check that the pairs list each instant from `first` to the current one once."""
        if len(pairs) != max(self.now + 1 - first, 0) or any(
            instant != number for number, (instant, _) in enumerate(pairs, first)
        ):
            refuse("clock", f"the instants are not those from {first} to {self.now}")

    def times_of_labels(self) -> None:
        """Check that each instant has one time, and that times do not decrease."""
        pairs = () if self.tables.counted else self.state.clock.times
        known = {pair[0]: pair[1] for pair in pairs}
        for label in self.state.labels:
            if self.graph.is_deadline(label):
                continue
            if known.setdefault(label.instant, label.micros) != label.micros:
                refuse("labels", f"instant {label.instant} has two times")
        rising((known[instant] for instant in sorted(known)), "labels", strictly=False)
        if known and max(known.values()) > self.state.clock.micros:
            refuse("labels", "an event comes after the present time")

    # ------------------------------------------------------------------ groups and waiting matches

    def place(self, place: int, where: str) -> None:
        if place not in self._waiting:
            refuse(where, f"nothing waits in place {place}")

    def values(self, place: int, values: Sequence[Any], where: str) -> None:
        if self.registers.terms(place) != len(values) or not self.cells.are_terms(values):
            self.all_cells(self.registers.of(place), values, where)

    def all_cells(self, registers: Sequence[Register], values: Sequence[Any], where: str) -> None:
        if len(values) != len(registers):
            refuse(where, f"has {len(values)} registers, not {len(registers)}")
        for register, cell in zip(registers, values, strict=True):
            self.cells.register(register, cell, where)

    def members(self, number: Any, place: int, where: str) -> tuple[int, int, int]:
        """(greatest start, first and last instant) of the union of a group's members."""
        whole(number, where, 0, len(self.state.graph) - 1)
        if not isinstance(self.state.graph[number], UnionState):
            refuse(where, "refers to a node in place of a union")
        item = self.graph.items[number]
        if not item.steps or not all(self.graph.links(step, place) for step in item.steps):
            refuse(where, f"its members do not wait in place {place}")
        return item.latest, item.first, item.last

    def group(self, group: GroupState, where: str) -> None:
        self.place(group.place, where)
        if group.place in self._closing:
            refuse(where, "matches wait for their windows one by one")
        if group.place in self.steps and self.state.chained and self.state.chained[0]:
            refuse(where, "waits in a place of a chain that is joined lazily")
        self.values(group.place, group.values, where)
        self.members(group.members, group.place, where)
        self.floor(group, where)
        if bool(self.tables.search.manners[group.place] & DATED) != (group.dates is not None):
            refuse(where, "has its members by their instants, or lacks them")
        if group.dates is not None:
            self.dates(group.dates, group.place, where)

    def floor(self, group: GroupState, where: str) -> None:
        """Check the floor of a group, and the one that it has after the open instant."""
        known = self.tables.floors.get(group.place)
        if known is None:
            whole(group.floor, where, 0, 0)
            return
        position, _, most = known
        cells = [group.values[position], *([group.floor] if group.floor else ())]
        if not self.cells.are_terms(cells) or 0 in cells or (group.floor and not group.taken):
            refuse(where, "has no floor, or a second one before it is joined")
        numbers = [number_of(self.state.terms[cell - 1]) for cell in cells]
        if numbers != sorted(set(numbers)) or not 0 <= numbers[0] < most or numbers[-1] > most:
            refuse(where, f"has a floor that is not one of the {most} ranks")

    def dates(self, dates: Dates, place: int, where: str) -> None:
        # A state that was not read from a blob has tuples.
        *instants, stretches = listed(list(dates), where, 5)
        wholes(instants, where, -1, self.now)
        before = self.now
        for stretch in listed(stretches, where):
            last, latest, union = wholes(list(stretch), where, length=3)
            # One instant can have two stretches if it has passed a deadline since.
            if (latest, last, last) != self.members(union, place, where) or last > before:
                refuse(where, "a stretch is not of its instant, or out of order")
            before = last
        if not stretches:
            refuse(where, "has no stretch")

    def pending(self, waiting: NodeAt, where: str) -> None:
        self.place(waiting.place, where)
        self.values(waiting.place, waiting.values, where)
        self.graph.ending(waiting.node, where, waiting.place)

    def begun(self, begun: NodeAt, where: str) -> None:
        self.all_cells(self.plan.registers, begun.values, where)
        for step in self.graph.ending(begun.node, where):
            if step.place != begun.place or not self.automaton.places[step.place].start:
                refuse(where, "does not begin a match")

    def awaited(self, match: AwaitedState, where: str) -> None:
        if match.place not in self._closing:
            refuse(where, f"no match waits for its window in place {match.place}")
        self.values(match.place, match.values, where)
        whole(match.start, where, self.bound, self.now)
        labels = wholes(match.labels, where)
        step = self.graph.path(labels, match.start, where)
        if not self.graph.links(step, match.place):
            refuse(where, f"does not come to place {match.place}")
        if self.state.labels[labels[0]].instant != match.start:
            refuse(where, "starts at another instant than its first event")

    # ------------------------------------------------------------------ buffers

    def kept(self) -> None:
        last: dict[int, int] = {}
        recalled = {(instant, stream) for instant, stream, _ in self.state.recalled}
        looked = self.tables.search.kept
        chain = {self.plan.occurrences[number].gpm for _, number in self.tables.chain.steps[:-1]}
        for gpm, _, number in self.state.kept:
            where = "kept"
            whole(gpm, where, 0, len(self.plan.gpms) - 1)
            label = self.state.labels[whole(number, where, 0, len(self.state.labels) - 1)]
            plan = self.plan.gpms[gpm]
            if len(label.row) != len(plan.variables) or label.part or label.parts != 1:
                refuse(where, f"is not a row of {plan.name}")
            if looked[gpm] is None and gpm not in chain:
                refuse(where, f"nothing looks back at {plan.name}")
            if label.instant < last.get(gpm, 0):
                refuse(where, "rows are out of order")
            last[gpm] = label.instant
            if self.native.recalled[gpm] and (label.instant, label.stream) not in recalled:
                refuse(where, "the event of a row is missing")

    def recalled(self) -> None:
        for instant, stream, event in self.state.recalled:
            whole(instant, "recalled", 0, self.now)
            whole(stream, "recalled", 0, len(self.plan.streams) - 1)
            if event.stream != self.plan.streams[stream]:
                refuse("recalled", "an event is of another stream")
        rising((row[0] for row in self.state.recalled), "recalled", strictly=False)

    def partitions(self) -> None:
        if self.state.partitions and self.native.core.partitions is None:
            refuse("partitions", "the query has none")
        for key, instants, skipped in self.state.partitions:
            if len(key) != self.tables.width:
                refuse("partitions", f"a key does not have {self.tables.width} terms")
            self.cells.row(key, "partitions")
            rising(wholes(instants, "partitions", -1, self.now), "partitions")
            if len(instants) > 2 and not self.tables.recorded:
                refuse("partitions", "there are more instants than are kept")
            whole(skipped, "partitions", 0, self.now + 1)

    def ended(self) -> None:
        if self.state.ended and self.native.ended is None:
            refuse("ended", "the query has no SKIP TO")
        for key, first, end in self.state.ended:
            if len(key) != self.tables.width:
                refuse("ended", f"a key does not have {self.tables.width} terms")
            for cell in key:
                whole(cell, "ended", 0, len(self.state.terms))
            whole(end, "ended", whole(first, "ended", 0, self.now) + 1, self.now + 1)

    def chained(self) -> None:
        weights = self.state.chained
        if weights is None:
            return
        if len(weights) != _WEIGHTS or not self.steps or type(weights[0]) is not bool:
            refuse("chained", "is not how a chain of this query is joined")
        for weight in weights[1:7]:
            if not (math.isfinite(weight) and 0 <= weight <= _WEIGHT_MAX):
                refuse("chained", f"{weight} is not a weight")
        wholes(weights[7:], "chained", -1, max(self.now, 0))
