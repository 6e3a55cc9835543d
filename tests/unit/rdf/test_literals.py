"""Literals decoded without Python objects have the values that `decode` returns."""

from __future__ import annotations

import os
import random

import pyoxigraph as ox
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spaseq.rdf.native._literals import decoded
from spaseq.rdf.native._terms import Dictionary, EventBatch
from spaseq.rdf.native._values import BOOLEAN, DECIMAL, DOUBLE, FLOAT, KINDS, POINT, SPAN, decode
from tests.unit.rdf.literals import OTHERS, TYPED, literal

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "1500"))

# Texts with and without surroundings and signs are tried as every datatype.
NASTY = (
    *("", " ", "1 ", " 1", "\n1", "1\n", "\t", "+", "-", "+-1", "--1", "++1", "1+", "0x1", "1_0"),
    *("0", "00", "-0", "+0", "01", "1", "10", "true", "True", "TRUE", "false", "falsey", "t"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("-9223372036854775809", "18446744073709551615", "18446744073709551616", "9" * 19, "9" * 20),
    *("0" * 999 + "7", "0" * 1000 + "7", "-" + "0" * 999 + "7", "1" * 1001, "0." + "0" * 998),
    *("0." + "0" * 999, "1." + "0" * 997, "é" * 600, "٣", "1٣", "²", "１"),
    *(".", ".5", "5.", "-.5", "-5.", "+.0", "1.5.2", "1,5", "0.1", "0.10", "00.100"),
    *("170141183460469231731.687303715884105727", "170141183460469231731.687303715884105728"),
    *("-170141183460469231731.687303715884105728", "-170141183460469231731.687303715884105729"),
    *("170141183460469231732", "999999999999999999999", "9" * 22, "340282366920938463463.374607"),
    *("0.123456789012345678", "0.1234567890123456789", "0.12345678901234567800000", "-0.0"),
    *("1e5", "1E5", "1e+5", "1e-5", "1e", "1e+", "e5", ".e5", "1.e5", ".1e5", "1e5.0", "1e00005"),
    *("1e22", "1e23", "1e-22", "1e-23", "9007199254740993", "9007199254740993e19", "1e308"),
    *("1.7976931348623157e308", "1.7976931348623159e308", "1e309", "-1e400", "5e-324", "2e-324"),
    *("2.2250738585072011e-308", "4.9406564584124654e-324", "1e-400", "1e99999999999999999999"),
    *("0e99999999999999999999", "1e-99999999999999999999", "0.1e1", "8388608.5", "16777217"),
    *("9007199254740992.5", "9007199254740993.0000000000000000000001", "0.30000000000000004"),
    *("999999999999999999", "999999999.999999999", "-9999999999.999999999", "-999999999.99999999"),
    *("123456789012345678901234567890", "1234567890123456789", "12345678901234567890"),
    *("3.4028235e38", "3.4028236e38", "1e-45", "7e-46", "0.000000000000000000000000000001"),
    *("inf", "INF", "-INF", "+INF", "Infinity", "-infinity", "infinit", "infinityy", "nan", "NaN"),
    *("-NaN", "+nan", "na", "nano", "ınf", "ſ"),
    *("2020-01-31", "2020-02-30", "2020-02-29", "2019-02-29", "2000-02-29", "1900-02-29"),
    *("0000-01-01", "-0000-01-01", "0000-02-29", "-0001-02-29", "-0004-02-29", "-0400-02-29"),
    *("-0001-12-31", "0001-01-01", "00001-01-01", "12020-01-01", "012020-01-01", "202-01-01"),
    *("999999999-12-31", "1000000000-01-01", "-999999999-01-01", "-1000000000-01-01"),
    *("5391559471918-01-01", "5391559471919-01-01", "-5391559471918-01-01", "9" * 30 + "-01-01"),
    *("2020-13-01", "2020-00-01", "2020-01-00", "2020-01-32", "2020-1-01", "2020-01-1", "2020-01"),
    *("2020-01-31Z", "2020-01-31z", "2020-01-31+14:00", "2020-01-31-14:00", "2020-01-31+14:01"),
    *("2020-01-31+13:59", "2020-01-31+00:00", "2020-01-31-00:00", "2020-01-31+0:00"),
    *("2020-01-31+13:60", "2020-01-31+1400", "2020-01-31+15:00", "2020-01-31ZZ", "2020-01-31 "),
    *("+2020-01-31", "2020/01/31", "2020-01-31T00:00:00", "2020-01-31T24:00:00"),
    *("2020-12-31T24:00:00Z", "2020-01-31T24:00:01", "2020-01-31T24:01:00", "2020-01-31T25:00:00"),
    *("2020-01-31T24:00:00.000", "2020-01-31T24:00:00.001", "2020-01-31T23:59:60"),
    *("2020-01-31T23:60:00", "2020-01-31T23:59:59.999999999999999999", "2020-01-31T23:59:59."),
    *("2020-01-31T23:59:59.9999999999999999999", "2020-01-31T23:59:59.1000000000000000000000"),
    *("2020-01-31T23:59", "2020-01-31t23:59:00", "2020-01-31 23:59:00", "2020-01-31T1:02:03"),
    *("2020-01-31T10:00:00.5+02:00", "2020-01-31T10:00:00-14:00", "2020-01-31T10:00:00+14:00"),
    *("-2020-01-31T10:00:00.25Z", "--2020-01-31T10:00:00", "20200131T100000", "-", "-2020"),
    *("999999999-12-31T23:59:59Z", "12345678901-12-31T23:59:59.5-05:00", "2020-01-31T10:00:00Z0"),
    *("10:00:00", "24:00:00", "--02", "--02-29", "---31", "2020", "2020-02Z", "P1Y", "PT0.5S"),
    *("-P1M", "P1DT1H", "PT", "P1M1D", "P99999999999999999999Y", "PT170141183460469231732S"),
)


def expected(term: ox.Literal) -> tuple[object, ...]:
    """The fields of the term's value as `decoded` shows them."""
    value = decode(term)
    kind = value.kind
    timed = kind in (POINT, SPAN)
    return (
        kind,
        value.number if timed or BOOLEAN <= kind <= DECIMAL else None,
        value.real if kind in (FLOAT, DOUBLE) else None,
        value.form if timed else None,
        value.extra if kind == POINT else None,
        value.extra if kind == SPAN else None,
    )


def found(term: ox.Literal) -> tuple[object, ...]:
    batch, dictionary = EventBatch(Dictionary()), Dictionary()
    number, permanent = batch.number(term), dictionary.intern(term)
    assert batch.term(number) == term
    assert same(decoded(batch, number), decoded(batch, number))
    assert same(decoded(batch, number), decoded(EventBatch(dictionary), permanent))
    return decoded(batch, number)


def same(left: tuple[object, ...], right: tuple[object, ...]) -> bool:
    """Equality of all fields, the sign of zero included; NaN is NaN."""
    return repr(left) == repr(right)


def check(term: ox.Literal) -> None:
    assert same(found(term), expected(term)), (term, found(term), expected(term))


@pytest.mark.parametrize("name", sorted(KINDS))
def test_nasty_texts(name):
    for text in NASTY:
        check(literal(text, name))


def test_integers_of_every_length():
    chance = random.Random(1)
    for size in range(1, 21):
        text = "".join(chance.choice("0123456789") for _ in range(size))
        check(literal(text, "integer"))
        for place in range(size):
            for other in "/:;?@p \x0f\x7fé-+.":
                check(literal(text[:place] + other + text[place + 1 :], "integer"))


def test_the_table_of_the_values():
    for term in (*TYPED, *OTHERS):
        check(term)


def test_datatypes_nobody_knows():
    for name in ("http://www.w3.org/2001/XMLSchema#", "http://www.w3.org/2001/XMLSchema#int0"):
        check(ox.Literal("1", datatype=ox.NamedNode(name)))
    check(ox.Literal("1", datatype=ox.NamedNode("http://example.org/integer")))
    check(literal("1", "Integer"))
    check(literal('1"^^<http://www.w3.org/2001/XMLSchema#integer>', "string"))
    check(literal('1"^^<http://www.w3.org/2001/XMLSchema#integer>', "integer"))


def test_permanent_terms():
    dictionary = Dictionary()
    number = dictionary.intern(literal("1.5", "decimal"))
    assert decoded(EventBatch(dictionary), number)[:2] == (DECIMAL, 15 * 10**17)


numerals = st.from_regex(
    r"\A[+-]?[0-9]{0,24}(\.[0-9]{0,24})?([eE][+-]?[0-9]{1,3})?\Z"
) | st.floats().map(repr)
FIELDS = "00 01 02 12 13 23 24 28 29 30 31 59 60 99 1"
YEARS = "2020 2019 2000 1900 0000 0001 0004 123 12345 01234 999999999"
fields = st.sampled_from(FIELDS.split())
dates = st.builds(
    "{}{}-{}-{}".format,
    st.sampled_from(["", "", "-", "+"]),
    st.sampled_from(YEARS.split()) | st.integers(1, 10**14).map(str),
    fields,
    fields,
)
clocks = st.builds(
    "{}:{}:{}{}".format, fields, fields, fields, st.from_regex(r"\A(\.[0-9]{0,20})?\Z")
)
zones = st.sampled_from(["", "", "Z", "+14:00", "-14:00", "+14:01", "-13:59", "+00:00", "+2:00"])
points = st.builds("{}{}".format, dates, zones) | st.builds("{}T{}{}".format, dates, clocks, zones)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(numerals | points, st.sampled_from(sorted(KINDS)))
def test_drawn_texts(text, name):
    check(literal(text, name))


def test_drawn_numbers():
    """Digits and exponents around the limits of the exact reading."""
    chance = random.Random(5)
    for _ in range(EXAMPLES):
        digits = str(chance.getrandbits(chance.choice((10, 30, 53, 54, 60, 64, 70))))
        place = chance.randrange(len(digits) + 1)
        text = f"{digits[:place]}.{digits[place:]}e{chance.randint(-40, 40)}"
        check(literal(text, chance.choice(("double", "float"))))
        check(literal(repr(chance.uniform(-1000, 1000)), "double"))


def test_drawn_dates():
    chance = random.Random(6)
    for _ in range(EXAMPLES):
        year, month, day = (
            chance.randint(-9999, 99999),
            chance.randint(1, 12),
            chance.randint(1, 31),
        )
        sign = "-" if year < 0 else ""
        zone = chance.choice(("", "Z", "+05:30", "-11:15"))
        check(literal(f"{sign}{abs(year):04}-{month:02}-{day:02}{zone}", "date"))
        clock = f"{chance.randrange(24):02}:{chance.randrange(60):02}:{chance.randrange(60):02}"
        text = f"{sign}{abs(year):04}-{month:02}-{day:02}T{clock}.{chance.randrange(1000)}{zone}"
        check(literal(text, "dateTime"))
