"""What the filters of a graph pattern demand of single triples, for the keys of `dispatch_keys`.

A condition that compares a variable with a constant can only be true for some values of that
variable: for one term, or for the numbers of an interval. `demands` finds such comparisons in a
condition, and disjunctions of them; any other part of the condition demands nothing. Over an event
without a triple with such a value, the condition is true for no row.

Equal strings, IRIs and literals with a language are equal terms. Numbers are compared across
datatypes: an interval of doubles has the nearest double of every number for which the comparison is
true, since rounding preserves order. A number that is compared with an `xsd:float` is rounded to
24 bits first, so the interval reaches to the neighbours of that float. Values for which the
comparison is an error or false may be inside as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf, isfinite, nextafter
from typing import NamedTuple, TypeAlias

from spaseq.gpm.program import constant
from spaseq.parser import ast
from spaseq.rdf.event import Term
from spaseq.rdf.native._values import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    IRI,
    LANG,
    STRING,
    WIDE,
    decode,
    to_double,
)

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


class Interval(NamedTuple):
    """The numbers from `low` to `high`, both included."""

    low: float
    high: float


class Demand(NamedTuple):
    """The slot must have this term, or a number in this interval."""

    slot: int
    value: Term | Interval


Demands: TypeAlias = tuple[Demand, ...]
"""A disjunction: at least one of them holds."""


def demands(condition: ast.Expr, slots: Mapping[str, int]) -> list[Demands]:
    """What holds wherever a condition is true; `slots` has the slot of each variable."""
    return both((), _parts(condition, slots))


def both(some: Iterable[Demands], others: Iterable[Demands]) -> list[Demands]:
    """Demands that all hold; the intervals of each slot are replaced by their intersection."""
    found = [*some, *others]
    return [*_intersected(one for one in found if len(one) == 1), *(d for d in found if len(d) > 1)]


def _parts(condition: ast.Expr, slots: Mapping[str, int]) -> Iterator[Demands]:
    match condition:
        case ast.Binary("&&", left, right):
            yield from _parts(left, slots)
            yield from _parts(right, slots)
        case ast.Binary("||", left, right):
            either = demands(left, slots), demands(right, slots)
            if all(either):
                yield tuple(demand for some in either for demand in min(some, key=len))
        case ast.In(operand, choices, False):
            each = [_compared("=", operand, choice, slots) for choice in choices]
            known = tuple(one for one in each if one is not None)
            if len(known) == len(each):
                yield known
        case ast.Binary(operator, left, right) if operator in _MIRRORED:
            one = _compared(operator, left, right, slots)
            one = one or _compared(_MIRRORED[operator], right, left, slots)
            if one is not None:
                yield (one,)
        case ast.Call("SAMETERM", (left, right)):
            for variable, other in ((left, right), (right, left)):
                slot = _slot_of(variable, slots)
                if slot is not None and isinstance(other, ast.Iri | ast.Literal):
                    yield (Demand(slot, constant(other)),)
        case _:
            pass


def _compared(
    operator: str, variable: ast.Expr, other: ast.Expr, slots: Mapping[str, int]
) -> Demand | None:
    """What `variable operator other` demands if the other operand is a constant."""
    number = other.operand if isinstance(other, ast.Unary) and other.operator == "-" else other
    slot = _slot_of(variable, slots)
    if slot is None or not isinstance(number, ast.Iri | ast.Literal):
        return None
    term = constant(number)
    value = decode(term)
    if value.kind in (INTEGER, DECIMAL, WIDE, FLOAT, DOUBLE):
        near = -to_double(value) if number is not other else to_double(value)
        reach = _reach(near, value.kind)
        if reach is None:
            return None
        if operator in ("<", "<="):
            return Demand(slot, Interval(-inf, reach.high))
        return Demand(slot, reach if operator == "=" else Interval(reach.low, inf))
    if operator == "=" and number is other and value.kind in (IRI, STRING, LANG):
        return Demand(slot, term)
    return None


def _slot_of(variable: ast.Expr, slots: Mapping[str, int]) -> int | None:
    """The slot of a variable that the pattern can bind; otherwise None."""
    return slots.get(variable.name) if isinstance(variable, ast.Var) else None


def _reach(near: float, kind: int) -> Interval | None:
    """The doubles of all numbers that may equal a number, given its nearest double."""
    if not isfinite(near):
        return None
    if kind == FLOAT:
        margin = abs(near) * 2.0**-23 + 2.0**-149
        return Interval(near - margin, near + margin)
    if kind == WIDE:
        return Interval(nextafter(near, -inf), nextafter(near, inf))
    return Interval(near, near)


def _intersected(single: Iterable[Demands]) -> Sequence[Demands]:
    """Demands that all hold: one interval for each slot that has some."""
    terms: list[Demands] = []
    intervals: dict[int, Interval] = {}
    for ((slot, value),) in single:
        if isinstance(value, Interval):
            low, high = intervals.get(slot, Interval(-inf, inf))
            intervals[slot] = Interval(max(low, value.low), min(high, value.high))
        else:
            terms.append((Demand(slot, value),))
    return [*terms, *((Demand(slot, one),) for slot, one in intervals.items())]
