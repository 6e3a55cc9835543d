"""The state of a compiled automaton ↔ that of an `AutomatonRun`.

How it is saved, resumed, counted and explained: all of which know the Python form only.
Shared structure stays shared; what the window has passed over is left out.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any, cast

from spaseq.engine.native_run import NativeRun
from spaseq.nfa.group import Group, PlaceState
from spaseq.nfa.native import closing_registers, operator_of
from spaseq.nfa.run import AutomatonRun
from spaseq.nfa.strictness import keep_contiguous
from spaseq.nfa.tecs import Accepted, Chain, Key, Node, Path, Step, Waiting, chained, paths
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.event import DATE_TIME


def snapshot(native: NativeRun, run: AutomatonRun) -> AutomatonRun:
    """Fill a fresh run in Python; changing one leaves the other as it is."""
    core, parts = native.core, native.parts
    now, bound, start, micros, times = parts.clock()
    if now >= 0:
        inside = [[instant, time] for instant, time in times]
        bounds = [[instant, bound] for instant, _ in times]
        total = sum(events for _, events in times) if core.counted else 0
        run.clock.restore([now, bound, start, micros, inside, total, bounds])
    reading = _Reading(native, run)
    for place, values, union, taken in parts.waiting():
        env = reading.environment(place, values)
        group = run.places[place].group(env)
        group.chain = reading.chain(union)
        group.oldest = min((reading.nodes[node].last for node in parts.members(union)), default=0)
        if taken:
            run.touched[id(group)] = place, group
    run.forbidden = core.forbidden
    for awaited in parts.awaited():
        if awaited is None:
            run.forbidden += 1
            continue
        place, values, start, labels = awaited
        reading.wait(place, values, start, tuple(map(reading.step, labels)))
    for place, values, node in parts.pended():
        if place >= len(run.places):
            for start, steps in paths(reading.node(node), bound):
                reading.wait(place, values, start, steps)
            continue
        env = reading.environment(place, values)
        kept = tuple(env[number] for number in run.places[place].place.live)
        run.pending.setdefault((place, kept), (env, []))[1].append(reading.node(node))
    run.waited = max(run.waited, core.waited)
    if core.skipped:
        run.skipped[()] = core.skipped
    if core.partitions is not None:
        for numbers, before, last, skipped in core.partitions.known():
            key = tuple(map(parts.term, numbers))
            run.contiguity.instants[key] = [i for i in (before, last) if i >= bound]
            if skipped > bound:
                run.skipped[key] = skipped
    for address in parts.completed():
        end = first = reading.node(address)
        while first.before is not None:
            first = first.before.node
        run.accepted.append(Accepted(end, native.key_of(first.step)))
    _count(native, run)
    return run


def _count(native: NativeRun, run: AutomatonRun) -> None:
    for number, state in enumerate(run.places):
        for name, value in native.core.counters(number).items():
            setattr(state, name, value)
    for occurrence, acceptor in enumerate(run.acceptors):
        acceptor.disagreed = native.core.disagreed(occurrence)
        acceptor.untrue = native.step.untrue_counts(occurrence)


def adopt(native: NativeRun, run: AutomatonRun, opened: bool) -> None:
    """Go on from the state of a run in Python; `opened`: in the midst of an instant."""
    clock, parts = run.clock, native.parts
    if clock.now >= 0:
        inside = cast(Sequence[Sequence[int]], clock.state()[4])
        assert clock.micros is not None
        start = clock.timestamp_start
        parts.set_clock(clock.now, clock.bound, start, clock.micros, inside)
    native.core.skipped = run.skipped.get((), 0)
    writing = _Writing(native)
    _adopt_partitions(native, run, writing)
    if run.plan.emit == "STRICT":
        keep_contiguous(run)
    for state in run.places:
        if state.place.start:
            continue
        strict = operator_of(run.plan, state.place) == ","
        for group in state.groups.values():
            # There, a `,` place keeps what it has passed over until the timestamp closes.
            key = run.registers.key(group.env)
            passed = run.contiguity.before(key, clock.now + (not opened)) if strict else 0
            # There, the rows of a guard are kept until somebody comes whom they may forbid.
            since = max(passed, _seen(run, state, group, group.oldest, clock.now + (not opened)))
            nodes = writing.union(group.chain, clock.bound, since)
            taken = id(group) in run.touched
            if opened:
                taken |= _seen(run, state, group, clock.now - 1, clock.now + 1) >= 0
            values = writing.values(state.place.live, group.env)
            parts.put_waiting(state.number, values, nodes, taken, False)
    for _, _, waiting in run.waiting:
        env = waiting.env
        # Here, what a guard has seen ends those that wait when it sees it.
        if any(
            run.guards.latest(guard, env, env, None, waiting.last, clock.now + 1) >= 0
            for guard in waiting.guards
        ):
            run.forbidden += 1
            continue
        place, live = native.closing_place(waiting.guards)
        values, nodes = writing.values(live, env), [writing.path(waiting.path)]
        parts.put_waiting(place, values, nodes, False, opened and waiting.last == clock.now)
    native.core.waited, native.core.forbidden = run.waited, run.forbidden
    for (place, _), (env, members) in run.pending.items():
        values = writing.values(run.places[place].place.live, env)
        nodes = [writing.node(node) for node in members]
        parts.put_waiting(place, values, nodes, False, True)
    for accepted in run.accepted:
        parts.put_complete(writing.node(accepted.node))


def _adopt_partitions(native: NativeRun, run: AutomatonRun, writing: _Writing) -> None:
    partitions = native.core.partitions
    if partitions is None or not (partitions.tracked or partitions.apart):
        return
    for key, instants in run.contiguity.instants.items():
        before, last = [-1, -1, *instants][-2:]
        partitions.put(writing.key(key), before, last, 0)
    for key, skipped in run.skipped.items():
        partitions.put(writing.key(key), -1, -1, skipped)


def _seen(run: AutomatonRun, state: PlaceState, group: Group, low: int, high: int) -> int:
    """The latest instant in between at which a guard decided on sight ended the group; or -1."""
    env = group.env
    return max(
        (
            run.guards.latest(sighting.guard, env, env, None, low, high)
            for sighting in state.place.sightings
        ),
        default=-1,
    )


def _counted(native: NativeRun, register: int) -> bool:
    """Whether a register holds a count of iterations, and no term."""
    return native.compiled.plan.registers[register].kind == "iterations"


class _Reading:
    """Parts of the core's state as Python objects, shared as they are shared there."""

    def __init__(self, native: NativeRun, run: AutomatonRun):
        self._native = native
        self._run = run
        self._steps: dict[int, Step] = {}
        self._chains: dict[int, Chain | None] = {}
        self.nodes: dict[int, Node] = {}

    def environment(self, place: int, values: Sequence[int]) -> list[Any]:
        places = self._run.places
        if place < len(places):
            live = places[place].place.live
        else:
            live = closing_registers(self._run.automaton, self._native.closing[place - len(places)])
        env = self._run.registers.blank()
        for register, value in zip(live, values, strict=True):
            counted = _counted(self._native, register)
            env[register] = value if counted else self._native.parts.term(value)
        return env

    def wait(self, place: int, values: Sequence[int], start: int, steps: tuple[Step, ...]) -> None:
        """A match waits for its window to close."""
        run, guards = self._run, self._native.closing[place - len(self._run.places)].guards
        first, last = steps[0].witnesses[0], steps[-1].witnesses[0]
        path = Path(start, self._native.key_of(steps[0]), steps)
        waiting = Waiting(path, self.environment(place, values), guards, last.instant)
        run.waited += 1
        closing = run.clock.closing(first.event.time.micros)
        heapq.heappush(run.waiting, (closing, run.waited, waiting))

    def step(self, label: int) -> Step:
        known = self._steps.get(label)
        if known is None:
            known = self._steps[label] = self._native.step_of(label)
        return known

    def chain(self, union: int) -> Chain | None:
        """A union, and all below it, deepest first and without recursion."""
        todo = [union]
        while todo:
            top = todo[-1]
            if top in self._chains:
                todo.pop()
                continue
            members = self._native.parts.members(top)
            below = [before for m in members if (before := self._native.parts.node(m)[1])]
            missing = [before for before in below if before not in self._chains]
            if missing:
                todo += missing
                continue
            self._chains[top] = chained([self._node(member) for member in members])
            todo.pop()
        return self._chains[union]

    def node(self, address: int) -> Node:
        before = self._native.parts.node(address)[1]
        if before:
            self.chain(before)
        return self._node(address)

    def _node(self, address: int) -> Node:
        known = self.nodes.get(address)
        if known is None:
            label, before, latest = self._native.parts.node(address)
            step = self.step(label)
            chain = self._chains[before] if before else None
            known = Node(step, chain, step.witnesses[0].instant, latest)
            self.nodes[address] = known
        return known


