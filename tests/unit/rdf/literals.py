"""Literals of every datatype that has values, ill-formed ones too."""

from __future__ import annotations

import pyoxigraph as ox

XSD = "http://www.w3.org/2001/XMLSchema#"

TEXTS = {
    "integer": "0 1 -1 007 +5 -0 9223372036854775807 -9223372036854775808 9223372036854775808 "
    "9007199254740993 1.5 1_0 abc",
    "byte": "1 300",
    "nonNegativeInteger": "2 -2",
    "decimal": "0 1 0.5 -2.50 .5 1. +1.25 -0.0 0.1 123456789012345678.5 0.000000000000000001 "
    "0.0000000000000000001 170141183460469231731.687303715884105727 "
    "170141183460469231731.687303715884105728 1e5 . 0.0000000000000000000",
    "double": "0 -0 1 14.0 0.1 -2.5 NaN nan INF +INF -INF inf infinity 1e300 1e-300 1e400 1.e5 "
    ".e5 1e 0x10 2.5 0.49999999999999994 4503599627370495.5 1e21 5e-324",
    "float": "0 1.0 0.1 -2.5 NaN INF 16777217 3e38 1e-45 1e40 0.49999997 8388609",
    "boolean": "true false 1 0 TRUE",
    "dateTime": "2020-01-31T00:00:00 2020-01-31T00:00:00Z 2020-02-29T12:30:45.250+02:00 "
    "-0001-03-01T00:00:00Z 0000-02-29T23:59:59.999 2020-01-31T24:00:00 2020-01-01T00:00:00-00:00 "
    "12020-01-01T00:00:00Z 2020-02-30T00:00:00 2020-01-01T23:59:60Z 2020-1-01T00:00:00Z "
    "2020-01-01T00:00:00.Z 2020-01-01T24:00:01 99999999999999999999-01-01T00:00:00Z "
    "2020-01-01T00:00:00.123456789012345678901Z",
    "dateTimeStamp": "2020-01-31T00:00:00Z",
    "date": "2020-01-31 2020-02-01Z 2020-01-31+14:00 2021-02-29 2020-01-31+14:01",
    "time": "00:00:00 10:00:00Z 12:00:00+02:00 23:59:59.5 24:00:00 12:00:60",
    "duration": "P1Y PT1S -P1M P1M1D P30D P1MT1H -P1Y2M3DT4H5M6.789S P1YT PT P1.5Y PT1.S PT.5S P",
    "yearMonthDuration": "P1M P12M -P1Y P0M P1D",
    "dayTimeDuration": "PT1S P30D PT24H -P1DT1H PT0S PT0.5S PT90M -PT0S P1Y",
    "gYear": "2020 2021Z -0001",
    "gYearMonth": "2020-02 2020-03Z",
    "gMonth": "--02",
    "gMonthDay": "--02-28 --03-01Z",
    "gDay": "---31",
}


def literal(text: str, name: str) -> ox.Literal:
    return ox.Literal(text, datatype=ox.NamedNode(XSD + name))


TYPED = tuple(literal(text, name) for name, texts in TEXTS.items() for text in texts.split())
OTHERS = (
    ox.NamedNode("http://a/"),
    ox.NamedNode("http://b/"),
    ox.BlankNode("x"),
    ox.BlankNode("y"),
    ox.Literal(""),
    ox.Literal("a"),
    ox.Literal("b"),
    ox.Literal("𐀀"),
    ox.Literal("\uffff"),
    ox.Literal("a", language="en"),
    ox.Literal("b", language="en"),
    ox.Literal("a", language="DE"),
    ox.Literal("a", language="en", direction=ox.BaseDirection.LTR),
    ox.Literal("a", language="en", direction=ox.BaseDirection.RTL),
    ox.Literal("b", language="EN", direction=ox.BaseDirection.RTL),
    ox.Literal("x", datatype=ox.NamedNode("http://t")),
    ox.Literal("y", datatype=ox.NamedNode("http://t")),
)
TERMS = TYPED + OTHERS
