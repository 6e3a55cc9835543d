"""Terms, events and plain values ↔ JSON-serialisable data, each term and event written once.

Saved state contains no pickle, so another version can read or refuse a blob but never executes
it. Values are None, booleans, integers, floats, decimals, strings, terms, and tuples of these;
anything else is a programming error and raises TypeError.

A `Reader` validates its input: data that a `Writer` cannot have written raises a `StateError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyoxigraph as ox

from spaseq.rdf.checked import GREATEST, LEAST, MOST_ORDINAL, listed, record, refuse, text, whole
from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Fact, Term, Timestamp
from spaseq.rdf.syntax import MAX_NESTED_TRIPLES
from spaseq.rdf.tagged import tag_of, tagged_literal

_MAX_NESTING = 8
"""Nesting depth of tuples; a match's identity needs four."""


class Writer:
    """Numbers terms and events, and collects the tables that a `Reader` needs."""

    def __init__(self) -> None:
        self.terms: list[list[str]] = []
        self.events: list[list[Any]] = []
        self._term_numbers: dict[Term, int] = {}
        self._event_numbers: dict[int, int] = {}
        self._alive: list[Event] = []  # so that no `id` is reused

    def term(self, term: Term) -> int:
        number = self._term_numbers.get(term)
        if number is None:
            number = self._term_numbers[term] = len(self.terms)
            self.terms.append(_term_parts(term))
        return number

    def time(self, time: Timestamp) -> list[Any]:
        return [time.micros, time.domain, self.term(time.term)]

    def event(self, event: Event, facts: bool = True) -> int:
        """The event's number; `facts` says whether its graph is needed too."""
        number = self._event_numbers.get(id(event))
        if number is None:
            number = self._event_numbers[id(event)] = len(self.events)
            self._alive.append(event)
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
        """A value: None, booleans and integers unchanged, anything else as [tag, …]."""
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple):
            return ["t", self.term(value)]
        if isinstance(value, str):
            return ["s", value]
        if isinstance(value, float):
            return ["f", value.hex()]
        if isinstance(value, Decimal):
            return ["d", str(value)]
        if isinstance(value, tuple):
            return ["l", *map(self.value, value)]
        raise TypeError(f"{type(value).__name__} cannot be saved")

    def tables(self) -> dict[str, Any]:
        return {"terms": self.terms, "events": self.events}


class Reader:
    """Reads the tables of a `Writer`; equal numbers return identical objects.

    Raises:
        StateError: if the tables are invalid; the methods raise it for invalid data.
    """

    def __init__(self, tables: Any):
        record(tables, "tables", ("terms", "events"))
        self._terms = [
            _term(parts, f"tables.terms[{number}]")
            for number, parts in enumerate(listed(tables["terms"], "tables.terms"))
        ]
        self._events = [
            self._event(fields, f"tables.events[{number}]")
            for number, fields in enumerate(listed(tables["events"], "tables.events"))
        ]

    def term(self, number: Any, where: str = "a term") -> Term:
        return self._terms[whole(number, where, 0, len(self._terms) - 1)]

    def time(self, parts: Any, where: str = "a time") -> Timestamp:
        micros, domain, number = listed(parts, where, 3)
        literal = self.term(number, where)
        if domain not in (NUMBER, DATE_TIME) or not isinstance(literal, ox.Literal):
            refuse(where, "is not a timestamp")
        return Timestamp(whole(micros, where, LEAST, GREATEST), domain, literal)

    def event(self, number: Any, where: str = "an event") -> Event:
        return self._events[whole(number, where, 0, len(self._events) - 1)]

    def value(self, data: Any, where: str = "a value", depth: int = 0) -> Any:
        if data is None or type(data) is bool:
            return data
        if type(data) is int:
            return whole(data, where, LEAST, GREATEST)
        tag, *parts = listed(data, where) or [None]
        if tag == "l" and depth < _MAX_NESTING:
            return tuple([self.value(part, where, depth + 1) for part in parts])
        read = _READ.get(tag) if type(tag) is str else None
        if read is None or len(parts) != 1:
            refuse(where, "is not a value")
        return read(self, parts[0], where)

    def _event(self, fields: Any, where: str) -> Event:
        stream, time, ordinal, facts, name = listed(fields, where, 5)
        return Event(
            text(stream, where),
            self.time(time, where),
            whole(ordinal, where, 0, MOST_ORDINAL),
            tuple([self._fact(fact, where) for fact in listed(facts, where)]),
            None if name is None else self._name(name, where),
        )

    def _fact(self, fact: Any, where: str) -> Fact:
        subject, predicate, value = [self.term(term, where) for term in listed(fact, where, 3)]
        if isinstance(subject, ox.Literal | ox.Triple) or not isinstance(predicate, ox.NamedNode):
            refuse(where, "has a fact that is not a triple")
        return subject, predicate, value

    def _name(self, number: Any, where: str) -> ox.NamedNode | ox.BlankNode:
        name = self.term(number, where)
        if not isinstance(name, ox.NamedNode | ox.BlankNode):
            refuse(where, "has a name of its graph that is not an IRI or blank node")
        return name


