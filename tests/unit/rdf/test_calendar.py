"""Dates, times and durations as numbers."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf import calendar

dates = st.dates()


@given(dates)
def test_days_are_those_of_the_gregorian_calendar(day):
    number = calendar.days_before(day.year, day.month, day.day)
    assert number == (day - date(1, 1, 1)).days
    assert calendar.civil(number) == (day.year, day.month, day.day)


@given(st.integers(-4_000_000, 4_000_000))
def test_days_before_the_first_are_counted_on(number):
    year, month, day = calendar.civil(number)
    assert calendar.days_before(year, month, day) == number
    later = calendar.civil(number + 146_097)
    assert later == (year + 400, month, day)


@given(st.integers(-(10**30), 10**30), st.none() | st.integers(-840, 840))
def test_points_are_written_and_read(instant, zone):
    point = (instant, zone)
    assert calendar.parse_point("dateTime", calendar.format_point("dateTime", point)) == point


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**26))
def test_durations_are_written_and_read(months, seconds):
    span = (months, seconds if months >= 0 else -seconds)
    assert calendar.parse_duration("duration", calendar.format_duration("duration", span)) == span


@given(dates, st.integers(-(10**6), 10**6))
def test_days_are_added(day, days):
    try:
        later = day + timedelta(days)
    except OverflowError:
        return
    point = calendar.parse_point("date", f"{day:%Y-%m-%d}".rjust(10, "0"))
    assert point is not None
    moved = calendar.add("date", point, (0, days * calendar.DAY))
    assert moved == calendar.parse_point("date", f"{later:%Y-%m-%d}".rjust(10, "0"))


@pytest.mark.parametrize(
    ("start", "months", "end"),
    [
        ("2020-01-31", 1, "2020-02-29"),
        ("2021-01-31", 1, "2021-02-28"),
        ("2020-03-31", -1, "2020-02-29"),
        ("2020-11-30", 3, "2021-02-28"),
        ("0001-01-01", -12, "0000-01-01"),
    ],
)
def test_months_are_added_to_the_last_day_there_is(start, months, end):
    point = calendar.parse_point("date", start)
    assert point is not None
    moved = calendar.add("date", point, (months, 0))
    assert moved is not None
    assert calendar.format_point("date", moved) == end


def test_times_go_round_the_clock():
    point = calendar.parse_point("time", "23:30:00+01:00")
    assert point is not None
    moved = calendar.add("time", point, (0, calendar.HOUR))
    assert moved is not None
    assert calendar.format_point("time", moved) == "00:30:00+01:00"


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        ("2020-01-01T00:00:00Z", "2020-01-01T02:00:00+02:00", 0),
        ("2020-01-01T00:00:00Z", "2020-01-01T14:00:01", -1),
        ("2020-01-01T00:00:00Z", "2020-01-01T14:00:00", None),
        ("2020-01-01T00:00:00", "2019-12-31T09:59:59Z", 1),
        ("2020-01-01T00:00:00", "2020-01-01T00:00:00", 0),
    ],
)
def test_a_missing_zone_leaves_fourteen_hours_open(left, right, order):
    mine, its = (calendar.parse_point("dateTime", text) for text in (left, right))
    assert mine is not None
    assert its is not None
    assert calendar.compare_points(mine, its) == order
    assert calendar.compare_points(its, mine) == (None if order is None else -order)


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        ("P1M", "P27D", 1),
        ("P1M", "P28D", None),
        ("P1M", "P31D", None),
        ("P1M", "P32D", -1),
        ("P1Y", "P12M", 0),
        ("P1Y", "P365D", None),
        ("P1Y", "P367D", -1),
        ("PT24H", "P1D", 0),
        ("-P1M", "P1D", -1),
    ],
)
def test_durations_are_ordered_where_every_month_agrees(left, right, order):
    mine, its = (calendar.parse_duration("duration", text) for text in (left, right))
    assert mine is not None
    assert its is not None
    assert calendar.compare_spans(mine, its) == order


def test_what_does_not_fit_has_no_value():
    far = (calendar.ATTOSECONDS_BOUND - 1, 0)
    assert calendar.add("dateTime", far, (0, calendar.DAY)) is None
    assert calendar.parse_duration("duration", f"P{2**63}M") is None
    assert calendar.checked_span(0, calendar.ATTOSECONDS_BOUND) is None
