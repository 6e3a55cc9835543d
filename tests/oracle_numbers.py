"""Numeric expressions of the reference semantics, over integers and decimals of any size.

pyoxigraph has integers of 64 bits and decimals of 128. If an expression or an aggregate contains a
number with more digits than `FEW`, or a datatype with a range, it is computed here with Python's
fractions, at their cost.
Source: SPARQL 1.1, section 17, XPath's arithmetic and casts; docs/language.md, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

import pyoxigraph as ox

from spaseq.parser import ast
from spaseq.rdf.event import Term
from tests.unit.rdf import exact
from tests.unit.rdf.exact import Number
from tests.unit.rdf.literals import XSD

FEW = 6
"""A few operations on numbers of at most so many digits stay within the bounds of pyoxigraph."""
DERIVED = frozenset(XSD + name for name in exact.RANGES)
"""Datatypes whose ranges pyoxigraph does not check."""
PLACES = 18
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


class NotNumericError(Exception):
    """The expression has a part that pyoxigraph must compute."""


class ValueMissingError(Exception):
    """An error of SPARQL."""


@lru_cache(maxsize=1 << 16)
def is_beyond(term: object) -> bool:
    """Whether a term is an integer or decimal of many digits, or of a datatype with a range."""
    if isinstance(term, ox.Literal) and term.datatype.value in DERIVED:
        return True
    number = exact.number_of(term)
    if number is None or not isinstance(number[1], Fraction):
        return False
    return sum(c.isdigit() for c in getattr(term, "value", "")) > FEW


def value_of(expression: ast.Expr, values: Mapping[str, Term | None]) -> Term | bool | None:
    """The value of an expression; None for an error.

    Raises:
        NotNumericError: where pyoxigraph must be asked.
    """
    constants = [_literal(n) for n in ast.walk(expression) if isinstance(n, ast.Literal)]
    if not any(map(is_beyond, (*constants, *values.values()))):
        raise NotNumericError
    try:
        found = _value(expression, values)
    except ValueMissingError:
        return None
    return found if isinstance(found, bool | ox.Literal) else written(found)


def truth_of(expression: ast.Expr, values: Mapping[str, Term | None]) -> bool:
    """Whether a filter is true; raises as `value_of`."""
    found = value_of(expression, values)
    if found is None or isinstance(found, bool):
        return found is True
    number = exact.number_of(found)
    if number is None:
        raise NotNumericError
    return not (number[1] == 0 or math.isnan(number[1]))


def _literal(node: ast.Literal) -> ox.Literal:
    if node.language is not None:
        raise NotNumericError
    return ox.Literal(node.lexical, datatype=ox.NamedNode(node.datatype))


def _value(node: ast.Expr, values: Mapping[str, Term | None]) -> Number | bool | ox.Literal:
    """A number, a boolean, or a literal as it is written."""
    match node:
        case ast.Var(name):
            term = values.get(name)
            if term is None:
                raise ValueMissingError
            return _numeric(term)
        case ast.Literal():
            return _numeric(_literal(node))
        case ast.Unary("!", operand):
            return not _truth(operand, values)
        case ast.Unary(operator, operand):
            name, real = _number(operand, values)
            return name, -real if operator == "-" else real
        case ast.Binary("&&" | "||" as operator, left, right):
            return _logical(operator, left, right, values)
        case ast.Binary(operator, left, right) if operator in _COMPARISONS:
            return _compared(operator, _number(left, values), _number(right, values))
        case ast.Binary(operator, left, right):
            return _computed(operator, _number(left, values), _number(right, values))
        case ast.In(operand, choices, negated):
            one = _number(operand, values)
            found = any(_compared("=", one, _number(choice, values)) for choice in choices)
            return found is not negated
        case ast.Call("ABS" | "CEIL" | "FLOOR" | "ROUND" as function, (operand,)):
            name, real = _number(operand, values)
            if not isinstance(real, Fraction):
                raise NotNumericError
            whole = {
                "ABS": abs,
                "CEIL": math.ceil,
                "FLOOR": math.floor,
                "ROUND": lambda number: math.floor(number + Fraction(1, 2)),
            }[function]
            return name, Fraction(whole(real))
        case ast.Call("BOUND", (ast.Var(name),)):
            return values.get(name) is not None
    raise NotNumericError


def _numeric(term: Term) -> ox.Literal:
    """A number, as it is written."""
    if not isinstance(term, ox.Literal):
        raise NotNumericError
    if exact.number_of(term) is None:
        raise ValueMissingError if term.datatype.value in DERIVED else NotNumericError
    return term


def _number(node: ast.Expr, values: Mapping[str, Term | None]) -> Number:
    found = _value(node, values)
    number = exact.number_of(found) if isinstance(found, ox.Literal) else found
    if isinstance(number, bool) or number is None:
        raise NotNumericError
    return number


def _truth(node: ast.Expr, values: Mapping[str, Term | None]) -> bool:
    found = _value(node, values)
    if isinstance(found, bool):
        return found
    _, real = _number(node, values)
    return not (real == 0 or math.isnan(real))


def _logical(
    operator: str, left: ast.Expr, right: ast.Expr, values: Mapping[str, Term | None]
) -> bool:
    """A side that decides the result does so even if the other side is an error."""
    decides = operator == "||"
    missing = False
    for side in (left, right):
        try:
            if _truth(side, values) is decides:
                return decides
        except ValueMissingError:
            missing = True
    if missing:
        raise ValueMissingError
    return not decides


def _compared(operator: str, a: Number, b: Number) -> bool:
    _, x, y = exact.promoted(a, b)
    if operator in ("=", "!="):
        return (x == y) is (operator == "=")
    return {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[operator]


def _computed(operator: str, a: Number, b: Number) -> Number:
    name, x, y = exact.promoted(a, b)
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        if operator == "/":
            return "decimal", _quotient(x, y)
        return name, {"+": x + y, "-": x - y, "*": x * y}[operator]
    raise NotNumericError


def _quotient(x: Fraction, y: Fraction) -> Fraction:
    if y == 0:
        raise ValueMissingError
    if x == 0:
        return x
    places = max(PLACES, _places(x), _places(y), _magnitude(y) - _magnitude(x) + PLACES)
    if not (_is_wide(x) or _is_wide(y)):
        places = PLACES
    cut = abs(x) * 10**places // abs(y)
    return Fraction(cut if (x < 0) is (y < 0) else -cut, 10**places)


def _is_wide(number: Fraction) -> bool:
    """Whether the number does not fit into 64 bits, or as a decimal into 128."""
    if number.denominator == 1 and not -(2**63) <= number < 2**63:
        return not -(2**127) <= number * 10**PLACES < 2**127
    return _places(number) > PLACES or not -(2**127) <= number * 10**PLACES < 2**127


def _places(number: Fraction) -> int:
    places = 0
    while (number * 10**places).denominator != 1:
        places += 1
    return places


def _magnitude(number: Fraction) -> int:
    """The exponent of the first digit."""
    scaled = abs(number)
    places = _places(number)
    return len(str(int(scaled * 10**places))) - 1 - places


def written(number: Number) -> ox.Literal:
    """An exact number in canonical form."""
    name, real = number
    if not isinstance(real, Fraction):
        raise NotNumericError
    places = _places(real)
    digits = str(abs(real.numerator) * 10**places // real.denominator).zfill(places + 1)
    point = len(digits) - places
    text = digits[:point] + ("." + digits[point:] if places else "")
    return ox.Literal(("-" if real < 0 else "") + text, datatype=ox.NamedNode(XSD + name))


# ------------------------------------------------------------------ order and aggregates


def ordered(terms: Sequence[Term], descending: bool) -> list[Term] | None:
    """Numbers in a stable order; None: pyoxigraph must order them."""
    numbers = [exact.number_of(term) for term in terms]
    if not any(map(is_beyond, terms)) or any(n is None or math.isnan(n[1]) for n in numbers):
        return None
    place = {id(term): number for term, number in zip(terms, numbers, strict=True)}

    def key(term: Term) -> Fraction | float:
        number = place[id(term)]
        assert number is not None
        return number[1]

    return sorted(terms, key=key, reverse=descending)


def total(name: str, terms: Iterable[Term]) -> Term | None:
    """SUM or AVG of exact numbers, some of them large; raises as `value_of`."""
    terms = list(terms)
    numbers = [exact.number_of(term) for term in terms]
    if not any(map(is_beyond, terms)):
        raise NotNumericError
    sum_: Number = ("integer", Fraction(0))
    for number in numbers:
        if number is None:
            return None
        sum_ = _computed("+", sum_, number)
    if name == "AVG":
        sum_ = _computed("/", sum_, ("integer", Fraction(len(terms))))
    return written(sum_)
