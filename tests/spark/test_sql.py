"""SQL, mappings of rows, and methods of DataFrames; most of it without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as t
from pyspark.sql.udtf import AnalyzeArgument

import spaseq
from spaseq.errors import (
    ArgumentError,
    EventError,
    InputError,
    KbError,
    LimitExceeded,
    QueryError,
    SpaseqError,
)
from spaseq.spark import condition, from_rows, match
from spaseq.spark.functions import graphs, iris
from spaseq.spark.mapped_rows import RowReader, check_columns, checked
from spaseq.spark.sql import SpaseqMatch

STREAM = "http://example.org/s"
XSD = "http://www.w3.org/2001/XMLSchema#"
QUERY = """
PREFIX : <http://example.org/>
SELECT ?k ?low ?high WITHIN 10 MINUTES PARTITION BY ?k FROM STREAM s :s
WHERE {
  SEQ(Low ; High)
  DEFINE GPM Low ON s { ?k :value ?low FILTER(?low < 15) }
  DEFINE GPM High ON s { ?k :value ?high FILTER(?high > 30) }
}"""
IN_ROOM = QUERY.replace("?k :value ?low", "?k :value ?low GRAPH :kb { ?k :in :kitchen }")
MAPPING = """
PREFIX : <http://example.org/>
CONSTRUCT { ?s :value ?v } WHERE { BIND(IRI(CONCAT("http://example.org/", ?k)) AS ?s) }"""
SCHEMA = t.StructType().add("k", "string").add("t", "timestamp").add("v", "integer")
TEXT, NUMBER = t.StringType(), t.IntegerType()
READINGS = [(key, 60 * minute, 7 * minute % 50) for minute in range(30) for key in ("a", "b")]


def moment(second: int) -> datetime:
    return datetime.fromtimestamp(1_767_600_000 + second)


def wanted(query: str = QUERY, **options: Any) -> list[tuple[str, str, str]]:
    events = [
        (
            moment(second).astimezone(UTC),
            f'<http://example.org/{key}> <http://example.org/value> "{value}"^^<{XSD}integer> .\n',
        )
        for key, second, value in READINGS
    ]
    matches = spaseq.run(query, {STREAM: events}, **options)
    found = sorted(tuple(map(str, m.values.values())) for m in matches)
    assert len(found) > 10
    return found  # type: ignore[return-value]


# ------------------------------------------------------------------ the table function


def argument(value: Any, kind: t.DataType | None = None) -> AnalyzeArgument:
    return AnalyzeArgument(kind or t.StringType(), value, kind is SCHEMA, kind is not SCHEMA)


def called(rows: Sequence[tuple[Any, ...]], **given: Any) -> list[tuple[str, str, str]]:
    """The results of the table function, one partition for each key."""
    arguments = {name: argument(value) for name, value in given.items()}
    analysis = SpaseqMatch.analyze(argument(None, SCHEMA), **arguments)
    found = []
    for key in sorted({row[0] for row in rows}):
        function = SpaseqMatch(analysis)
        made = [
            result
            for name, second, value in rows
            if name == key
            for result in function.eval(Row(k=name, t=moment(second), v=value), **given)
        ]
        names = analysis.schema.names
        for result in [*made, *function.terminate()]:
            row = dict(zip(names, result, strict=True))
            assert isinstance(row["bindings"], dict)
            assert isinstance(row["events"][0]["bindings"], dict)
            found.append((row["k"], row["low"], row["high"]))
    return sorted(found)


CONDITIONS = {
    QueryError: "SPASEQ_INVALID_QUERY",
    EventError: "SPASEQ_INVALID_EVENT",
    LimitExceeded: "SPASEQ_LIMIT_EXCEEDED",
}
OPTIONS = {"query": QUERY, "map": MAPPING, "time_column": "t"}


def test_the_table_function_finds_what_the_engine_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.spark.sql._ROWS_AT_ONCE", 7)
    found = [(f"http://example.org/{key}", low, high) for key, low, high in _plain(wanted())]
    assert called(READINGS, **OPTIONS) == found


def _plain(found: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [(key.rpartition("/")[2].rstrip(">"), low, high) for key, low, high in found]


def test_the_knowledge_base_of_the_table_function(tmp_path: Path) -> None:
    path = tmp_path / "kb.ttl"
    path.write_text("@prefix : <http://example.org/> . :a :in :kitchen .")
    kb = {"http://example.org/kb": str(path)}
    found = called(READINGS, **{**OPTIONS, "query": IN_ROOM}, kb=kb)
    assert found
    assert {key for key, _, _ in found} == {"http://example.org/a"}
    text = f"http://example.org/kb={path}"
    assert called(READINGS, **{**OPTIONS, "query": IN_ROOM}, kb=text) == found
    with pytest.raises(KbError, match="absent"):
        called(READINGS, **{**OPTIONS, "query": IN_ROOM}, kb="http://example.org/kb=absent.ttl")


def test_rows_that_are_not_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.spark.sql._ROWS_AT_ONCE", 7)
    with pytest.raises(EventError, match=r"\[SPASEQ_INVALID_EVENT\] .* ORDER BY time"):
        called(READINGS[::-1], **OPTIONS)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"query": "SELECT"}, QueryError, "not complete"),
        ({"query": QUERY, "map": "CONSTRUCT { ?_row <urn:p> 1 } WHERE {}"}, SpaseqError, "_row"),
        ({"query": QUERY}, EventError, "no column graph; it has k, t, v"),
        ({"query": QUERY, "time_column": "t"}, ArgumentError, "for rows with a mapping"),
        ({**OPTIONS, "kb": "kb.ttl"}, ArgumentError, "IRI=FILE"),
        ({**OPTIONS, "columns": "k"}, ArgumentError, "an array is needed"),
        ({**OPTIONS, "times": "dates"}, ArgumentError, "timestamp, decimal, string"),
        ({"query": 3}, ArgumentError, "a text is needed"),
        ({**OPTIONS, "columns": ["zz"]}, ValueError, "there is no column zz"),
        ({**OPTIONS, "time_column": "zz"}, ArgumentError, "there is no column zz"),
        (
            {**OPTIONS, "ordinal_column": "zz"},
            ArgumentError,
            "there is no column zz; there are k, t",
        ),
        (
            {**OPTIONS, "ordinal_column": "k"},
            ArgumentError,
            "k has the type string, not one of int",
        ),
        ({"query": QUERY, "ordinal_column": "v"}, ArgumentError, "for rows with a mapping"),
        ({**OPTIONS, "max_groups": 0}, ValueError, "max_groups must be at least 1"),
        ({**OPTIONS, "max_steps": "x"}, ArgumentError, "a whole number is needed"),
        ({**OPTIONS, "on_limit": "wait"}, ValueError, 'on_limit is "stop" or "shed"'),
        (
            {**OPTIONS, "query": QUERY.replace("(Low ;", "(Low+ ;"), "max_groups": 1},
            LimitExceeded,
            r"query:\d+:\d+: error: more than 1 group .* at 2026-01-05T.*--max-groups",
        ),
    ],
)
def test_calls_that_are_refused(given: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        called(READINGS, **given)
    # The driver sees the text alone.
    assert condition(RuntimeError(str(caught.value))) == CONDITIONS.get(error, "SPASEQ_ERROR")


# ------------------------------------------------------------------ mappings of rows


def rows(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def test_rows_in_any_order_are_events() -> None:
    times = [datetime(2026, 1, 5, hour, tzinfo=UTC) for hour in (12, 10, 11)]
    reader = RowReader(STREAM, checked(MAPPING), "t", "timestamp", "FAILFAST")
    batch = rows(k=["a", "b", "c"], t=times, v=[1, 2, 3])
    (found,) = reader([batch, batch.slice(3)])
    made = {row["time"]: row for row in found.to_pylist()}
    assert sorted(made) == sorted(times)
    assert made[times[1]] == {
        "stream": STREAM,
        "time": times[1],
        "ordinal": None,
        "name": None,
        "graph": f'<http://example.org/b> <http://example.org/value> "2"^^<{XSD}integer> .\n',
    }


def test_rows_without_a_time(caplog: pytest.LogCaptureFixture) -> None:
    batch = rows(k=["a", "b"], t=[None, datetime(2026, 1, 5, tzinfo=UTC)], v=[1, 2])
    given = STREAM, checked(MAPPING), "t", "timestamp"
    said = (
        r"^\[SPASEQ_INVALID_INPUT\] a row for the stream http://example.org/s: a row without a time"
        r".*: k = 'a', t = None, v = 1$"
    )
    with pytest.raises(InputError, match=said):
        list(RowReader(*given, "FAILFAST")([batch]))  # type: ignore[arg-type]
    (found,) = RowReader(*given, "DROPMALFORMED")([batch])  # type: ignore[arg-type]
    assert len(found) == 1
    (line,) = caplog.messages
    assert line.startswith(
        "1 rows for the stream http://example.org/s were dropped; the first: a row"
    )
    assert line.endswith("k = 'a', t = None, v = 1")


# ------------------------------------------------------------------ functions


def test_graphs_of_columns() -> None:
    aware = pa.array([datetime(2026, 1, 5, 10, 30, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC"))
    columns: list[tuple[pa.Array, str]] = [
        (iris(pa.array(["urn:o", None])), "<urn:o>"),
        (pa.array(['say "hi"', None]), '"say \\"hi\\""'),
        (pa.array([12, None]), f'"12"^^<{XSD}integer>'),
        (pa.array([Decimal("1.50"), None]), f'"1.5"^^<{XSD}decimal>'),
        (pa.array([True, None]), f'"true"^^<{XSD}boolean>'),
        (pa.array([date(2026, 1, 5), None]), f'"2026-01-05"^^<{XSD}date>'),
        (aware, f'"2026-01-05T10:30:00Z"^^<{XSD}dateTime>'),
        (pa.array([datetime(2026, 1, 5), None]), f'"2026-01-05T00:00:00"^^<{XSD}dateTime>'),
        (pa.nulls(2), ""),
    ]
    predicates = [pa.array([f"urn:p{number}"] * 2) for number in range(len(columns))]
    pairs = [
        each for pair in zip(predicates, (c for c, _ in columns), strict=True) for each in pair
    ]
    made = graphs(pa.array(["urn:s", "urn:s"]), *pairs).to_pylist()
    lines = [f"<urn:s> <urn:p{n}> {said} .\n" for n, (_, said) in enumerate(columns) if said]
    assert made[0] == "".join(lines)
    assert made[1] == lines[6]
    assert graphs(
        pa.array([None], pa.string()), *(each.slice(0, 1) for each in pairs)
    ).to_pylist() == [None]
    (number,) = graphs(*(pa.array([each]) for each in ("urn:s", "urn:p", 0.5))).to_pylist()
    assert number == f'<urn:s> <urn:p> "0.5"^^<{XSD}double> .\n'
    with pytest.raises(EventError, match="a predicate is null"):
        graphs(*(pa.array([each], pa.string()) for each in ("urn:s", None, "1")))


def test_a_column_has_the_terms_that_a_mapping_makes_of_it() -> None:
    columns = [
        pa.array([0.1, 2.0], pa.float32()),
        pa.array([0.1, 1e300]),
        pa.array([Decimal("2.50"), Decimal("100.00")]),
        pa.array([b"ab", b""]),
        pa.array([True, False]),
        pa.array([datetime(2026, 1, 5, 10, 30, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        pa.array([datetime(2026, 1, 5, 10, 30, 0, 500_000), None]),
        pa.array([date(2026, 1, 5), None]),
        pa.array([timedelta(hours=26), None]),
        pa.array([-7, None], pa.int8()),
        pa.array(["text\n", None]),
    ]
    for column in columns:
        (events,) = RowReader(
            STREAM,
            checked("CONSTRUCT { <urn:s> <urn:p> ?v } WHERE {}"),
            "t",
            "timestamp",
            "FAILFAST",
        )([rows(t=[moment(0), moment(1)], v=column)])
        given = pa.array(["urn:s"] * 2), pa.array(["urn:p"] * 2), column
        assert graphs(*given).to_pylist() == events.column("graph").to_pylist()


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (["urn:s", "urn:p"], "pairs of a predicate and an object"),
        (["no iri", "urn:p", 1], "the subject: 'no iri' is not an IRI"),
        (["urn:s", "no iri", 1], "a predicate: 'no iri' is not an IRI"),
        (["urn:s", None, 1], "an IRI is text, not null"),
        (["urn:s", "urn:p", [1]], "has no literals"),
        ([1, "urn:p", 1], "an IRI is text, not int64"),
    ],
)
def test_columns_that_are_no_graph(columns: list[Any], said: str) -> None:
    with pytest.raises(EventError, match=said):
        graphs(*(pa.array([value]) for value in columns))


@pytest.mark.parametrize(
    ("columns", "time_column", "said"),
    [
        ({"key": TEXT, "v": NUMBER}, None, r"\?k is not a column.*the columns are \?key, \?v"),
        ({"k": TEXT, "v": t.ArrayType(NUMBER)}, None, "the column v holds lists"),
        ({"k": t.StructType().add("a", TEXT), "v": NUMBER}, None, r"its fields are \?k_a"),
        ({"k": TEXT, "v": NUMBER}, "time", "time_column: there is no column time"),
    ],
)
def test_columns_are_checked_before_the_job(
    columns: dict[str, t.DataType], time_column: str | None, said: str
) -> None:
    schema = t.StructType([t.StructField(name, kind) for name, kind in columns.items()])
    with pytest.raises((QueryError, ArgumentError), match=f"(?s){said}"):
        check_columns(schema, checked(MAPPING), time_column)
    odd = t.StructField("odd", t.MapType(TEXT, t.CalendarIntervalType()))
    check_columns(t.StructType([*SCHEMA.fields, odd]), checked(MAPPING), "t")


# ------------------------------------------------------------------ Spark


def test_through_spark(spark: SparkSession) -> None:
    readings = spark.createDataFrame(
        [(key, moment(second), value) for key, second, value in READINGS], SCHEMA
    )
    readings.createOrReplaceTempView("readings")
    columns = ["k", "low", "high"]
    with pytest.raises(QueryError, match=r"\?value is not a column"):
        from_rows(readings, STREAM, MAPPING.replace("?v }", "?value }"), time_column="t")
    events: Any = from_rows(readings, STREAM, MAPPING, time_column="t")
    found = sorted(map(tuple, match(events, QUERY, partitions=2, columns=columns).collect()))
    assert _plain(found) == _plain(wanted())
    accessor: Any = readings
    mapped = accessor.spaseq.from_rows(STREAM, MAPPING, time_column="t")
    again = mapped.spaseq.match(QUERY, partitions=1, columns=[*columns, "id"])
    graph = "spaseq_graph(concat('http://example.org/', k), 'http://example.org/value', v)"
    spark.sql(
        f"SELECT k AS key, t AS time, {graph} AS graph FROM readings"
    ).createOrReplaceTempView("events")
    call = (
        "SELECT k, low, high, id FROM "
        "spaseq_match(TABLE({}) PARTITION BY {} ORDER BY {}, query => '{}'{})"
    )
    table = spark.sql(call.format("events", "key", "time", QUERY, ""))
    named = f", map => '{MAPPING}', time_column => 't', ordinal_column => 'v'"
    direct = spark.sql(call.format("readings", "k", "t", QUERY, named))
    ways = [again.selectExpr("1 AS way", *columns, "id"), table.selectExpr("2", "*")]
    ways.append(direct.selectExpr("3", "*"))
    rows = sorted(map(tuple, reduce(DataFrame.union, ways).collect()))
    for way in (1, 2, 3):
        own = [row[1:] for row in rows if row[0] == way]
        assert [row[:3] for row in own] == found
        assert len({row[3] for row in own}) == len(own)
    with pytest.raises(Exception, match=r"query:1:7: error") as wrong:
        spark.sql(call.format("events", "key", "time", "SELECT", ""))
    assert condition(wrong.value) == "SPASEQ_INVALID_QUERY"
    with pytest.raises(Exception, match="the subject: 'a b' is not an IRI") as wrong:
        spark.sql("SELECT spaseq_graph('a b', 'urn:p', 1) AS graph").collect()
    assert condition(wrong.value) == "SPASEQ_INVALID_EVENT"


ERRING = QUERY.replace("SELECT ?k ?low ?high", "SELECT ?k (?name * 2 AS ?twice) ?high").replace(
    "?k :value ?low FILTER", "?k :value ?low ; :name ?name FILTER"
)
NAMED = MAPPING.replace("?s :value ?v", '?s :value ?v ; :name "n/a"')


def test_expressions_that_err_are_counted_and_named(caplog: pytest.LogCaptureFixture) -> None:
    function = SpaseqMatch(
        SpaseqMatch.analyze(
            argument(None, SCHEMA),
            query=argument(ERRING), map=argument(NAMED), time_column=argument("t"),
        )
    )  # fmt: skip
    given = {"query": ERRING, "map": NAMED, "time_column": "t"}
    found = [
        result
        for key, second, value in READINGS
        if key == "a"
        for result in function.eval(Row(k=key, t=moment(second), v=value), **given)
    ]
    found += list(function.terminate())
    assert len(found) > 4
    (line,) = caplog.messages
    assert line == (
        f"the query query: SELECT: (?name * 2 AS ?twice) had {len(found)} errors, "
        'first "n/a" * 2: a string and a number'
    )
