"""What a stream is made of: one RDF graph with a time and a place in its stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyoxigraph as ox

from spaseq.rdf.time_text import date_time_literal, seconds_literal

Term: TypeAlias = ox.NamedNode | ox.BlankNode | ox.Literal
Fact: TypeAlias = tuple[Term, Term, Term]
"""A triple as (subject, predicate, object)."""

NUMBER = "number"
DATE_TIME = "dateTime"


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A point in time as LANGUAGE section 1 has it.

    `micros` counts microseconds (of the epoch for dates, from zero for numbers), signed,
    64 bits. `domain` is NUMBER or DATE_TIME: the two are never mixed in one query.
    `written` is the literal it was read from, where that is what `AT ?t` binds.
    """

    micros: int
    domain: str
    written: ox.Literal | None = field(default=None, compare=False)

    @property
    def term(self) -> ox.Literal:
        """What `AT ?t` binds: the number as it was given, or a canonical `xsd:dateTime`."""
        if self.written is not None:
            return self.written
        canonical = date_time_literal if self.domain == DATE_TIME else seconds_literal
        return canonical(self.micros)


@dataclass(frozen=True, slots=True)
class Event:
    """One event of one stream.

    `ordinal` counts the earlier events of the same stream with the same timestamp.
    `facts` are distinct; blank nodes in them are the event's own (no other event shares
    a label). `origin` says where it was read ("file:line"), for messages only.
    """

    stream: str
    time: Timestamp
    ordinal: int
    facts: Sequence[Fact]
    name: ox.NamedNode | ox.BlankNode | None = None
    origin: str = field(default="", compare=False)

    @property
    def size(self) -> int:
        """How many facts there are."""
        return len(self.facts)

    def bare(self) -> Event:
        """The event without its facts: what to keep of it once they have been looked at."""
        return replace(self, facts=())

    @property
    def instant(self) -> tuple[int, int]:
        """(timestamp in microseconds, ordinal): the event's position in time."""
        return (self.time.micros, self.ordinal)


def triple_of(fact: Fact) -> ox.Triple:
    """The triple that pyoxigraph has for a fact; its subject is no literal."""
    return ox.Triple(*fact)  # type: ignore[arg-type]


def fact_of(triple: ox.Triple) -> Fact:
    """The terms of a triple without triple terms."""
    return triple.subject, triple.predicate, triple.object  # type: ignore[return-value]
