"""Validation of the tECS of a saved state: labels, nodes and unions are partial matches.

A node must be the result of an edge: on top of partial matches that wait in the edge's place, or at
a start. The nodes of a step of several events follow each other. Every walk from a node therefore
visits steps of the automaton and ends.

Invariants: an item refers to earlier items only. The number of nodes of a union is at most the
number of all items, so that the cost of a walk is bounded by its matches. Cost: linear in the
items.
"""

from __future__ import annotations

import pyoxigraph as ox

from spaseq.engine.native.query_run import NativeRun
from spaseq.engine.native.snapshot import CellCheck
from spaseq.nfa.automaton import ACCEPT, Atom, Edge
from spaseq.nfa.state import NOTHING, AutomatonState, LabelState, NodeState, UnionState
from spaseq.rdf.checked import GREATEST, LEAST, MOST, MOST_ORDINAL, refuse, whole

_MOST_PARTS = 255


class Step:
    """The step of a node; equal steps are equal objects."""

    __slots__ = ("edge", "parts", "place", "total", "whole")

    def __init__(self, place: int, edge: int, parts: frozenset[int], total: int):
        self.place = place
        self.edge = edge
        self.parts = parts
        """The parts of the node and of the earlier nodes of the step."""
        self.total = total
        """The number of events of the step."""
        self.whole = len(parts) == total
        """Whether the node ends the step."""


class Item:
    """The checked properties of a node or a union."""

    __slots__ = ("first", "last", "latest", "nodes", "steps")

    def __init__(self, steps: frozenset[Step], latest: int, first: int, last: int, nodes: int):
        self.steps = steps
        """The steps of its nodes; empty for a node that the window has passed."""
        self.latest = latest
        self.first, self.last = first, last
        """The least and the greatest instant of its nodes."""
        self.nodes = nodes


