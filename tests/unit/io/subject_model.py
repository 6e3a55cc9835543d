"""Which statements belong to which subject, as plain Python: the model of `--events subject`.

A blank node belongs to the subject whose statement refers to it: statements about the node follow
that statement, or precede it, as parsers yield nested nodes. Statements about blank nodes to which
no subject refers are events of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import pyoxigraph as ox

from spaseq.io.statements import RawTerm, Statement

_Numbered: TypeAlias = tuple[ox.Quad, int]


def by_subject(statements: Iterable[Statement], most: int = 10_000) -> Iterator[Statement]:
    """The statements with their event's subject as the graph; those of an event are consecutive.

    `most`: the statements about blank nodes that may wait for their subject.
    """
    subject: ox.NamedNode | None = None
    own: set[ox.BlankNode] = set()
    pending: list[_Numbered] = []
    limit = most
    for quad, line in statements:
        if quad is None:
            continue
        about, value = quad.subject, quad.object
        if isinstance(about, ox.BlankNode) and about not in own:
            pending.append((quad, line))
            if len(pending) > limit:
                complete, pending = _without_last_roots(pending)
                limit = max(most, 2 * len(pending))
                yield from complete
            continue
        claimed, rest = _claimed(pending, value)
        if isinstance(about, ox.NamedNode) and about != subject:
            yield from _roots(rest)
            rest = []
            subject = about
            own = set()
        assert subject is not None
        for other, number in (*claimed, (quad, line)):
            yield _in(other, subject), number
            own.update(
                part for part in (other.subject, other.object) if isinstance(part, ox.BlankNode)
            )
        pending = rest
    yield from _roots(pending)


def _in(quad: ox.Quad, graph: ox.NamedNode | ox.BlankNode) -> ox.Quad:
    return ox.Quad(quad.subject, quad.predicate, quad.object, graph)


def _claimed(pending: list[_Numbered], value: RawTerm) -> tuple[list[_Numbered], list[_Numbered]]:
    """The pending statements about nodes that can be reached from `value`, and the others."""
    if not pending or not isinstance(value, ox.BlankNode):
        return [], pending
    reached = {value}
    size = 0
    while size != len(reached):
        size = len(reached)
        for quad, _ in reversed(pending):
            if quad.subject in reached and isinstance(quad.object, ox.BlankNode):
                reached.add(quad.object)
    claimed = [one for one in pending if one[0].subject in reached]
    return claimed, [one for one in pending if one[0].subject not in reached]


def _components(pending: list[_Numbered]) -> list[list[_Numbered]]:
    """The statements that blank nodes connect, in the order of their first statements."""
    parents: dict[RawTerm, RawTerm] = {}

    def root(node: RawTerm) -> RawTerm:
        while parents.setdefault(node, node) != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    for quad, _ in pending:
        if isinstance(quad.object, ox.BlankNode):
            parents[root(quad.object)] = root(quad.subject)
    found: dict[RawTerm, list[_Numbered]] = {}
    for one in pending:
        found.setdefault(root(one[0].subject), []).append(one)
    return list(found.values())


def _roots(pending: list[_Numbered]) -> Iterator[Statement]:
    """The statements that no subject claims: an event for each connected part."""
    if pending:
        for part in _components(pending):
            yield from _root(part)


def _root(part: list[_Numbered]) -> Iterator[Statement]:
    """A connected part in the graph of a node to which none of its statements refers."""
    referred = {quad.object for quad, _ in part}
    subjects = [quad.subject for quad, _ in part]
    name = next((node for node in subjects if node not in referred), subjects[0])
    assert isinstance(name, ox.BlankNode)
    for quad, line in part:
        yield _in(quad, name), line


def _without_last_roots(
    pending: list[_Numbered],
) -> tuple[list[Statement], list[_Numbered]]:
    """The statements of the parts that end in the first half, and the other statements."""
    half = {id(one) for one in pending[len(pending) // 2 :]}
    parts = _components(pending)
    complete = [part for part in parts if id(part[-1]) not in half]
    done = {id(one) for part in complete for one in part}
    statements = [one for part in complete for one in _root(part)]
    return statements, [one for one in pending if id(one) not in done]
