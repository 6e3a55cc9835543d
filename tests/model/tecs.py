"""Partial matches as a timed, enumerable, compact set (tECS), which shares common parts.

A node is the last step of one or more partial matches. `before` has the nodes that it may continue,
as a chain to which nothing is ever added, so later members of a group do not affect the node. Only
`prune` removes what has left the window. Source: Bucchi et al., *CORE: a complex event recognition
engine* (PVLDB 2022), whose `extend` is a `Node` and whose `union` is a `Chain`.

Invariant: `latest` is the maximum start of all partial matches below a node or chain. Following
only references with `latest` ≥ the window's first instant therefore reaches only nodes that lead to
a result, and enumeration takes time linear in its results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from spaseq.nfa.match_path import Key, Path, Step


class Node:
    """The partial matches that end with `step`; `last` is its greatest instant number."""

    __slots__ = ("before", "last", "latest", "step")

    def __init__(self, step: Step, before: Chain | None, last: int, latest: int):
        self.step = step
        self.before = before
        self.last = last
        self.latest = latest
        """The maximum start; if `before` is None, the start itself."""


class Chain:
    """A union of nodes, newest first."""

    __slots__ = ("latest", "node", "rest")

    def __init__(self, node: Node, rest: Chain | None):
        self.node = node
        self.rest = rest
        self.latest: int = node.latest if rest is None else max(node.latest, rest.latest)


def nodes(chain: Chain | None, bound: int) -> Iterator[Node]:
    """The nodes of a chain that still lead to a start at or after `bound`, newest first."""
    while chain is not None and chain.latest >= bound:
        if chain.node.latest >= bound:
            yield chain.node
        chain = chain.rest


def members_since(chain: Chain | None, last: int, bound: int) -> Iterator[Node]:
    """The nodes of a group's chain whose last instant is not before `last`, newest first.

    When an instant closes, groups receive the nodes that end there, so older ones follow.
    """
    return takewhile(lambda node: node.last >= last, nodes(chain, bound))


def prune(roots: Iterable[Chain | None], bound: int) -> int:
    """Remove everything below the roots that reaches no start at or after `bound`.

    Chains are changed in place. This has no visible effect: `bound` never falls, so no enumeration
    would follow the removed links. Returns the number of links visited.
    """
    todo = [chain for chain in roots if chain is not None and chain.latest >= bound]
    seen: set[int] = set()
    while todo:
        chain: Chain | None = todo.pop()
        while chain is not None and id(chain) not in seen:
            seen.add(id(chain))
            while chain.node.latest < bound and chain.rest is not None:
                chain.node, chain.rest = chain.rest.node, chain.rest.rest
            while chain.rest is not None and chain.rest.node.latest < bound:
                chain.rest = chain.rest.rest if chain.rest.latest >= bound else None
            if chain.node.before is not None:
                todo.append(chain.node.before)
            chain = chain.rest
    return len(seen)


def chained(members: list[Node]) -> Chain | None:
    """The members, oldest first, as a chain."""
    chain = None
    for node in members:
        chain = Chain(node, chain)
    return chain


def paths(end: Node, bound: int) -> Iterator[tuple[int, tuple[Step, ...]]]:
    """Every match that ends in `end` and starts at or after `bound`: (start, steps)."""
    stack: list[tuple[Node, tuple[Step, ...]]] = [(end, ())]
    while stack:
        node, after = stack.pop()
        steps = (node.step, *after)
        if node.before is None:
            if node.latest >= bound:
                yield node.latest, steps
            continue
        for earlier in nodes(node.before, bound):
            stack.append((earlier, steps))


@dataclass(frozen=True, slots=True)
class Accepted:
    """Complete matches that share their last step."""

    node: Node
    key: Key


@dataclass(frozen=True, slots=True)
class Waiting:
    """A match that its trailing guards may still forbid."""

    path: Path
    env: list[Any]
    """The environment after its last event."""
    guards: tuple[int, ...]
    last: int
