"""XSD dates, times and durations: lexical forms ↔ numbers.

A point in time is a count of attoseconds (10⁻¹⁸ s, as an int) since 0001-01-01T00:00:00 of the
proleptic Gregorian calendar, in UTC; a time without a zone is counted as if in UTC. A duration
is a pair (months, attoseconds). Every parser returns None for a text outside its lexical space;
every formatter returns the canonical form. Numbers have at most 128 bits (months: 64); beyond
that the value is None. Cost: constant.

`spaseq/rdf/native/_literals.pyx` and `spaseq/gpm/native/functions/calendar.pxi` compute the
same in C. They call this module for intermediate results beyond 128 bits, and the tests compare
both.

Source: XML Schema 1.1 part 2, sections 3.3 and appendix E (seven-property model,
timeOnTimeline, dateTimePlusDuration).
"""

from __future__ import annotations

import re
from functools import cache
from typing import TypeAlias

SECOND = 10**18
MINUTE = 60 * SECOND
HOUR = 3600 * SECOND
DAY = 86400 * SECOND
ATTOSECONDS_BOUND = 2**127  # exclusive, by 128-bit signed integers
MONTHS_BOUND = 2**63  # exclusive

Point: TypeAlias = tuple[int, int | None]
"""(attoseconds, zone in minutes or None)."""
Span: TypeAlias = tuple[int, int]
"""(months, attoseconds)."""

_YEAR = r"(?P<year>-?(?:[1-9][0-9]{3,}|0[0-9]{3}))"
_MONTH = r"(?P<month>0[1-9]|1[0-2])"
_DAY = r"(?P<day>0[1-9]|[12][0-9]|3[01])"
_TIME = r"(?P<hour>[01][0-9]|2[0-4]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9](?:\.[0-9]+)?)"
_ZONE = r"(?P<zone>Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))?"

_FORMS = {
    "dateTime": f"{_YEAR}-{_MONTH}-{_DAY}T{_TIME}",
    "date": f"{_YEAR}-{_MONTH}-{_DAY}",
    "time": _TIME,
    "gYear": _YEAR,
    "gYearMonth": f"{_YEAR}-{_MONTH}",
    "gMonth": f"--{_MONTH}",
    "gMonthDay": f"--{_MONTH}-{_DAY}",
    "gDay": f"---{_DAY}",
}

_DURATION = re.compile(
    r"(-?)P(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]*)?|\.[0-9]+)S)?)?",
    re.ASCII,
)


@cache
def _form(name: str) -> re.Pattern[str]:
    """The lexical form of a type, compiled on first use, since a run uses few of them."""
    return re.compile(_FORMS[name] + _ZONE, re.ASCII)


def days_in_month(year: int, month: int) -> int:
    if month == 2:
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return 29 if leap else 28
    return 30 if month in (4, 6, 9, 11) else 31


def days_before(year: int, month: int, day: int) -> int:
    """Days from 0001-01-01 to the date; negative before it."""
    past = year - 1
    whole = 365 * past + past // 4 - past // 100 + past // 400
    return whole + sum(days_in_month(year, earlier) for earlier in range(1, month)) + day - 1


