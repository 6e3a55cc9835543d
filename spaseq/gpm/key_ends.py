"""The ends of an event's triples that contain a variable's value in every solution of a pattern.

If each solution matches a triple pattern `?key :p …`, the values of `?key` are among the subjects
of the triples with `:p`, which are known before the pattern is matched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias, assert_never

from spaseq.gpm import algebra
from spaseq.gpm.native.order import Step
from spaseq.rdf.event import Term

Ends: TypeAlias = frozenset[tuple[Term, bool]]
"""(predicate, whether it is the object) of ends of triples."""


def key_ends(node: algebra.Node, slot: int) -> Ends | None:
    """Ends of triples, one of which has the value of a slot in each row; None if there are none."""
    match node:
        case algebra.Basic(left, steps):
            return _least([_of_steps(steps, slot), key_ends(left, slot)])
        case algebra.Alternatives(left, chains):
            some = _all_of(_of_steps(chain, slot) for chain in chains)
            return _least([some, key_ends(left, slot)])
        case algebra.Join(left, right):
            return _least([key_ends(left, slot), key_ends(right, slot)])
        case algebra.Reach(left) | algebra.LeftJoin(left) | algebra.Minus(left):
            return key_ends(left, slot)
        case algebra.Union(parts):
            return _all_of(key_ends(part, slot) for part in parts)
        case algebra.Filter(child) | algebra.Extend(child):
            return key_ends(child, slot)
        case algebra.Group(child, keys):
            return key_ends(child, slot) if slot in keys else None
        case algebra.Seed() | algebra.Table() | algebra.KbTable():
            return None
        case _:
            assert_never(node)


def _of_steps(steps: Sequence[Step], slot: int) -> Ends | None:
    """An end of the first triple pattern that contains the slot."""
    for step in steps:
        plain = step.whole is None and step.view is None and not isinstance(step.predicate, int)
        if plain and slot in (step.subject, step.object):
            assert not isinstance(step.predicate, int)
            return frozenset([(step.predicate, step.subject != slot)])
    return None


def _least(found: Iterable[Ends | None]) -> Ends | None:
    """Any of several is enough."""
    return min((ends for ends in found if ends is not None), key=len, default=None)


def _all_of(found: Iterable[Ends | None]) -> Ends | None:
    """Each of several is needed."""
    every = list(found)
    if any(ends is None for ends in every):
        return None
    return frozenset().union(*(ends for ends in every if ends is not None))
