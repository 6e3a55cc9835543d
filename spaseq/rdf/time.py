"""Literals and Python values → timestamps, and timestamps → literals and JSON values.

A timestamp is a signed 64-bit count of microseconds in one of two domains: DATE_TIME (since the
epoch in UTC; a value without a zone is UTC) and NUMBER (from zero; a plain number counts `unit`s,
by default seconds). Invariant: conversions are exact; they read the decimal digits of the lexical
form, so `"0.1"^^xsd:double` is 100000 microseconds. A time finer than a microsecond is an error
unless a `TimePrecision` says how to round it. Years are proleptic Gregorian, year 0 included, as
in XML Schema 1.1. Every failure is an `EventError`.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

import pyoxigraph as ox

from spaseq.errors import EventError
from spaseq.rdf import calendar, unbounded
from spaseq.rdf.event import DATE_TIME, NUMBER, Timestamp
from spaseq.rdf.native._values import BOUNDS
from spaseq.rdf.time_text import DAY, EPOCH_DAY, date_time_text, seconds_literal

TimeUnit: TypeAlias = Literal["s", "ms", "us"]
TimePrecision: TypeAlias = Literal["error", "truncate", "round"]
"""How to treat a time finer than a microsecond: as an error, by truncation to the microsecond at
or before it, or by rounding to the nearest one (ties go to the later)."""

XSD = "http://www.w3.org/2001/XMLSchema#"
MICROS_PER_UNIT: dict[str, int] = {"s": 1_000_000, "ms": 1_000, "us": 1}

_DATE_TIME = ox.NamedNode(XSD + "dateTime")
_INTEGER = ox.NamedNode(XSD + "integer")
_DECIMAL = ox.NamedNode(XSD + "decimal")
TIMESTAMP_MAX_BYTES = 4096
"""The longest literal that is read as a timestamp: some syntaxes repeat it in few bytes."""
LONG_TIMESTAMP = f"a timestamp of more than {TIMESTAMP_MAX_BYTES:,} bytes"
_STAMPS = (XSD + "dateTimeStamp", "https://uri.etsi.org/ngsi-ld/DateTime")
_DOUBLE = ox.NamedNode(XSD + "double")
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_DATE_PART = r"(-?(?:[1-9][0-9]{3,}|0[0-9]{3}))-([0-9]{2})-([0-9]{2})"
_ZONE_PART = r"(Z|[+-][0-9]{2}:[0-9]{2})?"
_DATE_TIME_FORM = re.compile(
    _DATE_PART + r"T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?" + _ZONE_PART
)
_DATE_FORM = re.compile(_DATE_PART + _ZONE_PART)
_DECIMAL_FORM = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE_FORM = re.compile(_DECIMAL_FORM.pattern + r"(?:[eE][+-]?[0-9]+)?")
_INTEGER_FORM = re.compile(r"[+-]?[0-9]+")
_LONGEST_SHOWN = 80
_LONGEST_YEAR = 40
_LONGEST_POWER = 15
_HALF = Decimal("0.5")

_NUMBER_FORMS: dict[str, re.Pattern[str]] = {
    XSD + "decimal": _DECIMAL_FORM,
    XSD + "double": _DOUBLE_FORM,
    XSD + "float": _DOUBLE_FORM,
    **{
        XSD + name: _INTEGER_FORM
        for name in (
            "integer", "nonPositiveInteger", "negativeInteger", "nonNegativeInteger",
            "positiveInteger", "long", "int", "short", "byte", "unsignedLong", "unsignedInt",
            "unsignedShort", "unsignedByte",
        )
    },
}  # fmt: skip


def from_literal(
    literal: ox.Literal, unit: TimeUnit = "s", precision: TimePrecision = "error"
) -> Timestamp:
    """The timestamp of a literal: a dateTime, a date or a number.

    Raises:
        EventError: if the literal is not a timestamp, or not valid in its datatype.
    """
    datatype = literal.datatype.value
    if len(literal.value) + len(datatype) > TIMESTAMP_MAX_BYTES:
        raise EventError(LONG_TIMESTAMP)
    if datatype == _DATE_TIME.value:
        return _from_date_time(literal.value, literal, precision)
    form = _NUMBER_FORMS.get(datatype)
    if form is not None:
        text = literal.value.strip(" \t\r\n")
        if form.fullmatch(text) is None or not _is_in_range(text, datatype):
            raise _ill_formed(literal.value, datatype, "")
        micros, exact = _number_micros(text, unit, precision)
        return Timestamp(micros, NUMBER, literal if exact else seconds_literal(micros))
    if datatype in _STAMPS:
        return _from_date_time(literal.value, None, precision)
    if datatype == XSD + "date":
        return _from_date(literal.value)
    raise EventError(
        f"{literal} is not a timestamp; a timestamp is an xsd:dateTime, xsd:dateTimeStamp, "
        'xsd:date or a number, for example "2026-01-31T12:00:00Z"'
        f"^^<{_DATE_TIME.value}>"
    )


def _is_in_range(text: str, datatype: str) -> bool:
    """Whether a number is one of its datatype: some integers have a least or a greatest one."""
    least, most = BOUNDS.get(datatype.removeprefix(XSD), (None, None))
    if least is most is None:
        return True
    number = Decimal(text)
    return (least is None or number >= least) and (most is None or number <= most)


def from_value(
    value: object, unit: TimeUnit = "s", precision: TimePrecision = "error"
) -> Timestamp:
    """The timestamp of a Python value: datetime, date, int, float, Decimal, ISO text, or a literal.

    Literals of rdflib are recognised by their `datatype`, times of numpy by `astype`, and times
    of pandas by `nanosecond`, so that none of these libraries need be installed.

    Raises:
        EventError: if the value is not a timestamp.
    """
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, ox.Literal):
        return from_literal(value, unit, precision)
    if isinstance(value, datetime):
        if value != value:
            raise EventError(f"{value!r} is not a timestamp")
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        nanos = getattr(value, "nanosecond", 0)
        if nanos:
            aware = aware.replace(nanosecond=0)  # type: ignore[call-arg]
        micros = (aware - _EPOCH) // _MICROSECOND
        return from_micros(micros + _cut(nanos, 1000, str(value), precision), DATE_TIME)
    if type(value).__name__ == "datetime64" and hasattr(value, "astype"):
        return _from_numpy(value, precision)
    if isinstance(value, date):
        return from_micros((value.toordinal() - 1 - EPOCH_DAY) * DAY, DATE_TIME)
    if isinstance(value, int) and not isinstance(value, bool):
        if not _LEAST <= value <= _GREATEST:
            _in_range(int(value), format(Decimal(int(value)), "f"))
        term = ox.Literal(str(int(value)), datatype=_INTEGER)
        return Timestamp(_in_range(int(value) * MICROS_PER_UNIT[unit], str(value)), NUMBER, term)
    if isinstance(value, float):
        return from_literal(ox.Literal(_float_text(value, unit), datatype=_DOUBLE), unit, precision)
    if isinstance(value, Decimal):
        return from_literal(ox.Literal(format(value, "f"), datatype=_DECIMAL), unit, precision)
    if isinstance(value, str) and hasattr(value, "datatype"):
        datatype = value.datatype or XSD + "string"
        literal = ox.Literal(str(value), datatype=ox.NamedNode(str(datatype)))
        return from_literal(literal, unit, precision)
    if isinstance(value, str):
        return _from_iso(value, precision)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return from_value(int(value), unit, precision)
    if isinstance(value, Real) and hasattr(value, "dtype"):
        return from_value(float(str(value)), unit, precision)  # numpy's shortest digits
    raise EventError(
        f"{value!r} is not a timestamp; use a datetime, a number of seconds, an ISO text "
        "('2026-01-31T12:00:00Z') or an xsd:dateTime literal"
    )


def _from_iso(text: str, precision: TimePrecision) -> Timestamp:
    """The timestamp of a date, or of a date and a time of day with a `T` or a space between."""
    plain = text.strip()
    try:
        if "T" not in plain and " " not in plain:
            return _from_date(plain)
        lexical = plain.replace(" ", "T", 1)
        return _from_date_time(lexical, ox.Literal(lexical, datatype=_DATE_TIME), precision)
    except EventError as error:
        raise EventError(
            f"{text!r} is not a timestamp; an ISO text is a date with or without a time of day, "
            f"such as '2026-01-31T12:00:00Z' ({error})"
        ) from error


_FINER = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}
"""Units of numpy finer than a microsecond, and how many of them make one."""


def _from_numpy(value: Any, precision: TimePrecision) -> Timestamp:
    """The timestamp of a numpy.datetime64 of any unit, in UTC."""
    if value != value:
        raise EventError(f"{value!r} is not a timestamp")
    try:
        micros = value.astype("datetime64[us]")  # rounds towards the past
    except OverflowError as error:  # since NumPy 2.5; before, the number wraps around
        raise _out_of_range(str(value)) from error
    unit = value.dtype.str.partition("[")[2].rstrip("]").lstrip("0123456789")
    if unit not in _FINER:
        if micros.astype(value.dtype) != value:
            raise _out_of_range(str(value))
        return from_micros(int(micros.astype("int64")), DATE_TIME)
    rest = int((value - micros).astype("int64"))
    shift = _cut(rest, _FINER[unit], str(value), precision)
    return from_micros(int(micros.astype("int64")) + shift, DATE_TIME)


def _cut(number: int, size: int, shown: str, precision: TimePrecision) -> int:
    """number / size as an integer, with the remainder treated as `precision` says."""
    whole, left = divmod(number, size)
    if not left:
        return whole
    if precision == "error":
        raise _too_fine(shown)
    return whole + (precision == "round" and 2 * left >= size)


def from_micros(micros: int, domain: str) -> Timestamp:
    """The timestamp at `micros`; its term is the canonical literal."""
    if not _LEAST <= micros <= _GREATEST:
        raise EventError(
            f"{micros} microseconds are out of range: a timestamp is a signed 64-bit count"
        )
    return Timestamp(micros, domain)


def canonical_literal(time: Timestamp) -> ox.Literal:
    """A literal that denotes this timestamp independently of the reader's time unit."""
    return time.term if time.domain == DATE_TIME else seconds_literal(time.micros)


