"""Join keys of EXISTS: the slots that the outer row always binds.

An EXISTS starts from a row of an operator or, in a local filter, of the whole pattern. Its parts
that depend on the knowledge base only are joined by the slots that this operator always binds: like
other parts of the pattern, they are looked up in an index and, if remote, requested by key.

Invariant: the keys of an EXISTS with several uses are bound by the rows of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from spaseq.gpm import algebra
from spaseq.gpm.native.lower import Existences
from spaseq.parser import ast


def uses(
    root: algebra.Node, exists: Existences, filters: Sequence[ast.Expr]
) -> Mapping[ast.Exists, list[algebra.Node]]:
    """The operators from whose rows each EXISTS starts."""
    found: dict[ast.Exists, list[algebra.Node]] = {}
    for top in (root, *exists.values()):
        for node in algebra.walk(top):
            for given, expression in _tested(node):
                _note(found, given, expression)
    for condition in filters:
        _note(found, root, condition)
    return found


def keyed(root: algebra.Node, exists: Existences, filters: Sequence[ast.Expr]) -> Existences:
    """The patterns of EXISTS, with joins with the KB by all slots that are always bound."""
    if not exists or any(map(_may_bind_nothing, (root, *exists.values()))):
        return exists
    found = uses(root, exists, filters)
    # An EXISTS without uses (in a MINUS without effect, for example) stays unchanged.
    return {
        key: _joined(answer, frozenset.intersection(*map(algebra.certain, found[key])))
        if key in found
        else answer
        for key, answer in exists.items()
    }


def within(node: algebra.Node, exists: Existences) -> Existences:
    """The patterns of the EXISTS that are evaluated with an operator."""
    found: dict[ast.Exists, algebra.Node] = {}
    todo = [node]
    while todo:
        for below in algebra.walk(todo.pop()):
            for _, expression in _tested(below):
                for part in _exists_of(expression):
                    if part not in found:
                        found[part] = exists[part]
                        todo.append(exists[part])
    return found


def _tested(node: algebra.Node) -> Iterator[tuple[algebra.Node, ast.Expr]]:
    """The expressions of an operator, each with the operator whose rows it reads."""
    match node:
        case algebra.Filter(child, condition) | algebra.Extend(child, _, condition):
            yield child, condition
        case algebra.LeftJoin(left, right, keys, conditions):
            for condition in conditions:
                yield algebra.Join(left, right, keys), condition


def _note(
    found: dict[ast.Exists, list[algebra.Node]], given: algebra.Node, expression: ast.Expr
) -> None:
    for part in _exists_of(expression):
        found.setdefault(part, []).append(given)


def _exists_of(expression: ast.Expr) -> Iterable[ast.Exists]:
    return (part for part in ast.walk(expression) if isinstance(part, ast.Exists))


def _may_bind_nothing(node: algebra.Node) -> bool:
    """Whether an operator contains a silent service, so that `algebra.certain` may not hold."""
    return any(
        isinstance(part, algebra.KbTable)
        and isinstance(part.pattern, ast.Service)
        and part.pattern.silent
        for part in algebra.walk(node)
    )


def _joined(node: algebra.Node, sure: frozenset[int]) -> algebra.Node:
    """An operator that starts from rows that bind the slots `sure`, with more join keys."""
    match node:
        case algebra.Join(left, right, keys):
            more = sure & algebra.certain(right) if isinstance(right, algebra.KbTable) else ()
            all_keys = tuple(sorted({*keys, *more}))
            return algebra.Join(_joined(left, sure), _joined(right, sure), all_keys)
        case algebra.LeftJoin(left, right) | algebra.Minus(left, right):
            return replace(node, left=_joined(left, sure), right=_joined(right, sure))
        case algebra.Basic(left) | algebra.Alternatives(left) | algebra.Reach(left):
            return replace(node, left=_joined(left, sure))
        case algebra.Filter(child) | algebra.Extend(child):
            return replace(node, child=_joined(child, sure))
        case algebra.Group():  # its rows are those of a sub-query, which no outer row restricts
            return node
        case algebra.Union(parts):
            return algebra.Union(tuple(_joined(part, sure) for part in parts))
        case algebra.Seed() | algebra.Table() | algebra.KbTable():
            return node
        case _:
            assert_never(node)
