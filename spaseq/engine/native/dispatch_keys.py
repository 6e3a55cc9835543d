"""The keys by which events are dispatched to the queries of a run (`_query_index`).

A key is something that a triple must have: a predicate, or a predicate with a constant object or
subject. The requirement of a graph pattern is a disjunction of keys: an event that has none of them
has no row of the pattern. Among the requirements of a pattern, the rarest is chosen: the one whose
keys the fewest other patterns have, since these patterns then differ in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, assert_never

from spaseq.gpm import algebra
from spaseq.gpm.native.order import Step
from spaseq.gpm.pattern import Pattern
from spaseq.gpm.python.evaluator import required_predicates
from spaseq.rdf._dictionary import Dictionary
from spaseq.rdf.event import Term

BY_PREDICATE, BY_VALUE, BY_OWNER = 1, 2, 4
"""The kinds of keys, as in `_query_index`: a predicate alone, with an object, with a subject."""
Key: TypeAlias = tuple[Term, int, Term | None]
"""A predicate, the kind, and the constant."""
Requirement: TypeAlias = frozenset[Key]
"""An event without any of these keys has no row; without any key at all: no event has one."""
NumberedKey: TypeAlias = tuple[int, int, int]


def dispatch_keys(
    patterns: Sequence[Pattern], dictionary: Dictionary
) -> list[Sequence[NumberedKey] | None]:
    """Per pattern, the keys of the rarest requirement, in numbers; None if it has none."""
    found = [list(_requirements(pattern)) for pattern in patterns]
    uses = Counter(key for some in found for key in frozenset[Key]().union(*some))
    return [
        [
            (dictionary.intern(predicate), kind, 0 if term is None else dictionary.intern(term))
            for predicate, kind, term in min(some, key=lambda one: _cost(one, uses))
        ]
        if some
        else None
        for some in found
    ]


def _cost(requirement: Requirement, uses: Mapping[Key, int]) -> tuple[int, int]:
    """How many patterns have its keys, and how many of its keys have no constant."""
    return sum(uses[key] for key in requirement), sum(term is None for _, _, term in requirement)


def _requirements(pattern: Pattern) -> Iterator[Requirement]:
    if pattern.native is not None:
        yield from _of_node(pattern.native.root)
    else:
        for predicate in required_predicates(pattern.program.pattern):
            yield frozenset({(predicate, BY_PREDICATE, None)})


def _of_node(node: algebra.Node) -> Iterator[Requirement]:
    """The requirements of an operator; it has no row over an event that lacks one of them."""
    match node:
        case algebra.Basic(left, steps):
            yield from _of_node(left)
            yield from _of_steps(steps)
        case algebra.Alternatives(left, chains):
            yield from _of_node(left)
            yield from _of_parts([_of_steps(chain) for chain in chains])
        case algebra.Reach(left):
            # The ends of its steps are those of the path, not of its links.
            yield from _of_node(left)
            for step in node.ahead.required:
                if not isinstance(step.predicate, int) and step.view is None:
                    yield frozenset({(step.predicate, BY_PREDICATE, None)})
        case algebra.Group(child, keys):
            if keys:  # without keys, it has a row for an event without rows
                yield from _of_node(child)
        case algebra.Join(left, right):
            yield from _of_node(left)
            yield from _of_node(right)
        case algebra.LeftJoin(left) | algebra.Minus(left):
            yield from _of_node(left)
        case algebra.Union(parts):
            yield from _of_parts([_of_node(part) for part in parts])
        case algebra.Filter(child) | algebra.Extend(child):
            yield from _of_node(child)
        case algebra.Seed() | algebra.Table() | algebra.KbTable():
            pass
        case _:
            assert_never(node)


def _of_parts(parts: Iterable[Iterable[Requirement]]) -> Iterator[Requirement]:
    """The disjunction of one requirement of each part, the one with the most constants."""
    chosen = []
    for part in parts:
        one = min(part, key=lambda keys: sum(term is None for _, _, term in keys), default=None)
        if one is None:
            return
        chosen.append(one)
    yield frozenset[Key]().union(*chosen)


def _of_steps(steps: Iterable[Step]) -> Iterator[Requirement]:
    """The key of each triple pattern with a constant predicate."""
    for step in steps:
        if isinstance(step.predicate, int) or step.view is not None:
            continue
        if not isinstance(step.object, int):
            yield frozenset({(step.predicate, BY_VALUE, step.object)})
        elif not isinstance(step.subject, int):
            yield frozenset({(step.predicate, BY_OWNER, step.subject)})
        else:
            yield frozenset({(step.predicate, BY_PREDICATE, None)})