def json_value(time: Timestamp) -> str | int | float:
    """The timestamp as a JSON value: a UTC string, or a number of seconds."""
    if time.domain == DATE_TIME:
        return date_time_text(time.micros)
    whole, fraction = divmod(time.micros, 1_000_000)
    return whole if not fraction else time.micros / 1_000_000


_DURATION_UNITS = {
    "us": 1, "ms": 1_000, "": 1_000_000, "s": 1_000_000, "sec": 1_000_000,
    "m": 60_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": DAY,
}  # fmt: skip
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)")
_ISO_DURATION = re.compile(
    r"P(?:([0-9]+)D)?(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?"
)


def duration_micros(text: str) -> int:
    """Parse a duration (`5s`, `500ms`, `2 min`, `1.5h`, `PT10S`, `30`) to microseconds.

    Raises:
        EventError: if the text is not a duration, or is finer than a microsecond.
    """
    plain = _DURATION.fullmatch(text.strip().lower())
    if plain is not None and plain[2] in _DURATION_UNITS:
        return _scaled(plain[1], _DURATION_UNITS[plain[2]], text)
    iso = _ISO_DURATION.fullmatch(text.strip())
    if iso is not None and any(iso.groups()):
        parts = zip(iso.groups("0"), (DAY, 3_600_000_000, 60_000_000, 1_000_000), strict=True)
        return sum(_scaled(number, size, text) for number, size in parts)
    raise EventError(
        f"{text!r} is not a duration; write for example 500ms, 10s, 5m, 1h, 1d or PT10S"
    )


