"""SPARQL's aggregates over RDF terms, as a whole or step by step, and its ORDER BY order.

`aggregate` computes over all values at once; `start`, `add` and `finish` compute value by value
over immutable, hashable states, so that partial matches share the state of their common beginning.
Invariant: both give the same term. Values are bound terms: the caller omits unbound ones.

`value_key` sorts as SPARQL's ORDER BY compares: unbound, blank nodes, IRIs, literals. Literals are
ordered by kind and value, so that equal values have equal keys. `order_key` extends this to a total
order, with literals of equal value ordered by their text. Cost: constant per value, except for
GROUP_CONCAT, which copies its text.

Source: SPARQL 1.1 sections 15.1 and 18.5.1; docs/language.md, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import isnan
from typing import Any, TypeAlias

import pyoxigraph as ox

from spaseq.rdf.event import Term
from spaseq.rdf.native._values import (
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    INTEGER,
    LANG,
    OTHER,
    POINT,
    SPAN,
    STRING,
    TRIPLE,
    WIDE,
    Value,
    compare,
    decode,
    divide,
    exact_of,
    integer,
    lexical,
)
from spaseq.rdf.native._values import add as plus
from spaseq.rdf.tagged import tag_of

Key: TypeAlias = tuple[Any, ...]


Accumulator: TypeAlias = tuple[str, str, int, Term | None, bool]
"""The state of an aggregate: (name, separator, number of values, value, failed).

The value is the running sum, the text so far, or the least, greatest or first value; None before
the first value and after an error, which `failed` records. Only COUNT and AVG count the values, so
that states are equal if no further value can distinguish them. Plain data, which a checkpoint can
hold.
"""
_Step: TypeAlias = Callable[[Accumulator, Term], Term | None]

REFUSING = ("SUM", "AVG", "GROUP_CONCAT")
"""The aggregates that have no value if they are given one of another kind, such as a string."""
_NUMERIC = range(INTEGER, DOUBLE + 1)


_ZERO = integer(0)


def start(name: str, separator: str | None = None) -> Accumulator:
    """The state before the first value; `separator` is for GROUP_CONCAT (None: a space)."""
    if name != "COUNT" and name not in _STEPS:
        raise ValueError(f"there is no aggregate {name}")
    return name, " " if separator is None else separator, 0, None, False


def add(state: Accumulator, term: Term) -> Accumulator:
    """The state after one more value."""
    name, separator, count, _, failed = state
    if name == "COUNT":
        return name, separator, count + 1, None, False
    if failed:
        return state
    value = _STEPS[name](state, term)
    if value is None:
        return name, separator, 0, None, True
    return name, separator, count + (name == "AVG"), value, False


def refuses(name: str, term: Term) -> bool:
    """Whether an aggregate has no value because of a value: SUM of a string, say."""
    return add(start(name), term)[-1]


def finish(state: Accumulator) -> Term | None:
    """The value of the aggregate; None: unbound, or an error."""
    name, _, count, value, failed = state
    if name == "COUNT":
        return integer(count).term
    if failed:
        return None
    if value is None:
        return {"SUM": _ZERO.term, "AVG": _ZERO.term, "GROUP_CONCAT": ox.Literal("")}.get(name)
    if name == "AVG":
        mean = divide(decode(value), integer(count))
        return None if mean is None else mean.term
    return value


def _sum(state: Accumulator, term: Term) -> Term | None:
    value = decode(term)
    if value.kind not in _NUMERIC:
        return None
    total = plus(_ZERO if state[3] is None else decode(state[3]), value)
    return None if total is None else total.term


def _concat(state: Accumulator, term: Term) -> Term | None:
    text = lexical(decode(term))
    if text is None:
        return None
    if state[3] is None:
        return ox.Literal(text)
    so_far: Any = state[3]
    return ox.Literal(so_far.value + state[1] + text)


def _least(state: Accumulator, term: Term) -> Term | None:
    best = state[3]
    return term if best is None or order(decode(term), decode(best)) < 0 else best


def _greatest(state: Accumulator, term: Term) -> Term | None:
    best = state[3]
    return term if best is None or order(decode(term), decode(best)) > 0 else best


def _first(state: Accumulator, term: Term) -> Term | None:
    return term if state[3] is None else state[3]


_STEPS: dict[str, _Step] = {
    "SUM": _sum,
    "AVG": _sum,
    "MIN": _least,
    "MAX": _greatest,
    "SAMPLE": _first,
    "GROUP_CONCAT": _concat,
}


def aggregate(
    name: str, values: Sequence[Term], separator: str | None = None, distinct: bool = False
) -> Term | None:
    """One of SPARQL's seven aggregates over bound values; None: unbound, or an error."""
    if distinct:
        values = list(dict.fromkeys(values))
    if name == "COUNT":
        return integer(len(values)).term
    return finish(reduce(add, values, start(name, separator)))


# ------------------------------------------------------------------ ORDER BY


def order(left: Value, right: Value) -> int:
    """-1, 0 or 1: the order of MIN and MAX, which is SPARQL's made total."""
    found = compare(left, right)
    if found is not None:
        return found
    mine, its = _value_key(left), _value_key(right)
    return (mine > its) - (mine < its)


_KIND_RANK = {
    kind: rank for rank, kind in enumerate((INTEGER, STRING, LANG, BOOLEAN, POINT, SPAN, OTHER))
}
_TEXTS = (LANG, OTHER)
"""Kinds whose values are a text and a language tag or datatype."""
_MONTH = 2_629_746 * 10**18
"""A month in atto-seconds, on the average of four centuries."""


def value_key(term: Term | None) -> Key:
    """A sort key: SPARQL's ORDER BY order; literals of equal value have equal keys."""
    if term is None:
        return (0,)
    if isinstance(term, ox.Literal):
        value = decode(term)
        key = _value_key(value)
        if value.kind not in _TEXTS:
            return key
        return (*key, tag_of(term) if term.language else term.datatype.value)
    if isinstance(term, ox.Triple):
        return (4, *map(value_key, term))
    return (1 if isinstance(term, ox.BlankNode) else 2, term.value)


def order_key(term: Term | None) -> Key:
    """A sort key: SPARQL's ORDER BY order, made total."""
    key = value_key(term)
    if isinstance(term, ox.Literal):
        return (*key, term.value, term.datatype.value, term.language or "")
    if isinstance(term, ox.Triple):
        return (*key, str(term))
    return key


def _value_key(value: Value) -> Key:
    kind = value.kind
    if kind in _NUMERIC:
        if kind == INTEGER:
            return (3, 0, False, value.number)
        if kind in (DECIMAL, WIDE):
            return (3, 0, False, exact_of(value))
        return (3, 0, True, 0) if isnan(value.real) else (3, 0, False, value.real)
    if kind == TRIPLE:
        return value_key(value.term)
    if kind not in _KIND_RANK:
        return (1, value.text) if isinstance(value.term, ox.BlankNode) else (2, value.text)
    rank = _KIND_RANK[kind]
    if kind == BOOLEAN:
        return (3, rank, value.number)
    if kind == POINT:
        return (3, rank, value.form, value.number)
    if kind == SPAN:
        return (3, rank, (value.extra or 0) * _MONTH + value.number)
    return (3, rank, value.text)
