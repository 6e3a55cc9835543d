"""Partial matches of an `AutomatonRun` → those that are contiguous so far.

The run in Python keeps all under `EMIT STRICT`, and drops matches in the end; the compiled core
keeps only those that can still be results. This takes out the others when it takes over.

Invariant: a node that is left has the greatest start of what is left below it. Cost: linear in
the nodes and links of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from spaseq.nfa.run import AutomatonRun
from spaseq.nfa.tecs import Accepted, Chain, Key, Node, Path, chained, nodes


def keep_contiguous(run: AutomatonRun) -> None:
    """Let the run forget, for good, what `EMIT STRICT` would drop."""
    kept = _Kept(run)
    for state in run.places:
        for group in list(state.groups.values()):
            if not state.place.start:
                key = run.registers.key(group.env)
                members = [*kept.of(key, nodes(group.chain, run.clock.bound))]
                group.keep(members)
                if not members:
                    state.drop(group)
    for (place, values), (env, members) in list(run.pending.items()):
        left = [*kept.of(run.registers.key(env), members)]
        if left:
            run.pending[place, values] = env, left
        else:
            del run.pending[place, values]
    run.accepted = [
        Accepted(node, item.key) for item in run.accepted for node in kept.of(item.key, [item.node])
    ]
    run.waiting[:] = [item for item in run.waiting if _strict(run, item[2].path)]


def _strict(run: AutomatonRun, path: Path) -> bool:
    instants = sorted({witness.instant for witness in path.witnesses()})
    return all(run.contiguity.contiguous(path.key, [a, b]) for a, b in pairwise(instants))


class _Kept:
    """What is left of each node; all below one node is of one partition."""

    def __init__(self, run: AutomatonRun):
        self._run = run
        self._nodes: dict[int, Node | None] = {}
        self._chains: dict[tuple[int, int], Chain | None] = {}

    def of(self, key: Key, members: Iterator[Node] | list[Node]) -> Iterator[Node]:
        """What is left of some nodes."""
        for member in members:
            left = self._node(key, member)
            if left is not None:
                yield left

    def _node(self, key: Key, top: Node) -> Node | None:
        """Deepest first, and without recursion."""
        bound = self._run.clock.bound
        todo = [top]
        while todo:
            node = todo[-1]
            before = list(nodes(node.before, bound))
            missing = [below for below in before if id(below) not in self._nodes]
            if id(node) not in self._nodes and missing:
                todo += missing
                continue
            todo.pop()
            if id(node) not in self._nodes:
                self._nodes[id(node)] = self._left(key, node, before)
        return self._nodes[id(top)]

    def _left(self, key: Key, node: Node, before: list[Node]) -> Node | None:
        if node.before is None:
            return node
        instant = node.step.witnesses[0].instant
        chain = (id(node.before), instant)
        if chain not in self._chains:
            follow = [n for n in before if self._run.contiguity.contiguous(key, [n.last, instant])]
            kept = [left for n in reversed(follow) if (left := self._nodes[id(n)]) is not None]
            self._chains[chain] = chained(kept)
        rest = self._chains[chain]
        return None if rest is None else Node(node.step, rest, node.last, rest.latest)
