"""What the core's registers hold ↔ the same without the numbers that one run gives to terms.

Invariant: equal states there are equal cells here, so groups stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import pyoxigraph as ox

from spaseq.engine.aggregates import heeds_distinct
from spaseq.nfa.native_registers import FAILED, NEVER_BOUND, OPENED
from spaseq.nfa.state import Cell, Number
from spaseq.plan.logical import Register
from spaseq.rdf.event import Term

_DIGITS = 8
"""Of each number in the text of a state that has several."""
_NO_TERM = {OPENED: -1, NEVER_BOUND: -2, FAILED: -3}
GONE = -4
"""A term that the window has forgotten: time has gone on without an event."""


class Terms:
    """The terms that some numbers of a run stand for; `look` knows them."""

    def __init__(self, look: Callable[[int], Term | None]):
        self.look = look
        self.found: list[Term] = []
        self._places: dict[int, Number] = {**_NO_TERM, 0: 0}

    def __call__(self, number: int) -> Number:
        place = self._places.get(number)
        if place is None:
            term = self.look(number)
            if term is not None:
                self.found.append(term)
            place = self._places[number] = GONE if term is None else len(self.found)
        return place


class Numbers:
    """The numbers that some terms have in another run; `hold` gives them."""

    def __init__(self, terms: Sequence[Term], hold: Callable[[Term], int]):
        self.hold = hold
        self._numbers = {apart: number for number, apart in _NO_TERM.items()}
        self._numbers |= {place: hold(term) for place, term in enumerate(terms, 1)}
        self._numbers |= {0: 0, GONE: 0}

    def __call__(self, place: Number) -> int:
        return self._numbers[place]


def cell_of(register: Register, number: int, terms: Terms) -> Cell:
    """What a register of a run holds, of its number there."""
    if register.kind in ("iterations", "count"):
        return number
    if register.kind != "aggregate":
        return terms(number)
    if number in (0, FAILED) or (register.function == "COUNT" and not _several(register)):
        return _one_of(register, number, terms)
    text = terms.look(number)
    if text is None:
        return GONE
    if _several(register):
        number, *values = _unpacked(text)
        return [_one_of(register, number, terms), *map(terms, values)]
    return _one_of(register, number, terms)


def number_of(register: Register, cell: Cell, numbers: Numbers) -> int:
    """The number that a register of another run holds for it."""
    if register.kind in ("iterations", "count"):
        return cast(int, cell)
    if register.kind == "aggregate" and _several(register) and isinstance(cell, list):
        first, *values = cell
        parts = (_one_number(register, first, numbers), *map(numbers, values))
        return numbers.hold(_packed(*parts))
    return _one_number(register, cell, numbers)


def _several(register: Register) -> bool:
    """Whether the state of an aggregate has the values it has taken."""
    return register.distinct and heeds_distinct(register.function)


def _one_of(register: Register, number: int, terms: Terms) -> Cell:
    """The state of an aggregate but for the values it has taken."""
    if register.function == "COUNT":
        return number
    if register.function == "AVG" and number not in (0, FAILED):
        total, count = _unpacked(terms.look(number))
        return [terms(total), count]
    return terms(number)


def _one_number(register: Register, cell: Cell, numbers: Numbers) -> int:
    if isinstance(cell, list):
        total, count = cell
        return numbers.hold(_packed(numbers(total), count))
    return cell if register.function == "COUNT" else numbers(cell)


def _packed(*numbers: int) -> ox.Literal:
    return ox.Literal("".join(f"{number:0{_DIGITS}x}" for number in numbers))


def _unpacked(text: Term | None) -> list[int]:
    assert isinstance(text, ox.Literal)
    return [
        int(text.value[place : place + _DIGITS], 16) for place in range(0, len(text.value), _DIGITS)
    ]
