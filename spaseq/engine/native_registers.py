"""What the core's registers hold ↔ what those of an `AutomatonRun` hold.

Terms are numbers there, states of aggregates too (`spaseq/engine/_aggregates.pyx`).

Invariant: equal states there are equal states here, so groups stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pyoxigraph as ox

from spaseq.engine.aggregates import Running, RunningAggregates, heeds_distinct
from spaseq.nfa.native_registers import FAILED, NEVER_BOUND, OPENED
from spaseq.nfa.registers import OPEN, VOID
from spaseq.plan.logical import Register
from spaseq.rdf.event import Term

_DIGITS = 8
"""Of each number in the text of a state that has several."""

TermOf = Callable[[int], Term | None]
NumberOf = Callable[[Term | None], int]


def cell_of(register: Register, number: int, term_of: TermOf) -> Any:
    """What a register holds, of the number it holds in the core."""
    if register.kind in ("iterations", "count"):
        return number
    if register.kind == "aggregate":
        return _state_of(register, number, term_of)
    if number in (OPENED, NEVER_BOUND):
        return OPEN if number == OPENED else VOID
    return term_of(number)


def number_of(register: Register, cell: Any, number_of_term: NumberOf) -> int:
    """The number that a register holds in the core, of what it holds."""
    if register.kind in ("iterations", "count"):
        return cast(int, cell)
    if register.kind == "aggregate":
        return _state_number(cell, number_of_term)
    if cell is OPEN or cell is VOID:
        return OPENED if cell is OPEN else NEVER_BOUND
    return number_of_term(cell)


def _state_of(register: Register, number: int, term_of: TermOf) -> Running:
    name, distinct = register.function, register.distinct and heeds_distinct(register.function)
    start = RunningAggregates().start(name, register.separator, distinct)
    _, separator, count, _, failed = start.state
    taken: tuple[Term, ...] | None = () if distinct else None
    if distinct and number not in (0, FAILED):
        number, *values = _unpacked(term_of(number))
        taken = tuple(cast(Term, term_of(value)) for value in values)
    value = None
    if name == "COUNT":
        count = number
    elif number == FAILED:
        failed = True
    elif name == "AVG" and number:
        total, count = _unpacked(term_of(number))
        value = term_of(total)
    else:
        value = term_of(number)
    return Running((name, separator, count, value, failed), taken)


def _state_number(cell: Running, number_of_term: NumberOf) -> int:
    name, _, count, value, failed = cell.state
    if failed:
        return FAILED
    number = count if name == "COUNT" else number_of_term(value)
    if name == "AVG" and value is not None:
        number = number_of_term(_packed(number, count))
    if cell.taken and heeds_distinct(name):
        number = number_of_term(_packed(number, *map(number_of_term, cell.taken)))
    return number


def _packed(*numbers: int) -> ox.Literal:
    return ox.Literal("".join(f"{number:0{_DIGITS}x}" for number in numbers))


def _unpacked(text: Term | None) -> list[int]:
    assert isinstance(text, ox.Literal)
    return [
        int(text.value[place : place + _DIGITS], 16) for place in range(0, len(text.value), _DIGITS)
    ]
