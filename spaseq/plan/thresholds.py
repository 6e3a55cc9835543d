"""Thresholds of a template: constants that are compared with a value by `<`, `<=`, `>` or `>=`.

Queries that differ only in thresholds are sorted by strictness. If each accepts a subset of what
its predecessor accepts, the least strict query has the matches of all. Its match belongs to the
queries whose thresholds the value reaches. These come first in the order, and a binary search finds
their number:

    FILTER(?a > 100)    FILTER(?a > 250)    FILTER(?a > 400)        ?a is 300: the first two

This holds in a first step and after `:` and `,`, where the filter only decides which events a step
accepts. After `;`, a query that rejects an event waits for a later one, so partial matches need a
floor (`spaseq.plan.floors`). It does not hold in iterations and negations.

The thresholds of one comparison have one kind: integers and decimals, doubles, dates, or times with
a time zone. Each kind is totally ordered, and comparison with any value is monotone. This includes
numbers, which are rounded to the type of the other side, and times without a zone, which have a
margin of 14 hours.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, cmp_to_key
from math import isnan
from typing import Any, TypeAlias, cast

import pyoxigraph as ox

from spaseq.parser import ast
from spaseq.rdf.event import Term
from spaseq.rdf.native._values import (
    DECIMAL,
    DOUBLE,
    INTEGER,
    POINT,
    WIDE,
    Value,
    compare,
    decode,
    less,
    less_equal,
)
from spaseq.records import dataclass

Constants: TypeAlias = "tuple[ast.Iri | ast.Literal, ...]"

_Strictness: TypeAlias = Any
"""The sort key of a constant; a stricter one is greater."""

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The operator with its sides exchanged."""
_MOST_OPEN = 64
"""The sequences to which a row may be appended, so that sorting rows into them stays linear."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of a variable of the event with a constant that differs among queries."""

    variable: str
    operator: str
    """The operator, with the variable on the left."""
    kind: str
    """The sort of the constants; those of one sort are totally ordered."""


@dataclass(frozen=True)
class Threshold:
    """The constants of a comparison, each at least as strict as the previous one."""

    gpm: int
    variable: str
    operator: str
    constants: tuple[ast.Literal, ...]

    def reached(self, value: Term) -> int:
        """The number of constants, from the first, for which the comparison with a value is true.

        Cost: logarithmic in the constants.
        """
        decoded, least, most = decode(value), 0, len(self.constants)
        while least < most:
            middle = (least + most) // 2
            if _is_true(decoded, self.operator, self._values[middle]):
                least = middle + 1
            else:
                most = middle
        return least

    def is_reached(self, value: Term, number: int) -> bool:
        """Whether the comparison of a value with one of the constants is true."""
        return _is_true(decode(value), self.operator, self._values[number])

    @cached_property
    def _values(self) -> list[Value]:
        return list(map(_value, self.constants))


def kind_of_constant(constant: ast.Expr) -> str | None:
    """The sort of a constant that can be a threshold; None for other expressions."""
    if not isinstance(constant, ast.Literal) or constant.language is not None:
        return None
    value = _value(constant)
    if value.kind in (INTEGER, DECIMAL, WIDE):
        return "number"
    if value.kind == DOUBLE:
        return None if isnan(value.real) else "double"
    if value.kind == POINT and value.extra is not None and value.form in ("dateTime", "date"):
        return value.form
    return None


def is_selective(steps: Sequence[ast.Step], gpm: str) -> bool:
    """Whether the filters of a GPM select among the events that its steps could accept.

    Otherwise they also decide which event is the next one, or whether there is none.
    """
    return all(
        step.quantifier is None and not step.negated and step.operator != ";"
        for step in steps
        if isinstance(step.unit, ast.GpmRef) and step.unit.name == gpm
    )


def ever_stricter(
    rows: Sequence[Constants], comparisons: Sequence[tuple[int, Comparison]]
) -> list[list[Constants]]:
    """Rows of constants as few sequences, in which each row is at least as strict as the last.

    Args:
        rows: Different rows of constants.
        comparisons: The positions in the rows of constants that are compared.
    """
    found: dict[Constants, list[tuple[tuple[_Strictness, ...], Constants]]] = {}
    compared = {position for position, _ in comparisons}
    for row in rows:
        others = tuple([each for n, each in enumerate(row) if n not in compared])
        strictness = tuple([_strictness(c.operator, row[n]) for n, c in comparisons])
        found.setdefault(others, []).append((strictness, row))
    sequences: list[list[Constants]] = []
    for some in found.values():
        some.sort(key=lambda each: each[0])
        sequences += _partitioned(some)
    return sequences


def _value(constant: ast.Literal) -> Value:
    return decode(ox.Literal(constant.lexical, datatype=ox.NamedNode(constant.datatype)))


def _is_true(value: Value, operator: str, constant: Value) -> bool:
    """Whether a filter with this comparison is true."""
    function = less if operator in ("<", ">") else less_equal
    sides = (value, constant) if operator in ("<", "<=") else (constant, value)
    return function(*sides) is True


def _compared(one: Value, other: Value) -> int:
    """Compare two constants of one sort."""
    return cast(int, compare(one, other))


_ascending = cmp_to_key(_compared)
_descending = cmp_to_key(lambda one, other: _compared(cast(Value, other), cast(Value, one)))


def _strictness(operator: str, constant: ast.Expr) -> _Strictness:
    assert isinstance(constant, ast.Literal)
    return (_ascending if operator in (">", ">=") else _descending)(_value(constant))


def _partitioned(
    some: Sequence[tuple[tuple[_Strictness, ...], Constants]],
) -> list[list[Constants]]:
    """Rows by their first constant → sequences, in each of which all constants are in order."""
    sequences: list[list[Constants]] = []
    last: list[tuple[tuple[_Strictness, ...], list[Constants]]] = []
    for strictness, row in some:
        fits = (n for n, (before, _) in enumerate(last) if _is_stricter(strictness, before))
        place = next(fits, None)
        if place is None:
            sequences.append([row])
            last.append((strictness, sequences[-1]))
            del last[:-_MOST_OPEN]
        else:
            last[place][1].append(row)
            last[place] = strictness, last[place][1]
    return sequences


def _is_stricter(one: Sequence[_Strictness], other: Sequence[_Strictness]) -> bool:
    return not any(a < b for a, b in zip(one, other, strict=True))
