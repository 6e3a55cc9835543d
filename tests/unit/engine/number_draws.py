"""Numeric literals around the limits of machine numbers, and their order by fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pyoxigraph as ox

from tests.unit.rdf import exact
from tests.unit.rdf.literals import literal

CENTRES = (
    *(0, 1, 2**24, 2**31, 2**53, 2**63, 2**64, 2**128, 10**18, 10**20, 10**38, 10**39, 10**100),
    *(10**308, 2**1024, 10**400),
)
REALS = ("NaN", "INF", "-INF", "0", "-0.0", "5e-324", "1e-40", "1e-300", "1.7976931348623157e308")


def whole(chance: random.Random) -> int:
    number = chance.choice(CENTRES) + chance.choice((0, 0, 1, -1, 2, -3, 1000, -(2**20), 2**90))
    return -number if chance.random() < 0.4 else number


def drawn(chance: random.Random) -> ox.Literal:
    """An integer, decimal, double or float near one of the limits."""
    number = whole(chance)
    match chance.randrange(10):
        case 0 | 1 | 2 | 3:
            text = f"{number:+}" if chance.random() < 0.1 else str(number)
            return literal(text, "integer")
        case 4:
            return literal(f"{number}.{'0' * chance.randint(1, 30)}", "decimal")
        case 5 | 6:
            places = chance.choice((1, 17, 18, 19, 25, 38, 60))
            digits = chance.choice((str(chance.randrange(10**places)), "1", "5" + "0" * places))
            return literal(f"{number}.{digits[:places].zfill(places)}", "decimal")
        case 7:
            text = chance.choice(REALS)
            return literal(text, chance.choice(("double", "float")))
        case 8:
            return literal(repr(near(number, chance)), "double")
        case _:
            return literal(repr(near(number, chance)), "float")


def near(number: int, chance: random.Random) -> float:
    """A double at a number, or next to it."""
    real = exact.to_double(Fraction(number))
    towards = chance.choice((None, math.inf, -math.inf))
    return real if towards is None else math.nextafter(real, towards)


def holds(operator: str, a: ox.Literal, b: ox.Literal) -> bool:
    """Whether SPARQL's comparison of two numbers is true; NaN is comparable to nothing else."""
    one, other = exact.number_of(a), exact.number_of(b)
    assert one is not None
    assert other is not None
    _, x, y = exact.promoted(one, other)
    return {
        "=": x == y,
        "!=": x != y,
        "<": x < y,
        "<=": x <= y,
        ">": x > y,
        ">=": x >= y,
    }[operator]


def is_nan(term: ox.Literal) -> bool:
    return term.value == "NaN"
