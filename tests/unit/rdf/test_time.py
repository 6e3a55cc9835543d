"""Timestamps: lexical forms in, exact microseconds; canonical text and JSON out."""

import time as clock
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.errors import EventError, InputError
from spaseq.io.source import Source
from spaseq.rdf import time, time_text
from spaseq.rdf.event import DATE_TIME, NUMBER, Timestamp

DAY = 86_400_000_000


def literal(text: str, datatype: str) -> ox.Literal:
    return ox.Literal(text, datatype=ox.NamedNode(time.XSD + datatype))


@pytest.mark.parametrize(
    ("text", "datatype", "micros"),
    [
        ("1970-01-01T00:00:00Z", "dateTime", 0),
        ("1970-01-01T00:00:00", "dateTime", 0),
        ("1970-01-01T00:00:00.000001Z", "dateTime", 1),
        ("1970-01-01T00:00:00.5Z", "dateTime", 500_000),
        ("1970-01-01T00:00:00.1234560000Z", "dateTime", 123_456),
        ("1970-01-01T02:00:00+02:00", "dateTime", 0),
        ("1969-12-31T19:30:00-04:30", "dateTime", 0),
        ("1969-12-31T24:00:00Z", "dateTime", 0),
        ("1969-12-31T23:59:59.999999Z", "dateTime", -1),
        (" 1970-01-01T00:00:00Z\n", "dateTime", 0),
        ("2000-02-29T00:00:00Z", "dateTime", 951_782_400_000_000),
        ("0000-01-01T00:00:00Z", "dateTime", -719_528 * DAY),
        ("-0001-12-31T00:00:00Z", "dateTime", -719_529 * DAY),
        ("12026-01-01T00:00:00Z", "dateTime", (20_454 + 25 * 146_097) * DAY),
        ("1970-01-01T00:00:00Z", "dateTimeStamp", 0),
        ("1970-01-02", "date", DAY),
        ("1970-01-02Z", "date", DAY),
        ("1970-01-02+01:00", "date", DAY - 3_600_000_000),
        ("5", "integer", 5_000_000),
        ("+5", "int", 5_000_000),
        ("-5", "long", -5_000_000),
        ("0.1", "double", 100_000),
        ("1.5E3", "double", 1_500_000_000),
        ("1e-6", "float", 1),
        ("0.10000000", "decimal", 100_000),
        (".5", "decimal", 500_000),
        ("5.", "decimal", 5_000_000),
        ("0E99", "double", 0),
        ("9223372036854.775807", "decimal", 2**63 - 1),
        ("-9223372036854.775808", "decimal", -(2**63)),
    ],
)
def test_from_literal(text: str, datatype: str, micros: int) -> None:
    result = time.from_literal(literal(text, datatype))
    assert result.micros == micros
    assert result.domain == (DATE_TIME if datatype.startswith("date") else NUMBER)


@pytest.mark.parametrize(
    ("text", "datatype", "said"),
    [
        ("1970-01-01T00:00:00.0000001Z", "dateTime", "finer than a microsecond"),
        ("1970-13-01T00:00:00Z", "dateTime", "calendar"),
        ("1900-02-29T00:00:00Z", "dateTime", "calendar"),
        ("1970-01-01T24:00:01Z", "dateTime", "time of day"),
        ("1970-01-01T00:60:00Z", "dateTime", "time of day"),
        ("1970-01-01T00:00:00+14:01", "dateTime", "time zone"),
        ("1970-01-01 00:00:00", "dateTime", "write it like"),
        ("970-01-01T00:00:00Z", "dateTime", "write it like"),
        ("１970-01-01T00:00:00Z", "dateTime", "write it like"),
        ("1970-01-01T00:00:00", "dateTimeStamp", "needs a time zone"),
        ("21620006349311", "date", "not a valid xsd:date"),
        ("300000-01-01T00:00:00Z", "dateTime", "out of range"),
        ("9223372036854.775808", "decimal", "out of range"),
        ("1E30", "double", "out of range"),
        ("1E999999999", "double", "out of range"),
        ("9" * 4000, "integer", "out of range"),
        ("1E-7", "double", "finer than a microsecond"),
        ("1E-999999999", "double", "finer than a microsecond"),
        ("INF", "double", "not a valid xsd:double"),
        ("NaN", "float", "not a valid xsd:float"),
        ("1_000", "integer", "not a valid xsd:integer"),
        ("1.5", "integer", "not a valid xsd:integer"),
        ("1E5", "decimal", "not a valid xsd:decimal"),
        ("soon", "string", "is not a timestamp"),
        ("true", "boolean", "is not a timestamp"),
        ("2026", "gYear", "is not a timestamp"),
    ],
)
def test_bad_literals(text: str, datatype: str, said: str) -> None:
    with pytest.raises(EventError, match=said):
        time.from_literal(literal(text, datatype))


