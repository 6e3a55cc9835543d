"""Counts of microseconds → their canonical texts and literals."""

from __future__ import annotations

import pyoxigraph as ox

from spaseq.rdf import calendar

DAY = 86_400_000_000
"""Microseconds of a day."""
EPOCH_DAY = calendar.days_before(1970, 1, 1)

_XSD = "http://www.w3.org/2001/XMLSchema#"
_DATE_TIME = ox.NamedNode(_XSD + "dateTime")
_INTEGER = ox.NamedNode(_XSD + "integer")
_DECIMAL = ox.NamedNode(_XSD + "decimal")


def date_time_text(micros: int) -> str:
    """The canonical UTC lexical form of xsd:dateTime: no trailing zeros in the fraction."""
    days, rest = divmod(micros, DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    year, month, day = calendar.civil(days + EPOCH_DAY)
    date = f"{'-' if year < 0 else ''}{abs(year):04d}-{month:02d}-{day:02d}"
    text = f"{date}T{hour:02d}:{minute:02d}:{second:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") + "Z" if fraction else text + "Z"


def date_time_literal(micros: int) -> ox.Literal:
    """The canonical xsd:dateTime."""
    return ox.Literal(date_time_text(micros), datatype=_DATE_TIME)


def seconds_literal(micros: int) -> ox.Literal:
    """A count of microseconds as a number of seconds: an integer if whole, else a decimal."""
    whole, fraction = divmod(abs(micros), 1_000_000)
    sign = "-" if micros < 0 else ""
    if not fraction:
        return ox.Literal(f"{sign}{whole}", datatype=_INTEGER)
    return ox.Literal(f"{sign}{whole}.{fraction:06d}".rstrip("0"), datatype=_DECIMAL)