def civil(days: int) -> tuple[int, int, int]:
    """The date `days` after 0001-01-01, as (year, month, day)."""
    era, rest = divmod(days, 146097)
    century = min(rest // 36524, 3)
    rest -= century * 36524
    four = rest // 1461
    rest -= four * 1461
    single = min(rest // 365, 3)
    rest -= single * 365
    year = 400 * era + 100 * century + 4 * four + single + 1
    month = 1
    while rest >= days_in_month(year, month):
        rest -= days_in_month(year, month)
        month += 1
    return year, month, rest + 1


def atto_seconds(text: str) -> int | None:
    """`5.25` → 5.25 × 10¹⁸; None if the fraction has more than 18 digits."""
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    if len(fraction) > 18:
        return None
    return int(whole or "0") * SECOND + int(fraction.ljust(18, "0"))


def parse_point(form: str, text: str) -> Point | None:
    """Parse a text of the datatype `form` (`dateTime`, `date`, `time`, `gYear`, …)."""
    match = _form(form).fullmatch(text)
    if match is None:
        return None
    part = match.groupdict()
    has_day = part.get("day") is not None
    year = int(part["year"]) if part.get("year") is not None else 1972
    month = int(part["month"]) if part.get("month") is not None else 12
    if form == "gYear":
        month = 12
    day = int(part["day"]) if has_day else days_in_month(year, month)
    # Without a year the day is checked against 1972, a leap year.
    if has_day and day > days_in_month(year, month):
        return None
    instant = days_before(year, month, day) * DAY
    if part.get("hour") is not None:
        second = atto_seconds(part["second"])
        hour, minute = int(part["hour"]), int(part["minute"])
        if second is None or (hour == 24 and (minute or second)):
            return None
        if form == "time":
            hour %= 24
        instant += hour * HOUR + minute * MINUTE + second
    zone = _zone(part["zone"])
    if zone is not None:
        instant -= zone * MINUTE
    return (instant, zone) if -ATTOSECONDS_BOUND <= instant < ATTOSECONDS_BOUND else None


def _zone(text: str | None) -> int | None:
    if text is None:
        return None
    if text == "Z":
        return 0
    minutes = int(text[1:3]) * 60 + int(text[4:6])
    return -minutes if text[0] == "-" else minutes


def fields(point: Point) -> tuple[int, int, int, int, int, int]:
    """(year, month, day, hour, minute, second in attoseconds), in the point's own zone."""
    instant, zone = point
    days, rest = divmod(instant + (zone or 0) * MINUTE, DAY)
    year, month, day = civil(days)
    hour, rest = divmod(rest, HOUR)
    minute, second = divmod(rest, MINUTE)
    return year, month, day, hour, minute, second


def format_point(form: str, point: Point) -> str:
    year, month, day, hour, minute, second = fields(point)
    written = f"-{-year:04}" if year < 0 else f"{year:04}"
    clock = f"{hour:02}:{minute:02}:{format_seconds(second, 2)}"
    body = {
        "dateTime": f"{written}-{month:02}-{day:02}T{clock}",
        "date": f"{written}-{month:02}-{day:02}",
        "time": clock,
        "gYear": written,
        "gYearMonth": f"{written}-{month:02}",
        "gMonth": f"--{month:02}",
        "gMonthDay": f"--{month:02}-{day:02}",
        "gDay": f"---{day:02}",
    }[form]
    return body + format_zone(point[1])


def format_zone(zone: int | None) -> str:
    if zone is None:
        return ""
    if zone == 0:
        return "Z"
    sign = "-" if zone < 0 else "+"
    return f"{sign}{abs(zone) // 60:02}:{abs(zone) % 60:02}"


def format_seconds(second: int, width: int = 1) -> str:
    """A non-negative count of attoseconds as seconds, with at least `width` integer digits."""
    whole, fraction = divmod(second, SECOND)
    text = f"{whole:0{width}}"
    return f"{text}.{fraction:018}".rstrip("0") if fraction else text


def parse_duration(form: str, text: str) -> Span | None:
    """Parse a text of the datatype `duration`, `yearMonthDuration` or `dayTimeDuration`."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    sign, years, months, days, clock, hours, minutes, seconds = match.groups()
    in_months = years is not None or months is not None
    in_clock = hours is not None or minutes is not None or seconds is not None
    in_seconds = days is not None or in_clock
    if not (in_months or in_seconds) or (clock is not None and not (in_clock or in_months or days)):
        return None
    if form == "yearMonthDuration" and (in_seconds or clock is not None):
        return None
    if form == "dayTimeDuration" and in_months:
        return None
    rest = atto_seconds(seconds or "0")
    if rest is None:
        return None
    total = int(years or 0) * 12 + int(months or 0)
    rest += int(days or 0) * DAY + int(hours or 0) * HOUR + int(minutes or 0) * MINUTE
    return checked_span(-total, -rest) if sign else checked_span(total, rest)


def checked_span(months: int, seconds: int) -> Span | None:
    """The duration, or None if it exceeds the bounds."""
    months_fit = -MONTHS_BOUND <= months < MONTHS_BOUND
    seconds_fit = -ATTOSECONDS_BOUND <= seconds < ATTOSECONDS_BOUND
    return (months, seconds) if months_fit and seconds_fit else None


def format_duration(form: str, span: Span) -> str:
    months, seconds = span
    if months == 0 and seconds == 0:
        return "P0M" if form == "yearMonthDuration" else "PT0S"
    out = ["-P" if months < 0 or seconds < 0 else "P"]
    years, months = divmod(abs(months), 12)
    days, rest = divmod(abs(seconds), DAY)
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    out += [f"{count}{unit}" for count, unit in ((years, "Y"), (months, "M"), (days, "D")) if count]
    if hours or minutes or rest:
        out.append("T")
        out += [f"{count}{unit}" for count, unit in ((hours, "H"), (minutes, "M")) if count]
        if rest:
            out.append(format_seconds(rest) + "S")
    return "".join(out)


def add(form: str, point: Point, span: Span) -> Point | None:
    """`point + span` for a `dateTime`, a `date` or a `time`; None beyond 128 bits.

    A `time` wraps around at midnight and ignores months.
    """
    months, seconds = span
    instant, zone = point
    shift = (zone or 0) * MINUTE
    local = instant + shift
    if form == "time":
        home = local - local % DAY
        return home + (local + seconds) % DAY - shift, zone
    if months:
        days, clock = divmod(local, DAY)
        year, month, day = civil(days)
        years, month = divmod(month - 1 + months, 12)
        year, month = year + years, month + 1
        local = days_before(year, month, min(day, days_in_month(year, month))) * DAY + clock
    local += seconds
    if form == "date":
        local -= local % DAY
    instant = local - shift
    return (instant, zone) if -ATTOSECONDS_BOUND <= instant < ATTOSECONDS_BOUND else None


def compare_points(left: Point, right: Point) -> int | None:
    """-1, 0 or 1; None if a missing zone makes the order undefined (XSD: within 14 hours)."""
    mine, my_zone = left
    its, its_zone = right
    if (my_zone is None) == (its_zone is None):
        return (mine > its) - (mine < its)
    if my_zone is None:
        reverse = compare_points(right, left)
        return None if reverse is None else -reverse
    if mine < its - 14 * HOUR:
        return -1
    if mine > its + 14 * HOUR:
        return 1
    return None


_REFERENCES = tuple(
    (days_before(year, month, 1) * DAY, None)
    for year, month in ((1696, 9), (1697, 2), (1903, 3), (1903, 7))
)


def compare_spans(left: Span, right: Span) -> int | None:
    """-1, 0, 1 or None: the order of XSD 1.1 section 3.3.6, by four reference times."""
    if left[0] == right[0]:
        return (left[1] > right[1]) - (left[1] < right[1])
    if left[1] == right[1]:
        return 1 if left[0] > right[0] else -1
    results = set()
    for reference in _REFERENCES:
        mine = add("dateTime", reference, left)
        its = add("dateTime", reference, right)
        if mine is None or its is None:
            return None
        results.add(compare_points(mine, its))
    return results.pop() if len(results) == 1 else None