def _float_text(value: float, unit: TimeUnit) -> str:
    """The float in decimal, rounded to the microsecond if that is within its precision.

    The digits of a clock reading (`time.time()`) beyond the microsecond are rounding noise of at
    most four units in the last place. A deliberately finer time, such as 0.0000001, is not
    rounded, and so remains an error.
    """
    text = float.__repr__(value)
    scale = MICROS_PER_UNIT[unit]
    if math.isfinite(value) and abs(value) * scale < _GREATEST:
        rounded = round(value * scale) / scale
        if rounded != value and abs(rounded - value) <= 4 * math.ulp(value):
            return float.__repr__(rounded)
    return text


def _from_date_time(
    lexical: str, literal: ox.Literal | None, precision: TimePrecision
) -> Timestamp:
    """Parse `lexical`; `literal` is an xsd:dateTime, or None for an xsd:dateTimeStamp.

    The timestamp retains the literal if it is canonical.
    """
    match = _DATE_TIME_FORM.fullmatch(lexical) or _DATE_TIME_FORM.fullmatch(
        lexical.strip(" \t\r\n")
    )
    if match is None:
        raise _ill_formed(lexical, _DATE_TIME.value, "; write it like 2026-01-31T12:00:00Z")
    years, months, days, hours, minutes, seconds, fraction, zone = match.groups()
    if zone is None and literal is None:
        raise _ill_formed(lexical, XSD + "dateTimeStamp", "; a dateTimeStamp needs a time zone")
    hour, minute, second = int(hours), int(minutes), int(seconds)
    end_of_day = hour == 24 and minute == second == 0 and not (fraction or "").strip("0")
    if (hour > 23 and not end_of_day) or minute > 59 or second > 59:
        raise _ill_formed(lexical, _DATE_TIME.value, "; there is no such time of day")
    micros = _day_number(_year_in_range(years, lexical), months, days) * DAY
    micros += (hour * 3600 + minute * 60 + second) * 1_000_000
    if fraction:
        finer = fraction[6:].rstrip("0")
        micros += int(fraction[:6].ljust(6, "0"))
        if finer:
            # Rounding depends only on the first digit, and on whether there are more.
            micros += _cut(10 * int(finer[0]) + (len(finer) > 1), 100, lexical, precision)
            literal = None
    if zone and zone != "Z":
        micros -= _zone_micros(zone, lexical)
    micros = _in_range(micros, lexical)
    canonical = (
        literal is not None
        and zone == "Z"
        and (not fraction or fraction[-1] != "0")
        and not end_of_day
        and len(match[0]) == len(lexical)
        and years != "-0000"
    )
    if not canonical or literal is None:
        literal = ox.Literal(date_time_text(micros), datatype=_DATE_TIME)
    return Timestamp(micros, DATE_TIME, literal)


