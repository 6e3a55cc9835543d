"""Values of terms as plain Python objects, and back.

| datatype | Python |
|---|---|
| integer and its subtypes | `int` |
| decimal | `Decimal` |
| double, float | `float` |
| boolean | `bool` |
| string | `str` |
| language-tagged string | `LangString` |
| dateTime, date | `datetime`, `date`, where Python has such a year and a fraction of microseconds |
| dayTimeDuration | `timedelta`, likewise |
| an IRI | `str` |
| everything else: blank nodes, other datatypes, invalid literals | the pyoxigraph term |
"""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, cast

import pyoxigraph as ox

from spaseq.rdf._values import (
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    IRI,
    LANG,
    POINT,
    SPAN,
    STRING,
    WIDE,
    Value,
    boolean,
    decode,
    double,
    exact_of,
    integer,
    string,
)
from spaseq.rdf.calendar import fields
from spaseq.rdf.tagged import language_of

_XSD = "http://www.w3.org/2001/XMLSchema#"
XSD_DECIMAL = ox.NamedNode(_XSD + "decimal")
_MICROSECOND = 10**12
"""In attoseconds."""


class LangString(str):
    """A string with a language tag."""

    __slots__ = ("language",)

    language: str

    def __new__(cls, text: str, language: str) -> LangString:
        self = super().__new__(cls, text)
        self.language = language
        return self


def plain(value: Value) -> Any:
    """The plain Python object of a value, or its term if there is none."""
    kind = value.kind
    if kind == INTEGER:
        return value.number
    if kind in (STRING, IRI):
        return value.text
    if kind in (DOUBLE, FLOAT):
        return value.real
    if kind == DECIMAL:
        return exact_of(value)
    if kind == BOOLEAN:
        return bool(value.number)
    if kind == WIDE:
        exact = exact_of(value)
        return (
            int(exact) if exact == exact.to_integral_value() and value.form != "decimal" else exact
        )
    if kind == LANG:
        return LangString(value.text, language_of(value.form))
    if kind in (POINT, SPAN):
        found = _point(value) if kind == POINT else _span(value)
        return value.term if found is None else found
    return value.term


def _point(value: Value) -> datetime | date | None:
    if value.form not in ("dateTime", "date"):
        return None
    year, month, day, hour, minute, second = fields((value.number, value.extra))
    whole, fraction = divmod(second, 10**18)
    if not 1 <= year <= 9999 or fraction % _MICROSECOND:
        return None
    if value.form == "date":
        return date(year, month, day) if value.extra is None else None
    zone = None if value.extra is None else timezone(timedelta(minutes=value.extra))
    return datetime(year, month, day, hour, minute, whole, fraction // _MICROSECOND, zone)


def _span(value: Value) -> timedelta | None:
    if value.form != "dayTimeDuration" or value.number % _MICROSECOND:
        return None
    try:
        return timedelta(microseconds=value.number // _MICROSECOND)
    except OverflowError:
        return None


def value_of(thing: object) -> Value:
    """The value of a plain Python object, or of a pyoxigraph or rdflib term.

    Raises:
        TypeError: for an object that is no term and has no datatype.
        ValueError: for a term that is not valid.
    """
    if isinstance(thing, ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple):
        return decode(thing)
    if isinstance(thing, bool):
        return boolean(thing)
    if isinstance(thing, int):
        return integer(thing)
    if isinstance(thing, float):
        return double(thing)
    if isinstance(thing, Decimal):
        if not thing.is_finite():
            raise ValueError(f"{thing} is no xsd:decimal")
        return decode(ox.Literal(format(thing, "f"), datatype=XSD_DECIMAL))
    if isinstance(thing, LangString):
        return decode(ox.Literal(str(thing), language=thing.language))
    n3 = getattr(thing, "n3", None)
    if n3 is not None:
        return decode(_parsed(n3()))
    if isinstance(thing, str):
        return string(thing)
    if isinstance(thing, datetime):
        text = thing.isoformat().replace("+00:00", "Z")
        return decode(ox.Literal(text, datatype=ox.NamedNode(_XSD + "dateTime")))
    if isinstance(thing, date):
        return decode(ox.Literal(thing.isoformat(), datatype=ox.NamedNode(_XSD + "date")))
    if isinstance(thing, timedelta):
        return decode(ox.Literal(_duration(thing), datatype=ox.NamedNode(_XSD + "dayTimeDuration")))
    item = getattr(thing, "item", None)
    if item is not None:  # a scalar of numpy
        return value_of(item())
    raise TypeError(f"{thing!r} is no RDF term, number, string, boolean, date, time or duration")


def _duration(span: timedelta) -> str:
    micros = span // timedelta(microseconds=1)
    seconds, fraction = divmod(abs(micros), 10**6)
    tail = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{'-' if micros < 0 else ''}PT{seconds}{tail}S"


def _parsed(text: str) -> ox.NamedNode | ox.BlankNode | ox.Literal:
    for quad in ox.parse(f"<urn:s> <urn:p> {text} .", format=ox.RdfFormat.TURTLE):
        return cast("ox.NamedNode | ox.BlankNode | ox.Literal", quad.object)
    raise ValueError(f"{text} is no RDF term")
