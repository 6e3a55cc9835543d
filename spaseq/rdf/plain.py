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

from spaseq.rdf.calendar import fields
from spaseq.rdf.native._values import (
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
from spaseq.rdf.tagged import direction_of, language_of, tag_with, tagged_literal

_XSD = "http://www.w3.org/2001/XMLSchema#"
XSD_DECIMAL = ox.NamedNode(_XSD + "decimal")
_MICROSECOND = 10**12
"""In attoseconds."""


class LangString(str):
    """The text of a language-tagged literal, with its language and base direction.

    It compares, hashes and sorts as its text alone.

    Attributes:
        lang: The language tag, such as `en`.
        direction: The base direction, `ltr` or `rtl`; None for none.
    """

    __slots__ = ("direction", "lang")

    lang: str
    direction: str | None

    def __new__(cls, text: str, lang: str, direction: str | None = None) -> LangString:
        self = super().__new__(cls, text)
        self.lang = lang
        self.direction = direction
        return self

    @property
    def tag(self) -> str:
        """The language and the direction as N-Triples has them after `@`: `en`, `ar--rtl`."""
        return tag_with(self.lang, self.direction)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.lang, self.direction

    def __repr__(self) -> str:
        further = "" if self.direction is None else f", {self.direction!r}"
        return f"LangString({str(self)!r}, {self.lang!r}{further})"


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
        return _shortest(exact_of(value))
    if kind == BOOLEAN:
        return bool(value.number)
    if kind == WIDE:
        exact = exact_of(value)
        is_integer = exact == exact.to_integral_value() and value.form != "decimal"
        return int(exact) if is_integer else _shortest(exact)
    if kind == LANG:
        return LangString(value.text, language_of(value.form), direction_of(value.form) or None)
    if kind in (POINT, SPAN):
        found = _point(value) if kind == POINT else _span(value)
        return value.term if found is None else found
    return value.term


def _shortest(exact: Decimal) -> Decimal:
    """The number without zeros at the end of its fraction, exactly."""
    text = format(exact, "f")
    return Decimal(text.rstrip("0").rstrip(".")) if "." in text else exact


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
            raise ValueError(f"{thing} is not an xsd:decimal")
        return decode(ox.Literal(format(thing, "f"), datatype=XSD_DECIMAL))
    if isinstance(thing, LangString):
        return decode(tagged_literal(str(thing), thing.tag))
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
    raise TypeError(
        f"{thing!r} is not an RDF term, number, string, boolean, date, time or duration"
    )


def _duration(span: timedelta) -> str:
    micros = span // timedelta(microseconds=1)
    seconds, fraction = divmod(abs(micros), 10**6)
    tail = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{'-' if micros < 0 else ''}PT{seconds}{tail}S"


def _parsed(text: str) -> ox.NamedNode | ox.BlankNode | ox.Literal:
    for quad in ox.parse(f"<urn:s> <urn:p> {text} .", format=ox.RdfFormat.TURTLE):
        return cast("ox.NamedNode | ox.BlankNode | ox.Literal", quad.object)
    raise ValueError(f"{text} is not an RDF term")
