"""Terms, events and plain values ↔ JSON-able data, each term and event written once.

The format of saved state: no pickle, so a blob can be read by another version or refused,
never executed. Values are None, booleans, integers, floats, decimals, strings, terms, and
tuples of these; everything else is a programming error and raises TypeError.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyoxigraph as ox

from spaseq.rdf.event import Event, Term, Timestamp
from spaseq.rdf.tagged import tag_of, tagged_literal


class Writer:
    """Collects the tables that a `Reader` needs."""

    def __init__(self) -> None:
        self.terms: list[list[str]] = []
        self.events: list[list[Any]] = []
        self._term_numbers: dict[Term, int] = {}
        self._event_numbers: dict[int, int] = {}
        self._kept: list[Event] = []

    def term(self, term: Term) -> int:
        number = self._term_numbers.get(term)
        if number is None:
            number = self._term_numbers[term] = len(self.terms)
            self.terms.append(_term_parts(term))
        return number

    def time(self, time: Timestamp) -> list[Any]:
        return [time.micros, time.domain, self.term(time.term)]

    def event(self, event: Event, facts: bool = True) -> int:
        """The event's number; its graph is kept only where something can still read it."""
        number = self._event_numbers.get(id(event))
        if number is None:
            number = self._event_numbers[id(event)] = len(self.events)
            self._kept.append(event)
            self.events.append(
                [
                    event.stream,
                    self.time(event.time),
                    event.ordinal,
                    [],
                    None if event.name is None else self.term(event.name),
                ]
            )
        if facts and not self.events[number][3]:
            self.events[number][3] = [[self.term(t) for t in fact] for fact in event.facts]
        return number

    def value(self, value: Any) -> Any:
        """A cell: numbers and None as they are, the rest as [tag, …]."""
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, ox.NamedNode | ox.BlankNode | ox.Literal):
            return ["t", self.term(value)]
        if isinstance(value, str):
            return ["s", value]
        if isinstance(value, float):
            return ["f", value.hex()]
        if isinstance(value, Decimal):
            return ["d", str(value)]
        if isinstance(value, tuple):
            return ["l", *map(self.value, value)]
        raise TypeError(f"{type(value).__name__} cannot be part of saved state")

    def tables(self) -> dict[str, Any]:
        return {"terms": self.terms, "events": self.events}


class Reader:
    """Reads what a `Writer` wrote; equal numbers give the very same objects."""

    def __init__(self, tables: dict[str, Any]):
        self._terms = [_term(parts) for parts in tables["terms"]]
        self._events = [
            Event(
                stream,
                self.time(time),
                ordinal,
                tuple((self.term(s), self.term(p), self.term(o)) for s, p, o in facts),
                None if name is None else self._name(name),
            )
            for stream, time, ordinal, facts, name in tables["events"]
        ]

    def term(self, number: int) -> Term:
        return self._terms[number]

    def time(self, parts: list[Any]) -> Timestamp:
        micros, domain, number = parts
        literal = self.term(number)
        assert isinstance(literal, ox.Literal)
        return Timestamp(micros, domain, literal)

    def event(self, number: int) -> Event:
        return self._events[number]

    def value(self, data: Any) -> Any:
        if not isinstance(data, list):
            return data
        read = _READ[data[0]]
        return read(self, data)

    def _name(self, number: int) -> ox.NamedNode | ox.BlankNode:
        name = self.term(number)
        assert not isinstance(name, ox.Literal)
        return name


_READ: dict[str, Callable[[Reader, list[Any]], Any]] = {
    "t": lambda reader, data: reader.term(data[1]),
    "s": lambda reader, data: data[1],
    "f": lambda reader, data: float.fromhex(data[1]),
    "d": lambda reader, data: Decimal(data[1]),
    "l": lambda reader, data: tuple(map(reader.value, data[1:])),
}


def _term_parts(term: Term) -> list[str]:
    if isinstance(term, ox.NamedNode):
        return ["i", term.value]
    if isinstance(term, ox.BlankNode):
        return ["b", term.value]
    if term.language is not None:
        return ["@", term.value, tag_of(term)]
    return ["^", term.value, term.datatype.value]


def _term(parts: list[str]) -> Term:
    kind, value = parts[0], parts[1]
    if kind == "i":
        return ox.NamedNode(value)
    if kind == "b":
        return ox.BlankNode(value)
    if kind == "@":
        return tagged_literal(value, parts[2])
    return ox.Literal(value, datatype=ox.NamedNode(parts[2]))
