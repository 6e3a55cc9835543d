"""The state of an `AutomatonRun` ↔ JSON-able data.

Shared structure stays shared: steps, nodes and chains are written once each, in an order
in which every reference points backwards, so that reading needs no recursion. Partial
matches that the window has passed over are left out.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from spaseq.nfa.automaton import Edge
from spaseq.nfa.buffer import Entry
from spaseq.nfa.candidates import Candidate
from spaseq.nfa.registers import Environment
from spaseq.nfa.run import AutomatonRun
from spaseq.nfa.tecs import Accepted, Chain, Node, Path, Step, Waiting, Witnessed
from spaseq.rdf.codec import Reader, Writer

Cells = Callable[[Any], Any]


class StateWriter:
    """Writes one run; `cell` turns what a register holds into plain values."""

    def __init__(self, run: AutomatonRun, writer: Writer, cell: Cells):
        self._run = run
        self._writer = writer
        self._cell = cell
        self._edges: dict[Edge, list[int]] = {}
        for number, place in enumerate(run.automaton.places):
            for position, edge in enumerate(place.edges):
                self._edges.setdefault(edge, [number, position])
        self._steps: list[Any] = []
        self._graph: list[list[Any]] = []
        """Nodes [step, before, last, latest] and chains [node, rest], references backwards."""
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []

    def write(self) -> dict[str, Any]:
        run = self._run
        run.sweep()
        groups = [
            [
                state.number,
                self._values(group.values),
                self._chain(group.chain),
                group.oldest,
                list(group.taken),
                group.taken_first,
                id(group) in run.touched,
            ]
            for state in run.places
            if not state.place.start
            for group in state.groups.values()
        ]
        return {
            "clock": run.clock.state(),
            "chained": run.chained,
            "buffers": [[self._entry(e) for e in buffer.kept()] for buffer in run.buffers],
            "contiguity": [
                [self._values(key), instants] for key, instants in run.contiguity.instants.items()
            ],
            "groups": groups,
            "pending": [
                [place, self._env(env), [self._node(node) for node in members]]
                for (place, _), (env, members) in run.pending.items()
            ],
            "accepted": [[self._node(a.node), self._values(a.key)] for a in run.accepted],
            "waiting": [
                [closing, number, self._waiting(waiting)]
                for closing, number, waiting in run.waiting
            ],
            "waited": run.waited,
            "skipped": [[self._values(key), bound] for key, bound in run.skipped.items()],
            "beginnings": [
                [
                    state.number,
                    self._edge(c.edge),
                    self._env(c.env),
                    self._step(c.step),
                    c.first,
                    c.last,
                ]
                for state, _, c in run.beginnings
            ],
            "steps": self._steps,
            "graph": self._graph,
        }

    def _edge(self, edge: Edge) -> list[int]:
        return self._edges[edge]

    def _values(self, values: tuple[Any, ...]) -> list[Any]:
        return [self._writer.value(self._cell(value)) for value in values]

    def _env(self, env: Environment) -> list[Any]:
        return self._values(tuple(env[: len(self._run.registers.registers)]))

    def _entry(self, entry: Entry) -> list[Any]:
        return [
            entry.instant,
            self._writer.event(entry.event),
            [self._values(row) for row in entry.rows],
        ]

    def _waiting(self, waiting: Waiting) -> list[Any]:
        path = waiting.path
        return [
            path.start,
            self._values(path.key),
            [self._step(step) for step in path.steps],
            self._env(waiting.env),
            list(waiting.guards),
            waiting.last,
        ]

    def _step(self, step: Step) -> int:
        known = self._numbers.get(id(step))
        if known is None:
            witnesses = [
                [
                    w.occurrence,
                    self._writer.event(w.event, facts=False),
                    self._values(w.row),
                    w.instant,
                ]
                for w in step.witnesses
            ]
            known = self._new(step, self._steps, [self._edge(step.edge), witnesses])
        return known

    def _node(self, node: Node) -> int:
        self._write(node)
        return self._numbers[id(node)]

    def _chain(self, chain: Chain | None) -> int | None:
        if chain is None:
            return None
        self._write(chain)
        return self._numbers[id(chain)]

    def _write(self, top: Node | Chain) -> None:
        """Write a node or chain and everything under it, deepest first, without recursion."""
        stack: list[tuple[Node | Chain, bool]] = [(top, False)]
        while stack:
            item, ready = stack.pop()
            if id(item) in self._numbers:
                continue
            parts = self._parts(item)
            if not ready:
                stack.append((item, True))
                stack += [(part, False) for part in parts]
                continue
            numbers = [self._numbers[id(part)] for part in parts]
            if isinstance(item, Chain):
                self._new(item, self._graph, [numbers[0], numbers[1] if numbers[1:] else None])
            else:
                before = numbers[0] if numbers else None
                row = [self._step(item.step), before, item.last, item.latest]
                self._new(item, self._graph, row)

    def _parts(self, item: Node | Chain) -> list[Node | Chain]:
        if isinstance(item, Node):
            return [] if item.before is None else [item.before]
        rest = item.rest
        alive = rest is not None and rest.latest >= self._run.clock.bound
        return [item.node, rest] if rest is not None and alive else [item.node]

    def _new(self, item: object, table: list[Any], row: list[Any]) -> int:
        number = len(table)
        self._numbers[id(item)] = number
        self._kept.append(item)
        table.append(row)
        return number


class StateReader:
    """Puts what a `StateWriter` wrote into a fresh run of the same automaton."""

    def __init__(self, run: AutomatonRun, reader: Reader, cell: Cells):
        self._run = run
        self._reader = reader
        self._cell = cell
        self._steps: list[Step] = []
        self._graph: list[Node | Chain] = []

    def read(self, data: dict[str, Any]) -> None:
        run = self._run
        run.clock.restore(data["clock"])
        run.chained = data.get("chained")
        for buffer, entries in zip(run.buffers, data["buffers"], strict=True):
            for entry in entries:
                buffer.append(self._entry(entry))
        run.contiguity.instants = {
            self._values(key): list(instants) for key, instants in data["contiguity"]
        }
        self._steps = [
            Step(self._edge(edge), tuple(self._witness(w) for w in witnesses))
            for edge, witnesses in data["steps"]
        ]
        self._read_graph(data["graph"])
        for row in data["groups"]:
            self._read_group(row)
        for place, cells, members in data["pending"]:
            env = self._env(cells)
            values = tuple(env[n] for n in run.places[place].place.live)
            run.pending[(place, values)] = (env, [self._node(number) for number in members])
        run.accepted = [Accepted(self._node(n), self._values(key)) for n, key in data["accepted"]]
        run.waiting = [
            (closing, number, self._waiting(waiting))
            for closing, number, waiting in data["waiting"]
        ]
        heapq.heapify(run.waiting)
        run.waited = data["waited"]
        run.skipped = {self._values(key): bound for key, bound in data["skipped"]}
        for place, edge, cells, step, first, last in data["beginnings"]:
            state = run.places[place]
            candidate = Candidate(
                self._edge(edge), self._env(cells), self._steps[step], first, last, ()
            )
            run.beginnings.append((state, state.groups[()], candidate))

    def _read_graph(self, rows: list[list[Any]]) -> None:
        for row in rows:
            if len(row) == 2:
                node, rest = row
                self._graph.append(Chain(self._node(node), self._chain(rest)))
            else:
                step, before, last, latest = row
                self._graph.append(Node(self._steps[step], self._chain(before), last, latest))

    def _read_group(self, row: list[Any]) -> None:
        place, values, chain, oldest, taken, taken_first, touched = row
        state = self._run.places[place]
        env = self._run.registers.blank()
        for number, value in zip(state.place.live, self._values(values), strict=True):
            env[number] = value
        group = state.group(env)
        group.chain, group.oldest = self._chain(chain), oldest
        group.taken, group.taken_first = [tuple(took) for took in taken], taken_first
        if touched:
            self._run.touched[id(group)] = (place, group)

    def _edge(self, place_and_position: list[int]) -> Edge:
        place, position = place_and_position
        return self._run.automaton.places[place].edges[position]

    def _values(self, cells: list[Any]) -> tuple[Any, ...]:
        return tuple(self._cell(self._reader.value(cell)) for cell in cells)

    def _env(self, cells: list[Any]) -> Environment:
        env = self._run.registers.blank()
        env[: len(cells)] = self._values(cells)
        return env

    def _entry(self, row: list[Any]) -> Entry:
        instant, event, rows = row
        return Entry(instant, self._reader.event(event), tuple(map(self._values, rows)))

    def _witness(self, row: list[Any]) -> Witnessed:
        occurrence, event, values, instant = row
        return Witnessed(occurrence, self._reader.event(event), self._values(values), instant)

    def _waiting(self, row: list[Any]) -> Waiting:
        start, key, steps, cells, guards, last = row
        path = Path(start, self._values(key), tuple(self._steps[step] for step in steps))
        return Waiting(path, self._env(cells), tuple(guards), last)

    def _node(self, number: int) -> Node:
        node = self._graph[number]
        assert isinstance(node, Node)
        return node

    def _chain(self, number: int | None) -> Chain | None:
        if number is None:
            return None
        chain = self._graph[number]
        assert isinstance(chain, Chain)
        return chain
