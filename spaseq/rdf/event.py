"""Events: an RDF graph with a timestamp and a position in its stream."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias

import pyoxigraph as ox

from spaseq.rdf.time_text import date_time_literal, seconds_literal
from spaseq.records import dataclass

Term: TypeAlias = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple
Parameter: TypeAlias = ox.NamedNode | ox.Literal | ox.Triple
"""A term that a variable can be fixed to."""
Fact: TypeAlias = tuple[Term, Term, Term]
"""A triple as (subject, predicate, object)."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
NUMBER = "number"
DATE_TIME = "dateTime"


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A point in time (docs/language.md section 1).

    `micros` is a signed 64-bit count of microseconds, since the epoch for dates and from zero for
    numbers. `domain` is NUMBER or DATE_TIME; one query never mixes the two. `written` is the
    literal it was read from, if `AT ?t` binds that literal.
    """

    micros: int
    domain: str
    written: ox.Literal | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"<Timestamp {self.term.value}>"

    @property
    def term(self) -> ox.Literal:
        """The literal that `AT ?t` binds: the number as written, or a canonical `xsd:dateTime`."""
        if self.written is not None:
            return self.written
        canonical = date_time_literal if self.domain == DATE_TIME else seconds_literal
        return canonical(self.micros)

    @property
    def datetime(self) -> dt.datetime | None:
        """The point in time in UTC; None for a number, and outside the years 1 to 9999."""
        if self.domain != DATE_TIME:
            return None
        try:
            return _EPOCH + dt.timedelta(microseconds=self.micros)
        except OverflowError:
            return None

    @property
    def seconds(self) -> float:
        """The seconds since the epoch, or since zero for a number, as a float."""
        return self.micros / 1_000_000


@dataclass(frozen=True, slots=True)
class Event:
    """One event of one stream.

    `ordinal` is the number of earlier events of the same stream with the same timestamp. `facts`
    are distinct; no other event shares the labels of their blank nodes. `origin` is the position
    it was read from ("file:line"), used in messages only.
    """

    stream: str
    time: Timestamp
    ordinal: int
    facts: Sequence[Fact]
    name: ox.NamedNode | ox.BlankNode | None = None
    origin: str = field(default="", compare=False)

    @property
    def size(self) -> int:
        """The number of facts."""
        return len(self.facts)

    def bare(self) -> Event:
        """The event without its facts, for use after the facts have been matched.

        Example:
            >>> event.bare().size
            0
        """
        return replace(self, facts=())

    @property
    def instant(self) -> tuple[int, int]:
        """(timestamp in microseconds, ordinal): the event's position in time."""
        return (self.time.micros, self.ordinal)


def n_triples(term: Term) -> str:
    """A term in N-Triples; `str` of a triple term lacks the brackets."""
    return f"<<( {_parts(term)} )>>" if isinstance(term, ox.Triple) else str(term)


def _parts(triple: ox.Triple) -> str:
    return f"{triple.subject} {triple.predicate} {n_triples(triple.object)}"


def with_nodes(term: Term, change: Callable[[ox.BlankNode], ox.BlankNode]) -> Term:
    """A term with other blank nodes, including those in triple terms."""
    if isinstance(term, ox.BlankNode):
        return change(term)
    if isinstance(term, ox.Triple):
        parts: Any = (with_nodes(part, change) for part in term)
        return ox.Triple(*parts)
    return term


def depth_of(term: Term) -> int:
    """The nesting depth of a triple term; 0 for any other term."""
    depth = 0
    while isinstance(term, ox.Triple):
        depth, term = depth + 1, term.object
    return depth


def nodes_of(term: Term) -> Iterator[ox.BlankNode]:
    """The blank nodes of a term: itself, or those of a triple term."""
    while isinstance(term, ox.Triple):
        if isinstance(term.subject, ox.BlankNode):
            yield term.subject
        term = term.object
    if isinstance(term, ox.BlankNode):
        yield term


def triple_of(fact: Fact) -> ox.Triple:
    """The fact as a pyoxigraph triple; its subject must not be a literal."""
    return ox.Triple(*fact)  # type: ignore[arg-type]


def fact_of(triple: ox.Triple) -> Fact:
    """The terms of a triple."""
    return triple.subject, triple.predicate, triple.object