def _float(reader: Reader, data: Any, where: str) -> float:
    try:
        return float.fromhex(text(data, where))
    except (ValueError, OverflowError):
        refuse(where, "is not a float")


def _decimal(reader: Reader, data: Any, where: str) -> Decimal:
    try:
        return Decimal(text(data, where))
    except ArithmeticError:
        refuse(where, "is not a decimal")


_READ: dict[str, Callable[[Reader, Any, str], Any]] = {
    "t": Reader.term,
    "s": lambda reader, data, where: text(data, where),
    "f": _float,
    "d": _decimal,
}


def _term_parts(term: Term) -> list[str]:
    """The texts of a term; for a triple term, those of its parts in sequence."""
    parts: list[str] = []
    while isinstance(term, ox.Triple):
        subject = term.subject
        kind = "i" if isinstance(subject, ox.NamedNode) else "b"
        parts += ("<", kind, subject.value, term.predicate.value)  # type: ignore[union-attr]
        term = term.object
    if isinstance(term, ox.NamedNode):
        return [*parts, "i", term.value]
    if isinstance(term, ox.BlankNode):
        return [*parts, "b", term.value]
    if term.language is not None:
        return [*parts, "@", term.value, tag_of(term)]
    return [*parts, "^", term.value, term.datatype.value]


def _term(parts: Any, where: str) -> Term:
    texts = [text(part, where) for part in listed(parts, where)]
    begin = 0
    while texts[begin : begin + 1] == ["<"]:
        begin += 4
    if begin > 4 * MAX_NESTED_TRIPLES:
        refuse(where, "is a triple term that is nested too deeply")
    try:
        term: Term = _plain_term(texts[begin:], where)
        while begin:
            _, kind, subject, predicate = texts[begin - 4 : begin]
            node = _plain_term([kind, subject], where)
            if not isinstance(node, ox.NamedNode | ox.BlankNode):
                refuse(where, "is a triple term with a wrong subject")
            term = ox.Triple(node, ox.NamedNode(predicate), term)
            begin -= 4
        return term
    except ValueError as error:
        refuse(where, str(error))


def _plain_term(texts: Sequence[str], where: str) -> ox.NamedNode | ox.BlankNode | ox.Literal:
    """A term that is not a triple term."""
    match texts:
        case ["i", iri]:
            return ox.NamedNode(iri)
        case ["b", label]:
            return ox.BlankNode(label)
        case ["@", form, tag]:
            return tagged_literal(form, tag)
        case ["^", form, datatype]:
            return ox.Literal(form, datatype=ox.NamedNode(datatype))
    return refuse(where, "is not a term")