def test_units() -> None:
    assert time.from_literal(literal("1500", "integer"), "ms").micros == 1_500_000
    assert time.from_literal(literal("0.5", "decimal"), "ms").micros == 500
    assert time.from_literal(literal("7", "integer"), "us").micros == 7
    assert time.from_value(1500, "ms").micros == 1_500_000
    with pytest.raises(EventError, match="finer"):
        time.from_literal(literal("0.5", "decimal"), "us")
    # a date is what it is, whatever plain numbers count
    assert time.from_literal(literal("1970-01-02", "date"), "ms").micros == DAY


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00.500Z", "2026-01-01T00:00:00.5Z"),
        ("2025-12-31T24:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00Z"),
    ],
)
def test_term_of_a_date_is_canonical(text: str, canonical: str) -> None:
    result = time.from_literal(literal(text, "dateTime"))
    assert result.term == literal(canonical, "dateTime")
    assert time.json_value(result) == canonical


def test_term_of_a_number_is_as_given() -> None:
    assert time.from_literal(literal("014.0", "double")).term == literal("014.0", "double")


def test_json_numbers() -> None:
    def shown(text: str, datatype: str = "decimal") -> object:
        return time.json_value(time.from_literal(literal(text, datatype)))

    assert repr(shown("5.0")) == "5"
    assert repr(shown("0.1")) == "0.1"
    assert repr(shown("-1.5")) == "-1.5"
    assert repr(shown("1700000000.123456")) == "1700000000.123456"
    assert repr(shown("9223372036854", "integer")) == "9223372036854"


def test_python_values() -> None:
    zone = timezone(timedelta(hours=2))
    assert time.from_value(datetime(1970, 1, 1, 2, tzinfo=zone)).micros == 0
    assert time.from_value(datetime(1970, 1, 1, 0, 0, 0, 7)).micros == 7
    assert time.from_value(datetime(1970, 1, 1)).term == literal("1970-01-01T00:00:00Z", "dateTime")
    assert time.from_value(date(1970, 1, 2)).micros == DAY
    assert time.from_value(5).term == literal("5", "integer")
    assert time.from_value(0.1).micros == 100_000
    assert time.from_value(1e3).micros == 1_000_000_000
    assert time.from_value(Decimal("0.000001")).micros == 1
    stamp = time.from_value(5)
    assert time.from_value(stamp) is stamp
    assert time.from_value(literal("5", "integer")) == stamp


def test_rdflib_literals() -> None:
    rdflib = pytest.importorskip("rdflib")
    given = rdflib.Literal("1970-01-01T00:00:05Z", datatype=rdflib.XSD.dateTime)
    assert time.from_value(given).micros == 5_000_000
    with pytest.raises(EventError, match="is not a timestamp"):
        time.from_value(rdflib.Literal("now"))


def test_a_clock_read_as_a_float_is_taken_to_the_microsecond() -> None:
    for noise in range(20):
        now = clock.time() + noise / 7
        assert abs(time.from_value(now).micros - now * 1e6) < 2
    with pytest.raises(EventError, match="finer"):
        time.from_value(1e-7)


@pytest.mark.parametrize("value", [True, None, "soon", float("nan"), float("inf")])
def test_other_python_values_are_refused(value: object) -> None:
    with pytest.raises(EventError):
        time.from_value(value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_instant_survives_its_text(micros: int) -> None:
    for domain in (DATE_TIME, NUMBER):
        stamp = time.from_micros(micros, domain)
        again = time.from_literal(stamp.term)
        assert (again.micros, again.domain, again.term) == (micros, domain, stamp.term)
        assert time.canonical_literal(again) == stamp.term


@given(st.datetimes(timezones=st.just(UTC)))
def test_agrees_with_datetime(value: datetime) -> None:
    stamp = time.from_value(value)
    assert time.from_literal(literal(value.isoformat(), "dateTime")) == stamp
    text = time_text.date_time_text(stamp.micros)
    assert datetime.fromisoformat(text) == value


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("5s", 5_000_000), ("500ms", 500_000), ("7us", 7), ("2 min", 120_000_000),
        ("2m", 120_000_000), ("1.5h", 5_400_000_000), ("1d", DAY), ("30", 30_000_000),
        ("PT10S", 10_000_000), ("P1DT2H3M4.5S", DAY + 7_384_500_000), ("0", 0),
    ],
)  # fmt: skip
def test_durations(text: str, micros: int) -> None:
    assert time.duration_micros(text) == micros


