"""Drawn queries whose filters and BINDs read values over iterations, and events of odd values.

All aggregates, with and without DISTINCT, counts, first and last values; over integers,
decimals, doubles, floats, texts, IRIs and blank nodes, so that sums are promoted and fail.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pyoxigraph as ox
from strategies import (
    STREAMS,
    Case,
    Gpm,
    _form,
    _GpmDraw,
    _PlainGpms,
    _PlainSequence,
    _query,
    _Random,
    _SequenceDraw,
    _sources,
    _window,
    events_of,
    iri,
    may_wait,
)

from spaseq.rdf.event import Event, Term

XSD = "http://www.w3.org/2001/XMLSchema#"


def typed(text: str, name: str) -> ox.Literal:
    return ox.Literal(text, datatype=ox.NamedNode(XSD + name))


NUMBERS: Sequence[Term] = (
    *(typed(text, "integer") for text in ("1", "2", "-3", "2147483648")),
    *(typed(text, "decimal") for text in ("0.5", "-0.25")),
    *(typed(text, "double") for text in ("25", "0.1", "-0.5")),
    typed("0.5", "float"),
)
TEXTS: Sequence[Term] = tuple(map(ox.Literal, ("", "x", "X", "xy", 'a "b"', "é")))
MIXED: Sequence[Term] = (
    *NUMBERS,
    *TEXTS,
    typed("true", "boolean"),
    typed("2026-01-01", "date"),
    typed("NaN", "double"),
    ox.Literal("x", language="en"),
    iri("a"),
    ox.BlankNode("n"),
)
"""Neither MIN nor MAX is asked of them: SPARQL leaves their order open."""
ODD: Sequence[Term] = (
    *MIXED,
    typed("01", "integer"),
    typed("7", "byte"),
    typed("x", "integer"),
    *(typed(text, "decimal") for text in ("1.0", "1.50")),
    *(typed(text, "double") for text in ("1", "2.5E1", "-0.0")),
    typed("1", "float"),
)
"""Also such as are not written in their canonical forms, which the reference forgets."""


FUNCTIONS = ("FIRST", "LAST", "COUNT", "SUM", "AVG", "SAMPLE", "GROUP_CONCAT", "MIN", "MAX")


class _RunningGpms(_PlainGpms):
    """Their conditions read what runs over the iterations."""

    functions: tuple[str, ...] = FUNCTIONS

    def term(self, concatenated: bool = False) -> str:
        grouped = [name for name in self._values() if name in self.units]
        if not grouped or self._one_in(6):
            return f"COUNT({self._pick(*(gpm.name for gpm in self.gpms))})"
        name = self._pick(*grouped)
        function = self._pick(*self.functions)
        if function in ("FIRST", "LAST"):
            return f"{function}(?{name})"
        distinct = self._pick("", "DISTINCT ")
        separator = self._pick("", '; SEPARATOR="-"') if function == "GROUP_CONCAT" else ""
        return f"{function}({distinct}?{name}{separator})"

    def _condition(self, gpm: Gpm) -> str:
        own, term = f"?{gpm.value}", self.term()
        compare = self._pick("<=", ">=", "!=", "<", ">", "=")
        match self._choose.number(0, 7):
            case 0:
                return super()._condition(gpm)
            case 1:
                return f"FILTER({own} {compare} {term})"
            case 2 | 3:
                return f"FILTER(COALESCE({term} {compare} {self.term()}, true))"
            case 4:
                return f"FILTER(STRLEN(STR({term})) {compare} {self._pick('1', '3', '6')})"
            case 5:
                return f"FILTER(COALESCE({own} + {term} {compare} 3, {self._pick('1', '0')} = 1))"
        return f"FILTER({self._pick('1', '2', '3')} {compare} {term})"

    def _assign(self, gpm: Gpm) -> None:
        name = self._pick(f"z{gpm.name.lower()}", "z")
        gpm.extra.add(name)
        value = self._pick(self.term(), f"COALESCE({self.term()}, 0)", f"1 + {self.term()}")
        gpm.lines.append(f"BIND({value} AS ?{name})")


class _MixedGpms(_RunningGpms):
    functions = FUNCTIONS[:-2]


def running_case(seed: int) -> Case:
    """The case of a seed."""
    chance = random.Random(seed)
    choose = _Random(chance)
    streams = STREAMS[: choose.of((1, 1, 2))]
    dates, keyed = choose.number(0, 4) == 4, choose.number(0, 3) == 3
    room, kind = choose.of((2, 3, 4, 3, 5)), choose.of((_PlainSequence,) * 3 + (_SequenceDraw,))
    tree = kind(choose, room, False).sequence(2, True, outermost=True)
    values = chance.choice(((), NUMBERS, NUMBERS, TEXTS, MIXED))
    drawing = _MixedGpms if values is MIXED else _RunningGpms
    written: _GpmDraw = drawing(choose, tree, streams, keyed, dates)
    waits = choose.number(0, 3) > 0 or may_wait(tree)
    clauses = [_window(choose, waits), *_sources(streams, keyed)]
    emits = ("",) * 8 + ("NEXT", "MAX", "LAST", "STRICT")
    clauses += [f"EMIT {emit}" for emit in [choose.of(emits)] if emit]
    query = _query(choose, _form(choose, written), clauses, tree, written)
    events = events_of(choose, streams, dates, query)
    if not values:
        return Case(query, events)
    share = 1.0 if values is TEXTS else chance.choice((0.3, 0.7))
    odd = {n: [_odd(e, chance, values, share) for e in some] for n, some in events.items()}
    return Case(query, odd)


def _odd(event: Event, chance: random.Random, values: Sequence[Term], share: float) -> Event:
    """The event with a share of its values exchanged."""
    facts = [
        (s, p, chance.choice(values) if chance.random() < share else o) for s, p, o in event.facts
    ]
    return replace(event, facts=list(dict.fromkeys(facts)))
