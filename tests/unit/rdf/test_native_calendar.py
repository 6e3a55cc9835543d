"""The native calendar and timestamps against Python's `datetime` and against `spaseq.rdf.time`."""

from __future__ import annotations

import re
from datetime import date, datetime

import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spaseq.errors import EventError
from spaseq.rdf import calendar, time
from spaseq.rdf.event import DATE_TIME
from spaseq.rdf.native._literals import py_civil, py_days, py_timestamp

XSD = "http://www.w3.org/2001/XMLSchema#"
DAY = 86_400_000_000
EPOCH = date(1970, 1, 1).toordinal()
LEAP_YEARS = (-4000, -2000, -400, -4, 0, 4, 400, 1600, 1996, 2000, 2004, 2400, 8000)
COMMON_YEARS = (-2100, -1900, -100, -3, -1, 1, 100, 1700, 1900, 2001, 2100, 2200, 9900)


def native(text: str, datatype: str = "dateTime", factor: int = 1_000_000) -> int | None:
    """The microseconds that the native scanner reads."""
    found = py_timestamp(f'"{text}"^^<{XSD}{datatype}>'.encode(), len(text.encode()), factor)
    return None if found is None else found[0]


@pytest.mark.parametrize("year", [*LEAP_YEARS, *COMMON_YEARS])
def test_february_has_29_days_in_leap_years(year: int) -> None:
    length = 29 if year in LEAP_YEARS else 28
    assert py_days(year, 3, 1) - py_days(year, 2, 28) == length - 27
    assert py_civil(py_days(year, 2, 28) + 1) == ((year, 2, 29) if length == 29 else (year, 3, 1))
    if year > 0:
        assert (native(f"{year:04}-02-29T00:00:00Z") is None) == (length == 28)


@pytest.mark.parametrize(
    ("first", "last", "days"),
    [
        ("2000-02-28", "2000-03-01", 2),
        ("1900-02-28", "1900-03-01", 1),
        ("2100-02-28", "2100-03-01", 1),
        ("2400-02-28", "2400-03-01", 2),
        ("1999-12-31", "2000-12-31", 366),
        ("2000-12-31", "2001-12-31", 365),
        ("1600-03-01", "2000-03-01", 146097),
        ("0001-01-01", "9999-12-31", 3652058),
    ],
)
def test_days_between_dates(first: str, last: str, days: int) -> None:
    begin, end = (native(f"{text}T12:00:00Z") for text in (first, last))
    assert begin is not None
    assert end is not None
    assert end - begin == days * DAY


@given(st.dates())
@example(date(2000, 2, 29))
@example(date(2000, 3, 1))
@example(date(9999, 12, 31))
@example(date(1, 1, 1))
def test_dates_are_those_of_datetime(day: date) -> None:
    assert native(f"{day.isoformat()}T00:00:00Z") == (day.toordinal() - EPOCH) * DAY
    assert py_days(day.year, day.month, day.day) == day.toordinal() - 1
    assert py_civil(day.toordinal() - 1) == (day.year, day.month, day.day)


@given(st.integers(-10_000_000_000, 10_000_000_000))
@example(-1)
@example(-366)
@example(146096)
@example(146097)
@example(-146097)
@example(-146098)
def test_days_and_dates_invert_each_other(days: int) -> None:
    found = py_civil(days)
    assert found == calendar.civil(days)
    assert py_days(*found) == days == calendar.days_before(*found)


@given(st.dates(), st.integers(-25_000, 25_000))
def test_the_calendar_repeats_after_400_years(day: date, eras: int) -> None:
    """Proleptic arithmetic: a year of any sign is a year of `datetime` moved by whole eras."""
    days = day.toordinal() - 1 + 146097 * eras
    assert py_civil(days) == (day.year + 400 * eras, day.month, day.day)
    assert py_days(day.year + 400 * eras, day.month, day.day) == days


