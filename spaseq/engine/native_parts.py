"""The parts of a compiled automaton's state as Python objects, and back.

Shared structure stays shared: a part is known by its address in the core, an object by its
identity. Nothing recurses, however long the partial matches are.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from spaseq.engine.native_registers import cell_of, number_of
from spaseq.engine.native_run import NativeRun
from spaseq.nfa.native import closing_registers
from spaseq.nfa.run import AutomatonRun
from spaseq.nfa.tecs import Chain, Key, Node, Path, Row, Step, Waiting, chained, nodes
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.event import DATE_TIME, Event


class Reading:
    """Parts of the core's state as Python objects, shared as they are shared there."""

    def __init__(self, native: NativeRun, run: AutomatonRun):
        self._native = native
        self._run = run
        self._steps: dict[tuple[int, ...], Step] = {}
        self._chains: dict[int, Chain | None] = {}
        self.nodes: dict[int, Node] = {}

    def live(self, place: int) -> Sequence[int]:
        """The registers that are remembered in a place."""
        places = self._run.places
        if place < len(places):
            return places[place].place.live
        return closing_registers(
            self._run.plan, self._run.automaton, self._native.closing[place - len(places)]
        )

    def environment(self, live: Sequence[int], values: Sequence[int]) -> list[Any]:
        """`values` are those of some registers; more may follow."""
        env = self._run.registers.blank()
        registers, kept = self._run.registers.registers, self._native.kept_registers
        for register, value in zip(live, values, strict=False):
            if register in kept:
                env[register] = cell_of(registers[register], value, self._native.parts.term)
        return env

    def wait(self, place: int, values: Sequence[int], start: int, steps: tuple[Step, ...]) -> None:
        """A match waits for its window to close."""
        run, guards = self._run, self._native.closing[place - len(self._run.places)].guards
        first = min(w.event.time.micros for w in steps[0].witnesses)
        last = max(witness.instant for witness in steps[-1].witnesses)
        path = Path(start, self._native.key_of(steps[0]), steps)
        waiting = Waiting(path, self.environment(self.live(place), values), guards, last)
        run.waited += 1
        closing = run.clock.closing(first)
        heapq.heappush(run.waiting, (closing, run.waited, waiting))

    def step(self, labels: tuple[int, ...]) -> Step:
        known = self._steps.get(labels)
        if known is None:
            known = self._steps[labels] = self._native.step_of(labels)
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
            labels, before, latest = self._native.parts.node(address)
            step = self.step(labels)
            chain = self._chains[before] if before else None
            known = Node(step, chain, max(w.instant for w in step.witnesses), latest)
            self.nodes[address] = known
        return known


class Writing:
    """Python objects as parts of the core's state."""

    def __init__(self, native: NativeRun):
        self._native = native
        self._batch = EventBatch(native.matchers.dictionary)
        self._nodes: dict[int, int] = {}
        self._unions: dict[int, int] = {}
        self._labels: dict[int, list[int]] = {}
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
        return self._native.step.window.hold(self._batch, number)

    def key(self, key: Key) -> list[int]:
        """The terms of a partition."""
        return list(map(self._number, key))

    def values(self, live: Sequence[int], env: Sequence[Any]) -> list[int]:
        registers, kept = self._native.compiled.plan.registers, self._native.kept_registers
        return [
            number_of(registers[register], env[register], self._number) if register in kept else 0
            for register in live
        ]

    def union(self, chain: Chain | None, bound: int, since: int) -> list[int]:
        """The members of a group whose last event came at the instant `since` or later."""
        members = reversed(list(nodes(chain, bound)))
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
            missing = [m for m in nodes(node.before, bound) if id(m) not in self._nodes]
            if missing:
                todo += missing
                continue
            union = 0
            if node.before is not None:
                union = self._unions.get(id(node.before), 0)
                if not union:
                    members = reversed(list(nodes(node.before, bound)))
                    union = self._native.parts.put_union([self._nodes[id(m)] for m in members])
                    self._unions[id(node.before)] = union
            self._nodes[id(node)] = self._put(node.step, union, node.latest)
            todo.pop()
        return self._nodes[id(top)]

    def path(self, path: Path) -> int:
        """The last node of one match."""
        node = 0
        for step in path.steps:
            union = self._native.parts.put_union([node]) if node else 0
            node = self._put(step, union, path.start)
        return node

    def begun(self, step: Step, start: int) -> int:
        """The node of a first step."""
        return self._put(step, 0, start)

    def _put(self, step: Step, union: int, latest: int) -> int:
        """A step on top of a union: a node for each of its events."""
        node = 0
        for label in self.step(step):
            below = self._native.parts.put_union([node]) if node else union
            node = self._native.parts.put_node(label, below, latest)
        return node

    def step(self, step: Step) -> list[int]:
        """The labels of a step, by instant."""
        known = self._labels.get(id(step))
        if known is None:
            edge = self._edges[step.edge]
            occurrences = self._native.compiled.automaton.atoms[step.edge.atom].occurrences
            witnesses = sorted(step.witnesses, key=lambda witness: witness.instant)
            known = self._labels[id(step)] = [
                self.label(
                    *edge,
                    w.instant,
                    w.event,
                    w.row,
                    occurrences.index(w.occurrence),
                    len(witnesses),
                )
                for w in witnesses
            ]
        return known

    def label(
        self,
        place: int,
        position: int,
        instant: int,
        event: Event,
        row: Row,
        part: int = 0,
        parts: int = 1,
    ) -> int:
        """A row of an event."""
        file, _, line = event.origin.rpartition(":")
        dated = event.time.domain == DATE_TIME
        return self._native.parts.put_label(
            place,
            position,
            instant,
            event.time.micros,
            dated,
            int(line) if line.isdigit() else 0,
            self._native.streams[event.stream],
            self._native.file_number(file),
            event.ordinal,
            self._number(event.name),
            0 if dated else self._number(event.time.term),
            list(map(self._number, row)),
            part,
            parts,
        )