def _from_date(lexical: str) -> Timestamp:
    match = _DATE_FORM.fullmatch(lexical.strip(" \t\r\n"))
    if match is None:
        raise _ill_formed(lexical, XSD + "date", "; write it like 2026-01-31")
    micros = _day_number(_year_in_range(match[1], lexical), match[2], match[3]) * DAY
    if match[4] and match[4] != "Z":
        micros -= _zone_micros(match[4], lexical)
    return from_micros(_in_range(micros, lexical), DATE_TIME)


def _zone_micros(zone: str, lexical: str) -> int:
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if minutes > 59 or hours * 60 + minutes > 14 * 60:
        raise _ill_formed(lexical, _DATE_TIME.value, f"; there is no time zone {zone}")
    offset = (hours * 60 + minutes) * 60_000_000
    return -offset if zone[0] == "-" else offset


def _year_in_range(years: str, lexical: str) -> str:
    """The year, unless it has too many digits to be in range (and for `int` to parse)."""
    if len(years) > _LONGEST_YEAR:
        raise _out_of_range(lexical)
    return years


@lru_cache(maxsize=64)
def _day_number(years: str, months: str, days: str) -> int:
    year, month, day = int(years), int(months), int(days)
    if not 1 <= month <= 12 or not 1 <= day <= calendar.days_in_month(year, month):
        raise EventError(f"there is no day {years}-{months}-{days} in the calendar")
    return calendar.days_before(year, month, day) - EPOCH_DAY


@lru_cache(maxsize=64)
def _number_micros(text: str, unit: TimeUnit, precision: TimePrecision) -> tuple[int, bool]:
    """The microseconds, and whether they are exact."""
    try:
        return _in_range(_scaled(text, MICROS_PER_UNIT[unit], text), text), True
    except _TooFineError:
        if precision == "error":
            raise
    micros = _scaled(text, MICROS_PER_UNIT[unit], text, precision)
    return _in_range(micros, text), False


def _scaled(text: str, factor: int, shown: str, precision: TimePrecision = "error") -> int:
    """text × factor as an integer, rounded as `precision` says.

    The text is an XML Schema number; `shown` is its form in error messages.
    """
    if len(text) < 40 and _INTEGER_FORM.fullmatch(text):
        return int(text) * factor
    digits, _, power = text.lower().partition("e")
    if len(power.lstrip("+-0")) > _LONGEST_POWER:
        # Decimal limits exponents; any exponent of this length is out of range alike.
        power = f"{'-' * power.startswith('-')}{'9' * _LONGEST_POWER}"
    number = Decimal(f"{digits}e{power or 0}")
    if not number:
        return 0
    if number.adjusted() > 40:
        raise _out_of_range(shown)
    if number.adjusted() < -40:
        return _cut(1 if number > 0 else -1, 1000, shown, precision)
    micros = unbounded.product(number, Decimal(factor))
    if micros is None:
        raise _too_fine(shown)
    whole = unbounded.floor(micros)
    rest = unbounded.difference(micros, whole)
    assert rest is not None
    # In quarters, no remainder, less than a half, a half, and more than a half all differ.
    quarters = (rest > 0) + (rest >= _HALF) + (rest > _HALF)
    return _cut(4 * int(whole) + quarters, 4, shown, precision)


def _in_range(micros: int, shown: str) -> int:
    if _LEAST <= micros <= _GREATEST:
        return micros
    raise _out_of_range(shown)


def _out_of_range(shown: str) -> EventError:
    return EventError(
        f"{_shortened(shown)} is out of range: a timestamp is a signed 64-bit count of microseconds"
    )


def _shortened(shown: str) -> str:
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"


class _TooFineError(EventError):
    """A time that microseconds cannot express."""


def _too_fine(shown: str) -> EventError:
    return _TooFineError(
        f"{_shortened(shown)} is finer than a microsecond, the resolution of timestamps; "
        "--time-precision truncate or round (time_precision= in Python) accepts it"
    )


def _ill_formed(lexical: str, datatype: str, advice: str) -> EventError:
    return EventError(f'"{lexical}" is not a valid {datatype.replace(XSD, "xsd:")}{advice}')


def mixed_domains(known: str, other: str, what: str) -> str:
    """The error message for a timestamp of domain `other` in a run of domain `known`."""
    words = {NUMBER: "number", DATE_TIME: "date"}
    return (
        f"{what} has a {words[other]} as its timestamp, but earlier timestamps of the run are "
        f"{words[known]}s: use one kind for all streams of a query"
    )