@given(st.datetimes(), st.integers(-840, 840) | st.none(), st.booleans())
def test_times_of_day_and_zones_are_those_of_datetime(
    moment: datetime, zone: int | None, stamp: bool
) -> None:
    text = moment.isoformat()
    if zone is not None:
        text += f"{'-' if zone < 0 else '+'}{abs(zone) // 60:02}:{abs(zone) % 60:02}"
    rest = ((moment.hour * 60 + moment.minute) * 60 + moment.second) * 1_000_000
    micros = (moment.toordinal() - EPOCH) * DAY + rest + moment.microsecond
    if zone is None and stamp:
        assert native(text, "dateTimeStamp") is None
    else:
        found = native(text, "dateTimeStamp" if stamp else "dateTime")
        assert found == micros - (zone or 0) * 60_000_000


PIECES = st.sampled_from(
    ["2000", "1900", "0000", "-0001", "12345", "999", "-", "02", "29", "28", "30", "13", "00", "T",
     "24", "23", "60", "59", ":", ".", ".000", ".123456", ".1234567", ".1230000", ".", "Z",
     "+14:00", "-14:00", "+14:01", "-05:30", "+", " ", "1e3", "12", "1.5",
     "0.0000001", "999999999999999999"]
)  # fmt: skip
DATED = st.builds(
    "{}-{}-{}T{}:{}:{}{}{}".format,
    st.sampled_from(["2000", "1900", "0001", "0000", "9999", "-0004", "10000", "02000"]),
    st.sampled_from(["01", "02", "12", "00", "13", "2"]),
    st.sampled_from(["01", "28", "29", "30", "31", "00", "32"]),
    st.sampled_from(["00", "23", "24", "25"]),
    st.sampled_from(["00", "59", "60"]),
    st.sampled_from(["00", "59", "60"]),
    st.sampled_from(["", ".", ".0", ".5", ".123456", ".1234567", ".1200000000", "." + "0" * 30]),
    st.sampled_from(["", "Z", "z", "+14:00", "-14:00", "+14:01", "+13:59", "-00:00", "+1:00"]),
)


@given(
    DATED | st.lists(PIECES, max_size=8).map("".join),
    st.sampled_from(["dateTime", "dateTimeStamp", "integer", "byte", "decimal", "double", "date",
                     "string", "gYear", "duration", "unsignedLong"]),
    st.sampled_from(["s", "ms", "us"]),
)  # fmt: skip
def test_what_the_native_scanner_reads_is_what_the_reader_of_times_reads(
    text: str, datatype: str, unit: time.TimeUnit
) -> None:
    found = py_timestamp(
        f'"{text}"^^<{XSD}{datatype}>'.encode(), len(text), time.MICROS_PER_UNIT[unit]
    )
    if found is None:
        return
    read = time.from_literal(ox.Literal(text, datatype=ox.NamedNode(XSD + datatype)), unit)
    assert found == (read.micros, read.domain == DATE_TIME)


@given(DATED.filter(lambda text: re.match(r"[1-9]...-", text)))
def test_the_native_scanner_reads_every_date_time_within_its_bounds(text: str) -> None:
    """Of years up to 9999, in whole microseconds."""
    try:
        read = time.from_literal(ox.Literal(text, datatype=ox.NamedNode(XSD + "dateTime")))
    except EventError:
        assert native(text) is None
    else:
        assert native(text) == read.micros


@pytest.mark.parametrize(
    "text", ['"2000-01-01T00:00:00Z"', '"5"@en', "<urn:a>", '"5"', '"5"^^<urn:i>']
)
def test_other_terms_are_no_timestamps(text: str) -> None:
    assert py_timestamp(text.encode(), text.rfind('"') - 1 if '"' in text else 0) is None


@pytest.mark.parametrize("place", range(24))
def test_any_character_in_place_of_another(place: int) -> None:
    """Eight characters are read at once, so each position is tried with every character."""
    good = "2024-02-29T13:57:46.128Z"
    date_time = ox.NamedNode(XSD + "dateTime")
    for letter in map(chr, range(1, 128)):
        text = good[:place] + letter + good[place + 1 :]
        try:
            read = time.from_literal(ox.Literal(text, datatype=date_time)).micros
        except EventError:
            assert native(text) is None, text
        else:
            assert native(text) in (read, None), text
            assert native(text) == read or not text.isprintable() or " " in text, text
