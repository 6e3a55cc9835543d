"""Where each EXISTS of a pattern stands → what the row at hand binds for sure.

An EXISTS starts from the row of an operator or, in a local filter, of the whole pattern. So what
the knowledge base decides in it is joined by the slots which that operator always binds: found in
an index, and, where it is far away, asked for by key, like any other part of the pattern.

Invariant: an EXISTS that stands in several places is joined by what all of them bind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from spaseq.gpm import algebra
from spaseq.gpm.native.lower import Existences
from spaseq.parser import ast


def uses(
    root: algebra.Node, exists: Existences, filters: Sequence[ast.Expr]
) -> Mapping[ast.Exists, list[algebra.Node]]:
    """The operators that give each EXISTS its rows."""
    found: dict[ast.Exists, list[algebra.Node]] = {}
    for top in (root, *exists.values()):
        for node in algebra.walk(top):
            for given, expression in _tested(node):
                _note(found, given, expression)
    for condition in filters:
        _note(found, root, condition)
    return found


def keyed(root: algebra.Node, exists: Existences, filters: Sequence[ast.Expr]) -> Existences:
    """The patterns of EXISTS, their joins with the knowledge base by all that is bound."""
    if not exists or any(map(_may_bind_nothing, (root, *exists.values()))):
        return exists
    found = uses(root, exists, filters)
    # One that stands in nothing that is evaluated (a MINUS without effect, say) stays as it is.
    return {
        key: _joined(answer, frozenset.intersection(*map(algebra.certain, found[key])))
        if key in found
        else answer
        for key, answer in exists.items()
    }


def within(node: algebra.Node, exists: Existences) -> Existences:
    """What those EXISTS look for that are met when an operator is evaluated."""
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
    """The expressions of an operator, each with another that gives it its rows."""
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
    """Whether a silent service takes part: `algebra.certain` says too much then."""
    return any(
        isinstance(part, algebra.KbTable)
        and isinstance(part.pattern, ast.Service)
        and part.pattern.silent
        for part in algebra.walk(node)
    )


def _joined(node: algebra.Node, sure: frozenset[int]) -> algebra.Node:
    """An operator that starts from rows which bind the slots `sure`."""
    match node:
        case algebra.Join(left, right, keys):
            more = sure & algebra.certain(right) if isinstance(right, algebra.KbTable) else ()
            all_keys = tuple(sorted({*keys, *more}))
            return algebra.Join(_joined(left, sure), _joined(right, sure), all_keys)
        case algebra.LeftJoin(left, right) | algebra.Minus(left, right):
            return replace(node, left=_joined(left, sure), right=_joined(right, sure))
        case algebra.Basic(left):
            return replace(node, left=_joined(left, sure))
        case algebra.Filter(child) | algebra.Extend(child):
            return replace(node, child=_joined(child, sure))
        case algebra.Union(parts):
            return algebra.Union(tuple(_joined(part, sure) for part in parts))
    return node