class GraphCheck:
    """Checks the labels and the graph of one state; `dated`: timestamps are dates."""

    def __init__(self, native: NativeRun, state: AutomatonState, cells: CellCheck, dated: bool):
        self.native, self.state, self.cells, self.dated = native, state, cells, dated
        self.plan, self.automaton = native.compiled.plan, native.compiled.automaton
        self.now, self.bound = state.clock.now, state.clock.bound
        self.items: list[Item] = []
        self._steps: dict[tuple[int, int, int, frozenset[int]], Step] = {}
        self._follows: dict[tuple[Step, int], bool] = {}
        self._places = len(self.automaton.places)
        self._counts: dict[tuple[int, int], int] = {}
        """(place, edge) → the number of its occurrences, of edges that labels were checked for."""
        self._widths: dict[tuple[int, int, int], int] = {}
        """(place, edge, part) → the length of a row."""

    def all(self) -> None:
        """Check all labels and items."""
        for number, label in enumerate(self.state.labels):
            if not self._is_valid(label):
                self._label(label, f"labels[{number}]")
        for number, item in enumerate(self.state.graph):
            self.items.append(self._item(item, number, f"graph[{number}]"))

    # ------------------------------------------------------------------ labels

    def _edge(self, place: int, position: int, where: str) -> Edge:
        whole(place, where, 0, self._places - 1)
        edges = self.automaton.places[place].edges
        return edges[whole(position, where, 0, len(edges) - 1)]

    def atom(self, label: LabelState) -> Atom:
        edge = self.automaton.places[label.place].edges[label.position]
        return self.automaton.atoms[edge.atom]

    def is_deadline(self, label: LabelState) -> bool:
        """Whether a label is a deadline, and no event."""
        return self.atom(label).kind == "deadline"

    def _is_valid(self, label: LabelState) -> bool:
        """Whether a quick check accepts a label, which implies that `_label` would accept it.

        The types of its fields have been checked.
        """
        place, position, instant, micros, dated, line, stream, file, ordinal = label[:9]
        name, stamp, part, parts, row = label[9:]
        terms = self.cells.terms
        count, most = self._counts.get((place, position), 0), len(terms)
        if not (
            0 <= part < count
            and 1 <= parts <= count
            and parts <= _MOST_PARTS
            and 0 <= instant <= self.now
            and LEAST <= micros <= GREATEST
            and dated == self.dated
            and 0 <= line <= MOST
            and 0 <= stream < len(self.plan.streams)
            and 0 <= file < len(self.state.files)
            and 0 <= ordinal <= MOST_ORDINAL
            and 0 <= name <= most
            and 0 <= stamp <= most
        ):
            return False
        for cell in row:
            if type(cell) is not int or not 0 <= cell <= most:
                return False
        if name and isinstance(terms[name - 1], ox.Literal):
            return False
        return not stamp or isinstance(terms[stamp - 1], ox.Literal)

    def _label(self, label: LabelState, where: str) -> None:
        state = self.state
        self._edge(label.place, label.position, where)
        whole(label.instant, where, 0, self.now)
        whole(label.micros, where, LEAST, GREATEST)
        if label.dated != self.dated:
            refuse(where, "has another kind of time than the run")
        whole(label.line, where)
        whole(label.stream, where, 0, len(self.plan.streams) - 1)
        whole(label.file, where, 0, len(state.files) - 1)
        whole(label.ordinal, where, 0, MOST_ORDINAL)
        if self.is_deadline(label):
            whole(label.part, where, 0, 1)
            whole(label.parts, where, 0, 0)
        else:
            whole(label.part, where, 0, len(self.atom(label).occurrences) - 1)
            whole(label.parts, where, 1, min(len(self.atom(label).occurrences), _MOST_PARTS))
        self.cells.name(label.name, where)
        self.cells.stamp(label.stamp, where)
        self.cells.row(label.row, where)
        self._counts[label.place, label.position] = len(self.atom(label).occurrences)

    def witness(self, number: int, where: str) -> LabelState:
        """Check a label that is part of a match."""
        label = self.state.labels[whole(number, where, 0, len(self.state.labels) - 1)]
        key = label.place, label.position, label.part
        if len(label.row) == self._widths.get(key):
            return label
        if self.is_deadline(label):
            if len(label.row) != len(self.plan.partition):
                refuse(where, "a deadline does not have the key of its partition")
            return label
        occurrence = self.plan.occurrences[self.atom(label).occurrences[label.part]]
        gpm = self.plan.gpms[occurrence.gpm]
        self._widths[key] = len(gpm.variables) + len(occurrence.assignments)
        if len(label.row) != self._widths[key]:
            refuse(where, f"a row of {gpm.name} has {len(label.row)} cells")
        return label

    # ------------------------------------------------------------------ nodes and unions

    def _item(self, item: NodeState | UnionState, number: int, where: str) -> Item:
        if isinstance(item, UnionState):
            return self._union(item, number, where)
        label = self.witness(item.label, where)
        whole(item.start, where, 0, label.instant)
        if item.start < self.bound:
            if item.before != NOTHING:
                refuse(where, "continues a partial match that the window has passed")
            return Item(frozenset(), item.start, label.instant, label.instant, 1)
        before = None
        if item.before != NOTHING:
            before = self._below(item.before, number, UnionState, where)
            if before.latest != item.start:
                refuse(where, "starts at another instant than its predecessor")
        elif item.start != label.instant:
            refuse(where, "starts at another instant than its only event's")
        step = self._step(label, before, where)
        return Item(frozenset((step,)), item.start, label.instant, label.instant, 1)

    def _union(self, item: UnionState, number: int, where: str) -> Item:
        parts = []
        if item.node != NOTHING:
            node = self._below(item.node, number, NodeState, where)
            if node.latest != item.latest:
                refuse(where, "starts at another instant than the node on top")
            if item.left == item.right == NOTHING:
                return node  # a union of one node has the properties of the node
            parts.append(node)
        parts += [
            self._below(side, number, UnionState, where)
            for side in (item.left, item.right)
            if side != NOTHING
        ]
        if not parts or max(part.latest for part in parts) != item.latest:
            refuse(where, "does not start when its latest part does")
        nodes = sum(part.nodes for part in parts)
        if nodes > len(self.state.graph):
            refuse(where, "has nodes more than once")
        return Item(
            frozenset().union(*(part.steps for part in parts)),
            item.latest,
            min(part.first for part in parts),
            max(part.last for part in parts),
            nodes,
        )

    def _below(
        self, number: int, above: int, kind: type[NodeState | UnionState], where: str
    ) -> Item:
        """Check a reference to an earlier item."""
        whole(number, where, 0, above - 1)
        if not isinstance(self.state.graph[number], kind):
            refuse(where, f"refers to an item that is not a {kind.__name__}")
        return self.items[number]

    def _step(self, label: LabelState, before: Item | None, where: str) -> Step:
        """The step of a node on top of a union, or of nothing."""
        atom = self.atom(label)
        begun = () if before is None else [step for step in before.steps if not step.whole]
        if not begun:
            self._begins(label, before, where)
            parts = frozenset[int]() if self.is_deadline(label) else frozenset((label.part,))
            return self._known(label, atom, parts, where)
        assert before is not None
        (first, *others) = begun
        if others or before.nodes > 1 or (first.place, first.edge) != (label.place, label.position):
            refuse(where, "continues after a step that has not ended")
        if before.last > label.instant or label.part in first.parts:
            refuse(where, "has the events of a step in another order")
        if first.total != label.parts:
            refuse(where, "says of a step that it has another number of events")
        return self._known(label, atom, first.parts | {label.part}, where)

    def _begins(self, label: LabelState, before: Item | None, where: str) -> None:
        """Check that a step begins at a start, or after complete steps that lead to its place."""
        place = self.automaton.places[label.place]
        if before is None:
            if not place.start:
                refuse(where, "begins a match in a place that is not a start")
            return
        # A deadline has the instant of the last event up to it.
        most = label.instant if self.is_deadline(label) else label.instant - 1
        if not before.steps or before.last > most:
            refuse(where, "follows no event before its own")
        for step in before.steps:
            if not self.links(step, label.place):
                refuse(where, f"place {step.place} does not lead to place {label.place}")

    def _known(self, label: LabelState, atom: Atom, parts: frozenset[int], where: str) -> Step:
        key = label.place, label.position, label.parts, parts
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = Step(label.place, label.position, parts, label.parts)
            if step.whole and not _meets(atom, parts):
                refuse(where, "ends a step that lacks an event")
        return step

    def links(self, step: Step, target: int) -> bool:
        """Whether the edge of a complete step leads to a place, or ends a match."""
        found = self._follows.get((step, target))
        if found is None:
            edge = self.automaton.places[step.place].edges[step.edge]
            links = self.automaton.atoms[edge.atom].links
            found = self._follows[step, target] = step.whole and any(
                link.target == target
                if target < self._places
                else link.target == ACCEPT
                and link.guards == self.native.closing[target - self._places].guards
                for link in links
            )
        return found

    def ending(self, node: int, where: str, place: int | None = None) -> frozenset[Step]:
        """The steps of a node that ends partial matches; all lead to `place`, if given."""
        whole(node, where, 0, len(self.state.graph) - 1)
        if not isinstance(self.state.graph[node], NodeState):
            refuse(where, "refers to a union in place of a node")
        steps = self.items[node].steps
        if place is not None and not all(self.links(step, place) for step in steps):
            refuse(where, f"place {place} does not follow the step of its node")
        return steps

    def path(self, labels: list[int], start: int, where: str) -> Step:
        """The last step of a match, from its labels."""
        before: Item | None = None
        for number in labels:
            label = self.witness(number, where)
            step = self._step(label, before and self._past_deadlines(before, label.place), where)
            before = Item(frozenset((step,)), start, label.instant, label.instant, 1)
        if before is None or not step.whole:
            refuse(where, "is not a complete match")
        return step

    def _past_deadlines(self, item: Item, target: int) -> Item:
        """The last step of a match, or the deadlines after it that lead to a place.

        A match that waits for its window has the labels of its events, but not those of the
        deadlines between them.
        """
        (step,) = item.steps
        seen, waiting = {step}, [step]
        while waiting:
            step = waiting.pop()
            if self.links(step, target):
                return Item(frozenset((step,)), item.latest, item.first, item.last, 1)
            edge = self.automaton.places[step.place].edges[step.edge]
            for link in self.automaton.atoms[edge.atom].links if step.whole else ():
                place = (
                    self.automaton.places[link.target] if 0 <= link.target < self._places else None
                )
                for position, other in enumerate(() if place is None else place.edges):
                    if self.automaton.atoms[other.atom].kind != "deadline":
                        continue
                    key = link.target, position, 0, frozenset[int]()
                    step = self._steps.setdefault(key, Step(link.target, position, key[3], 0))
                    if step not in seen:
                        seen.add(step)
                        waiting.append(step)
        return item


def _meets(atom: Atom, parts: frozenset[int]) -> bool:
    """Whether some occurrences of an atom form one alternative of each operand."""
    first, left = 0, set(parts)
    for operand in atom.operands:
        met = 0
        for alternative in operand:
            own = range(first, first + len(alternative))
            first = own.stop
            if left.issuperset(own):
                left.difference_update(own)
                met += 1
        if met != 1:
            return False
    return not left
