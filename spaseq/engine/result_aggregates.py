"""Aggregates over the results of a group, which expire in the order in which they arrive.

An accumulator adds a value, removes the oldest one, and gives the value of the aggregate, each in
constant time (amortised), except that GROUP_CONCAT copies its text.

- SUM and AVG are exact: decimals are summed as decimals and doubles as multiples of the least
  double, so that removing a value leaves no rounding error behind. The sum is rounded once. It
  does not depend on results that have expired, nor on the order of addition.
- MIN and MAX store only values that no later value precedes: a queue in order of value.
- Under DISTINCT a value counts from its first occurrence until its last one expires.

The value None is an error: SUM, AVG, MIN and MAX are unbound while the group holds one; the other
aggregates ignore it. Source: SPARQL 1.1, section 18.5.1; docs/language.md, section 6.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from fractions import Fraction
from math import inf, isinf, isnan, nan
from typing import Protocol, TypeAlias

import pyoxigraph as ox

from spaseq.gpm.python.aggregates import order
from spaseq.plan.logical import ResultAggregate
from spaseq.rdf.event import Term
from spaseq.rdf.native._values import (
    DOUBLE,
    FLOAT,
    INTEGER,
    Value,
    add,
    decimal,
    decode,
    divide,
    double,
    exact,
    exact_of,
    float_,
    integer,
    lexical,
    subtract,
)
from spaseq.rdf.unbounded import cut, nearest_float

LEAST_EXPONENT = 1074
"""The least positive double is 2**-1074."""
_LEAST = 2**LEAST_EXPONENT
_ONE = 10**18
"""The unit of the sums of decimals."""
_EXACT = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)


Total: TypeAlias = tuple[int, int, Sequence[int], int, int, int]
"""For an argument: the unbound values, those that are not numbers, and as `ExactSum.of`."""


def sum_of(total: Total, average: bool) -> Term | None:
    """The value of SUM or AVG, from what the core measures of an argument."""
    unbound, others, kinds, integers, decimals, units = total
    if unbound or others:
        return None
    _, fractional, floats, doubles = kinds
    if doubles:
        value = double(_nearest(integers, decimals, units))
    elif floats:
        return sum_term(ExactSum.of(kinds, integers, decimals, units), sum(kinds), average)
    elif fractional:
        value = decimal(integers * _ONE + decimals)
    else:
        value = integer(integers)
    return _sum_term(value, sum(kinds), average)


def _nearest(integers: int, decimals: int, units: int) -> float:
    """The double nearest to the sum of some numbers, whose parts are those of `ExactSum.of`."""
    parts, divisor = (integers << LEAST_EXPONENT) + units, _LEAST
    if decimals:
        parts, divisor = parts * _ONE + (decimals << LEAST_EXPONENT), divisor * _ONE
    try:
        nearest: float = parts / divisor
    except OverflowError:
        nearest = inf if parts > 0 else -inf
    return nearest


def texts_of(aggregate: ResultAggregate, terms: Iterable[Term | None]) -> Term | None:
    """The value of a GROUP_CONCAT over some values."""
    bound = [term for term in terms if term is not None]
    if aggregate.distinct:
        bound = list(dict.fromkeys(bound))
    texts = [lexical(decode(term)) for term in bound]
    if None in texts:
        return None
    separator = " " if aggregate.separator is None else aggregate.separator
    return ox.Literal(separator.join(text for text in texts if text is not None))


class Accumulator(Protocol):
    """One aggregate of one group; `remove` takes the values in the order of `add`."""

    def add(self, term: Term | None) -> None: ...

    def remove(self, term: Term | None) -> None: ...

    def value(self) -> Term | None: ...


def accumulator(aggregate: ResultAggregate) -> Accumulator:
    """The empty accumulator of an aggregate."""
    name, distinct = aggregate.function, aggregate.distinct
    if aggregate.argument is None:
        return _All()
    if name == "COUNT":
        return _Distinct() if distinct else _Bound()
    if name in ("SUM", "AVG"):
        return _Sum(name == "AVG", distinct)
    if name in ("MIN", "MAX"):
        return _Best(-1 if name == "MIN" else 1)
    if name == "SAMPLE":
        return _Sample()
    assert name == "GROUP_CONCAT"
    return _Texts(" " if aggregate.separator is None else aggregate.separator, distinct)


class _All:
    """`COUNT(*)`."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, term: Term | None) -> None:
        self._count += 1

    def remove(self, term: Term | None) -> None:
        self._count -= 1

    def value(self) -> Term | None:
        return integer(self._count).term


