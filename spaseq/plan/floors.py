"""Floors of a template: thresholds of a step after `;`, where a filter also decides the next event.

The queries of a template accept ever fewer events, in the order of their thresholds
(`spaseq.plan.thresholds`). The *rank* of a row is the number of queries that accept it; these come
first in the order. A partial match that waits for the step has a *floor*: the greatest rank of the
rows since it began to wait. Queries below the floor have taken their next event; the others still
wait. A row with a rank above the floor is therefore the next one of exactly the queries from the
floor up to the rank:

    FILTER(?b > 100)    FILTER(?b > 250)    FILTER(?b > 400)        waiting: floor 0
    ?b is 300: rank 2, taken by the first two queries               floor 2
    ?b is 200: rank 1, taken by none                                floor 2
    ?b is 500: rank 3, taken by the third query                     gone

The floor rises when the instant closes, since all rows of the first instant are taken. It depends
on the rows that the partial match could be joined with, whatever the events of its earlier steps;
thresholds of other steps only restrict the queries that have a match. Partial matches with equal
registers and equal floors cannot be distinguished by anything to come, so they become one group.

The query of the template computes the rank with a BIND, as a search in the order of the thresholds,
holds the floor in a register that the first step binds to 0, and compares both with a filter, which
a range index serves. A second BIND stores the floor at which a row was taken in the match. The
automaton raises the floor (`ast.Floor`). Cost: a row visits the groups whose floor it raises, and
all of them with the same registers become one, so the visits are amortised by the partial matches
that come to wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pyoxigraph as ox

from spaseq.parser import ast
from spaseq.plan.thresholds import Threshold
from spaseq.rdf.event import Term

_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
_BOOLEAN = "http://www.w3.org/2001/XMLSchema#boolean"


def floor_of(gpm: int, thresholds: Sequence[Threshold]) -> ast.Floor:
    """The floor of a step with some thresholds."""
    return ast.Floor(f".floor{gpm}", f".rank{gpm}", f".taken{gpm}", len(thresholds[0].constants))


def with_floor(query: ast.Query, gpm: int, thresholds: Sequence[Threshold]) -> ast.Query:
    """The query of a template with a floor.

    Args:
        query: The template's query. Its first step, and the step with the floor, occur once.
        gpm: The number of the GPM of the step.
        thresholds: The thresholds of the GPM.
    """
    floor = floor_of(gpm, thresholds)
    register, rank, taken = map(ast.Var, (floor.register, floor.rank, floor.taken))
    least, *stricter = _different(thresholds)
    ranks = ast.Call("COALESCE", (_rank(thresholds, least, stricter), _integer(least)))
    begun = query.sequence.steps[0].unit
    assert isinstance(begun, ast.GpmRef)
    defines = list(query.defines)
    for number, define in enumerate(defines):
        if define.name == begun.name:
            defines[number] = _with(define, ast.Bind(_integer(0), register))
    defines[gpm] = replace(
        _with(
            defines[gpm],
            ast.Bind(ranks, rank),
            ast.Filter(ast.Binary(">", rank, register)),
            ast.Bind(register, taken),
        ),
        floor=floor,
    )
    return replace(query, defines=tuple(defines))


def number_of(term: Term | None) -> int:
    """The number that a rank or a floor is; 0 for any other term."""
    if isinstance(term, ox.Literal) and term.value.isdecimal():
        return int(term.value)
    return 0


def _with(define: ast.Define, *elements: ast.Element) -> ast.Define:
    """A GPM with more elements."""
    pattern = define.pattern
    return replace(define, pattern=replace(pattern, elements=(*pattern.elements, *elements)))


def _different(thresholds: Sequence[Threshold]) -> list[int]:
    """The numbers of queries that have the first constants, the second ones, and so on, or those
    before them."""
    rows = list(zip(*(threshold.constants for threshold in thresholds), strict=True))
    ends = [number for number in range(1, len(rows)) if rows[number] != rows[number - 1]]
    return [*ends, len(rows)]


def _rank(thresholds: Sequence[Threshold], least: int, stricter: Sequence[int]) -> ast.Expr:
    """The rank of a row that the first `least` queries accept, by binary search.

    Args:
        thresholds: The thresholds.
        least: As in the result of `_different`.
        stricter: The following numbers of that result.
    """
    if not stricter:
        return _integer(least)
    middle = len(stricter) // 2
    first = stricter[middle - 1] if middle else least
    reached = _accepts(thresholds, first)
    more = _rank(thresholds, stricter[middle], stricter[middle + 1 :])
    fewer = _rank(thresholds, least, stricter[:middle])
    return ast.Call("IF", (reached, more, fewer))


def _accepts(thresholds: Sequence[Threshold], query: int) -> ast.Expr:
    """Whether a query accepts a row; false where a comparison errs."""
    found: ast.Expr | None = None
    for each in thresholds:
        operator = cast("Any", each.operator)
        compared = ast.Binary(operator, ast.Var(each.variable), each.constants[query])
        found = compared if found is None else ast.Binary("&&", found, compared)
    assert found is not None
    return ast.Call("COALESCE", (found, ast.Literal("false", _BOOLEAN)))


def _integer(number: int) -> ast.Literal:
    return ast.Literal(str(number), _INTEGER)