@pytest.mark.parametrize("text", ["", "soon", "5 years", "-5s", "P", "PT", "5s5"])
def test_bad_durations(text: str) -> None:
    with pytest.raises(EventError, match="is not a duration"):
        time.duration_micros(text)


@pytest.mark.parametrize(
    ("text", "name", "precision", "expected"),
    [
        ("0" * 4000 + "5", "integer", "error", 5_000_000),
        ("9" * 4000, "integer", "error", "out of range"),
        ("9" * 4000 + ".0", "decimal", "error", "out of range"),
        ("1." + "0" * 4000, "decimal", "error", 1_000_000),
        ("1." + "0" * 4000 + "1", "decimal", "error", "finer than a microsecond"),
        ("-1." + "0" * 4000 + "1", "decimal", "truncate", -1_000_001),
        ("1.0000004" + "9" * 4000, "decimal", "round", 1_000_000),
        ("1.0000005" + "0" * 4000 + "1", "decimal", "round", 1_000_001),
        ("9" * 4000 + "e-4000", "double", "truncate", 999_999),
        ("0e" + "9" * 30, "double", "error", 0),
        ("1e" + "9" * 30, "double", "error", "out of range"),
        ("-1e-" + "9" * 30, "double", "truncate", -1),
        ("9" * 4000 + "-01-01T00:00:00Z", "dateTime", "error", "out of range"),
        ("9" * 4000 + "-01-01", "date", "error", "out of range"),
        ("1970-01-01T00:00:00.0000005" + "0" * 4000 + "Z", "dateTime", "round", 1),
        ("1970-01-01T00:00:00.0000004" + "9" * 4000 + "Z", "dateTime", "round", 0),
        ("1970-01-01T00:00:00." + "0" * 4000 + "1Z", "dateTime", "error", "finer than"),
    ],
)
def test_times_of_thousands_of_digits(text, name, precision, expected):
    """A time, or an error of one short line."""
    literal = ox.Literal(text, datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#" + name))
    if isinstance(expected, int):
        assert time.from_literal(literal, "s", precision).micros == expected
        return
    with pytest.raises(EventError, match=expected) as caught:
        time.from_literal(literal, "s", precision)
    assert len(str(caught.value)) < 300


def test_a_text_of_more_than_4096_bytes_is_no_time() -> None:
    literal = ox.Literal(
        "0" * 5000, datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer")
    )
    with pytest.raises(EventError, match="more than 4,096 bytes"):
        time.from_literal(literal, "s", "error")


def test_an_int_of_thousands_of_digits_is_no_time():
    with pytest.raises(EventError, match="out of range"):
        time.from_value(10**5000)


def test_a_timestamp_is_a_datetime_where_python_has_one() -> None:
    stamp = datetime(2026, 1, 5, 12, 0, 0, 250_000, tzinfo=UTC)
    known = time.from_value(stamp, "s", "error")
    assert known.datetime == stamp
    assert known.seconds == stamp.timestamp()
    assert Timestamp(2**62, DATE_TIME).datetime is None
    number = Timestamp(1_500_000, NUMBER)
    assert (number.datetime, number.seconds) == (None, 1.5)


@pytest.mark.parametrize(
    ("text", "datatype", "is_valid"),
    [
        ("255", "unsignedByte", True),
        ("256", "unsignedByte", False),
        ("-1", "unsignedLong", False),
        ("-129", "byte", False),
        ("0", "positiveInteger", False),
        ("-0", "nonNegativeInteger", True),
        ("99999999999", "integer", True),
        ("2147483648", "int", False),
        ("2147483648", "unsignedInt", True),
    ],
)
def test_numbers_beyond_the_range_of_their_datatype_are_no_times(
    tmp_path: Path, text: str, datatype: str, is_valid: bool
) -> None:
    """By value, and in the stream that the compiled reader reads."""
    literal = ox.Literal(text, datatype=ox.NamedNode(time.XSD + datatype))
    path = tmp_path / "s.nq"
    path.write_text(f"<urn:g> <http://www.w3.org/ns/prov#generatedAtTime> {literal} .\n")
    if is_valid:
        assert time.from_literal(literal).micros == int(text) * 10**6
        assert [event.time.micros for event in Source("urn:s", [str(path)])] == [int(text) * 10**6]
        return
    said = f'"{text}" is not a valid xsd:{datatype}'
    with pytest.raises(EventError, match=said):
        time.from_literal(literal)
    with pytest.raises(InputError, match=said):
        list(Source("urn:s", [str(path)]))
