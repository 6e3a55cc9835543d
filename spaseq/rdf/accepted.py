"""Types, for type checkers, of the times, terms, graphs and events that a caller may pass.

Objects of rdflib and numpy are described by the attributes that the package uses, so neither
library has to be installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal
from typing import Protocol, TypeAlias

import pyoxigraph as ox

from spaseq.rdf.event import Event, Term, Timestamp


class RdflibTerm(Protocol):
    """A term of rdflib."""

    def n3(self) -> str: ...


class NumpyTime(Protocol):
    """A `numpy.datetime64`."""

    def astype(self, dtype: str, /) -> object: ...


AnyTerm: TypeAlias = Term | RdflibTerm
Bindable: TypeAlias = (
    bool | int | float | Decimal | str | date | timedelta | ox.NamedNode | ox.Literal | ox.Triple
    | RdflibTerm
)  # fmt: skip
"""The value of a bound variable: a term, or a number, text, date, time or duration of Python."""
Name: TypeAlias = str | ox.NamedNode | ox.BlankNode | RdflibTerm
"""An IRI, or a blank node."""
StreamName: TypeAlias = str | ox.NamedNode
"""The IRI of a stream, or its name in the queries."""
Time: TypeAlias = (
    date | int | float | Decimal | str | Timestamp | ox.Literal | RdflibTerm | NumpyTime
)
"""A datetime or date, a number of seconds, an ISO text, a literal, or a `numpy.datetime64`."""
AnyTriple: TypeAlias = (
    ox.Triple
    | ox.Quad
    | tuple[AnyTerm, AnyTerm, AnyTerm]
    | tuple[AnyTerm, AnyTerm, AnyTerm, AnyTerm | None]
)
Graph: TypeAlias = bytes | str | Iterable[AnyTriple]
"""Triples, an `rdflib.Graph` included, or N-Triples or N-Quads as text."""
AnyEvent: TypeAlias = Event | tuple[Time, Graph] | tuple[Time, Graph, Name | None]