class _Writing:
    """Python objects as parts of the core's state."""

    def __init__(self, native: NativeRun):
        self._native = native
        self._batch = EventBatch(native.matchers.dictionary)
        self._nodes: dict[int, int] = {}
        self._unions: dict[int, int] = {}
        self._labels: dict[int, int] = {}
        places = native.compiled.automaton.places
        self._edges = {
            edge: (number, position)
            for number, place in enumerate(places)
            for position, edge in enumerate(place.edges)
        }

    def _number(self, term: Any) -> int:
        if term is None:
            return 0
        number = self._batch.number(term)
        return self._native.matchers.window.hold(self._batch, number)

    def key(self, key: Key) -> list[int]:
        """The terms of a partition."""
        return list(map(self._number, key))

    def values(self, live: Sequence[int], env: Sequence[Any]) -> list[int]:
        return [
            env[register] if _counted(self._native, register) else self._number(env[register])
            for register in live
        ]

    def union(self, chain: Chain | None, bound: int, since: int) -> list[int]:
        """The members of a group whose last event came at the instant `since` or later."""
        members = reversed(list(_members(chain, bound)))
        return [self.node(node) for node in members if node.last >= since]

    def node(self, top: Node) -> int:
        """A node and all below it, deepest first and without recursion."""
        bound = self._native.core.bound
        todo = [top]
        while todo:
            node = todo[-1]
            if id(node) in self._nodes:
                todo.pop()
                continue
            missing = [m for m in _members(node.before, bound) if id(m) not in self._nodes]
            if missing:
                todo += missing
                continue
            union = 0
            if node.before is not None:
                union = self._unions.get(id(node.before), 0)
                if not union:
                    members = reversed(list(_members(node.before, bound)))
                    union = self._native.parts.put_union([self._nodes[id(m)] for m in members])
                    self._unions[id(node.before)] = union
            self._nodes[id(node)] = self._native.parts.put_node(
                self._label(node.step), union, node.latest
            )
            todo.pop()
        return self._nodes[id(top)]

    def path(self, path: Path) -> int:
        """The last node of one match."""
        node = 0
        for step in path.steps:
            union = self._native.parts.put_union([node]) if node else 0
            node = self._native.parts.put_node(self._label(step), union, path.start)
        return node

    def _label(self, step: Step) -> int:
        known = self._labels.get(id(step))
        if known is None:
            (witness,) = step.witnesses
            event = witness.event
            file, _, line = event.origin.rpartition(":")
            dated = event.time.domain == DATE_TIME
            known = self._labels[id(step)] = self._native.parts.put_label(
                *self._edges[step.edge],
                witness.instant,
                event.time.micros,
                dated,
                int(line) if line.isdigit() else 0,
                self._native.streams[event.stream],
                self._native.file_number(file),
                event.ordinal,
                self._number(event.name),
                0 if dated else self._number(event.time.term),
                list(map(self._number, witness.row)),
            )
        return known


def _members(chain: Chain | None, bound: int) -> Iterator[Node]:
    while chain is not None and chain.latest >= bound:
        if chain.node.latest >= bound:
            yield chain.node
        chain = chain.rest