class _Bound:
    """`COUNT` of an expression."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, term: Term | None) -> None:
        self._count += term is not None

    def remove(self, term: Term | None) -> None:
        self._count -= term is not None

    def value(self) -> Term | None:
        return integer(self._count).term


class _Distinct:
    """`COUNT(DISTINCT …)`."""

    def __init__(self) -> None:
        self._counts: Counter[Term] = Counter()

    def add(self, term: Term | None) -> None:
        if term is not None:
            self._counts[term] += 1

    def remove(self, term: Term | None) -> None:
        if term is not None:
            self._counts[term] -= 1
            if not self._counts[term]:
                del self._counts[term]

    def value(self) -> Term | None:
        return integer(len(self._counts)).term


class ExactSum:
    """A sum of numbers of all datatypes, from which numbers can be removed."""

    def __init__(self) -> None:
        self.kinds: Counter[int] = Counter()
        """The number of values of each kind of number."""
        self._whole = integer(0)
        """The sum of integers and decimals."""
        self._real = 0
        """The sum of floats and doubles, in units of the least double."""
        self._special: Counter[float] = Counter()

    @classmethod
    def of(cls, kinds: Sequence[int], integers: int, decimals: int, units: int) -> ExactSum:
        """The sum with these parts.

        Args:
            kinds: The number of integers, decimals, floats and doubles.
            integers: The sum of the integers.
            decimals: The sum of the decimals, times 10**18.
            units: The sum of floats and doubles, in units of the least double.
        """
        made = cls()
        made.kinds.update(dict(zip((INTEGER, _DECIMAL, FLOAT, DOUBLE), kinds, strict=True)))
        whole = _EXACT.add(Decimal(integers), _EXACT.scaleb(Decimal(decimals), -18))
        made._whole = _exactly(exact("decimal", whole))
        made._real = units
        return made

    def add(self, value: Value) -> None:
        self.kinds[_kind(value)] += 1
        if value.kind < FLOAT:
            self._whole = _exactly(add(self._whole, value))
        elif isnan(value.real):
            self._special[0.0] += 1
        elif isinf(value.real):
            self._special[value.real] += 1
        else:
            self._real += _units(value.real)

    def remove(self, value: Value) -> None:
        self.kinds[_kind(value)] -= 1
        if value.kind < FLOAT:
            self._whole = _exactly(subtract(self._whole, value))
        elif isnan(value.real):
            self._special[0.0] -= 1
        elif isinf(value.real):
            self._special[value.real] -= 1
        else:
            self._real -= _units(value.real)

    def value(self) -> Value:
        """The sum, rounded once; the integer 0 if there are no numbers."""
        if self.kinds[DOUBLE]:
            return double(self._rounded(False))
        if self.kinds[FLOAT]:
            return float_(self._rounded(True))
        if self.kinds[_DECIMAL]:
            return _exactly(exact("decimal", exact_of(self._whole)))
        return _exactly(exact("integer", cut(exact_of(self._whole))))

    def _rounded(self, single: bool) -> float:
        if self._special[0.0] or (self._special[inf] and self._special[-inf]):
            return nan
        if self._special[inf] or self._special[-inf]:
            return inf if self._special[inf] else -inf
        if single:
            return _single(exact_of(self._whole), self._real)
        total = Fraction(self._real, _LEAST) + Fraction(exact_of(self._whole))
        try:
            return float(total)
        except OverflowError:
            return inf if total > 0 else -inf


_DECIMAL = INTEGER + 1


def _exactly(total: Value | None) -> Value:
    """A sum of numbers, which is far below `unbounded.MOST_DIGITS` digits."""
    assert total is not None
    return total


def _kind(value: Value) -> int:
    """INTEGER, _DECIMAL, FLOAT or DOUBLE."""
    if value.kind in (INTEGER, FLOAT, DOUBLE):
        return value.kind
    return _DECIMAL if value.form != "integer" else INTEGER


def _units(real: float) -> int:
    numerator, denominator = real.as_integer_ratio()
    units: int = numerator * (_LEAST // denominator)
    return units


def _single(whole: Decimal, real: int) -> float:
    """The float nearest to a sum; `real` is a multiple of the least float, 2**-149."""
    halves = _EXACT.multiply(Decimal(real >> LEAST_EXPONENT - 149), 5**149)
    return nearest_float(_EXACT.add(whole, _EXACT.scaleb(halves, -149)))


def sum_term(total: ExactSum, count: int, average: bool) -> Term | None:
    """The value of SUM or AVG over a number of values."""
    return _sum_term(total.value(), count, average)


def _sum_term(value: Value, count: int, average: bool) -> Term | None:
    if not (average and count):
        return value.term
    mean = divide(value, integer(count))
    return None if mean is None else mean.term


class _Sum:
    """`SUM` and `AVG`."""

    def __init__(self, average: bool, distinct: bool):
        self._average, self._sum = average, ExactSum()
        self._count = self._errors = 0
        self._distinct = Counter[Term]() if distinct else None

    def add(self, term: Term | None) -> None:
        if term is not None and self._distinct is not None:
            self._distinct[term] += 1
            if self._distinct[term] > 1:
                return
        value = None if term is None else decode(term)
        if value is None or not INTEGER <= value.kind <= DOUBLE:
            self._errors += 1
        else:
            self._sum.add(value)
            self._count += 1

    def remove(self, term: Term | None) -> None:
        if term is not None and self._distinct is not None:
            self._distinct[term] -= 1
            if self._distinct[term]:
                return
            del self._distinct[term]
        value = None if term is None else decode(term)
        if value is None or not INTEGER <= value.kind <= DOUBLE:
            self._errors -= 1
        else:
            self._sum.remove(value)
            self._count -= 1

    def value(self) -> Term | None:
        return None if self._errors else sum_term(self._sum, self._count, self._average)


class _Best:
    """`MIN` and `MAX`; of several equal values, the first."""

    def __init__(self, sign: int):
        self._sign = sign
        self._errors = self._added = self._removed = 0
        self._queue: deque[tuple[Term, Value, int]] = deque()

    def add(self, term: Term | None) -> None:
        if term is None:
            self._errors += 1
        else:
            value = decode(term)
            while self._queue and order(value, self._queue[-1][1]) == self._sign:
                self._queue.pop()
            self._queue.append((term, value, self._added))
        self._added += 1

    def remove(self, term: Term | None) -> None:
        if term is None:
            self._errors -= 1
        elif self._queue[0][2] == self._removed:
            self._queue.popleft()
        self._removed += 1

    def value(self) -> Term | None:
        return None if self._errors or not self._queue else self._queue[0][0]


class _Sample:
    """`SAMPLE`: the oldest value."""

    def __init__(self) -> None:
        self._terms: deque[Term] = deque()

    def add(self, term: Term | None) -> None:
        if term is not None:
            self._terms.append(term)

    def remove(self, term: Term | None) -> None:
        if term is not None:
            self._terms.popleft()

    def value(self) -> Term | None:
        return self._terms[0] if self._terms else None


class _Texts:
    """`GROUP_CONCAT`; unbound while a value has no text."""

    def __init__(self, separator: str, distinct: bool):
        self._separator, self._distinct = separator, distinct
        self._terms: deque[Term] = deque()
        self._without_text = 0

    def add(self, term: Term | None) -> None:
        if term is not None:
            self._terms.append(term)
            self._without_text += lexical(decode(term)) is None

    def remove(self, term: Term | None) -> None:
        if term is not None:
            self._terms.popleft()
            self._without_text -= lexical(decode(term)) is None

    def value(self) -> Term | None:
        if self._without_text:
            return None
        terms = dict.fromkeys(self._terms) if self._distinct else self._terms
        return ox.Literal(self._separator.join(lexical(decode(term)) or "" for term in terms))
