"""What the core's registers hold ↔ the same without the numbers that one run gives to terms.

Invariant: equal states there are equal cells here, so groups stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import pyoxigraph as ox

from spaseq.engine.aggregates import heeds_distinct
from spaseq.nfa.native.register_tables import FAILED, NEVER_BOUND, OPENED
from spaseq.nfa.state import Cell, Number
from spaseq.plan.logical import Register
from spaseq.rdf._values import DECIMAL, DOUBLE, FLOAT, INTEGER, WIDE, decode
from spaseq.rdf.checked import listed, refuse, whole
from spaseq.rdf.event import Term

_DIGITS = 8
"""Of each number in the text of a state that has several."""
_NO_TERM = {OPENED: -1, NEVER_BOUND: -2, FAILED: -3}
_MOST_COUNTED = 2**31
_NUMERIC = frozenset((INTEGER, DECIMAL, WIDE, FLOAT, DOUBLE))
_STRING = ox.NamedNode("http://www.w3.org/2001/XMLSchema#string")
_UNSETTLED = frozenset((_NO_TERM[OPENED], _NO_TERM[NEVER_BOUND]))
"""Of a first value."""
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


class CellCheck:
    """Whether cells of a saved state are what a register or a row may hold, by its terms."""

    def __init__(self, terms: Sequence[Term]):
        self._terms = terms
        self._numeric: dict[int, bool] = {}

    def row(self, cells: Sequence[object], where: str) -> None:
        """The cells of a row, or of a key."""
        most = len(self._terms)
        for cell in cells:
            if type(cell) is not int or not (0 <= cell <= most or cell == GONE):
                refuse(where, f"a cell does not hold one of the {most} terms")

    def name(self, cell: int, where: str) -> None:
        """The name of a graph, or none."""
        if isinstance(self._term(cell, where), ox.Literal):
            refuse(where, "has a literal as the name of its graph")

    def stamp(self, cell: int, where: str) -> None:
        """The literal of a time, or none."""
        if not isinstance(self._term(cell, where), ox.Literal | None):
            refuse(where, "has a time that is no literal")

    def register(self, register: Register, cell: object, where: str) -> None:
        """What partial matches remember in a register."""
        if register.kind in ("iterations", "count"):
            whole(cell, where, 0, _MOST_COUNTED)
        elif register.kind != "aggregate":
            if register.kind != "first" or type(cell) is not int or cell not in _UNSETTLED:
                self.row((cell,), where)
        elif cell in (_NO_TERM[FAILED], GONE, 0) and type(cell) is int:
            if register.function == "COUNT" and cell and not _several(register):
                refuse(where, "a count has failed")
        elif _several(register):
            state, *values = listed(cell, where)
            self._state(register, state, where)
            for value in values:
                whole(value, where, 1, len(self._terms))
        else:
            self._state(register, cell, where)

    def _state(self, register: Register, cell: object, where: str) -> None:
        """The state of an aggregate that has seen a value, but for the values it has taken."""
        if register.function == "COUNT":
            whole(cell, where, 1, _MOST_COUNTED)
        elif register.function == "AVG":
            total, count = listed(cell, where, 2)
            self._is_number(total, where)
            whole(count, where, 1, _MOST_COUNTED)
        elif register.function == "SUM":
            self._is_number(cell, where)
        else:
            term = self._terms[whole(cell, where, 1, len(self._terms)) - 1]
            if register.function == "GROUP_CONCAT" and not _is_plain(term):
                refuse(where, "what was joined is no string")

    def _is_number(self, cell: object, where: str) -> None:
        number = whole(cell, where, 1, len(self._terms))
        known = self._numeric.get(number)
        if known is None:
            known = self._numeric[number] = decode(self._terms[number - 1]).kind in _NUMERIC
        if not known:
            refuse(where, "a sum is no number")

    def _term(self, cell: int, where: str) -> Term | None:
        self.row((cell,), where)
        return self._terms[cell - 1] if cell > 0 else None


def _is_plain(term: Term) -> bool:
    return isinstance(term, ox.Literal) and term.language is None and term.datatype == _STRING


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
    if not _several(register):
        return _one_of(register, number, terms)
    number, *values = _unpacked(text)
    state = _one_of(register, number, terms)
    cells = [state, *map(terms, values)]
    return GONE if GONE in cells else cells


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
        cell = terms(total)
        return GONE if cell == GONE else [cell, count]
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
