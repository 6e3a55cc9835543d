"""Queries as an operator over Arrow batches, alone and in polars, DuckDB, Dask, Daft and Ray."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import spaseq
from spaseq.errors import ArgumentError, EventError, QueryError, SpaseqError
from spaseq.frames import match

PREFIX = "PREFIX : <http://example.org/>\n"
QUERY = (
    PREFIX
    + """SELECT ?s ?low ?high WITHIN 1 HOUR FROM STREAM readings :readings WHERE {
  SEQ(A , B)
  DEFINE GPM A ON readings { ?s :celsius ?low }
  DEFINE GPM B ON readings { ?s :celsius ?high FILTER(?high > ?low + 10) }
}"""
)
MAPPING = (
    PREFIX
    + """CONSTRUCT { ?s :celsius ?celsius }
WHERE { BIND(IRI(CONCAT("http://example.org/", ?sensor)) AS ?s) }"""
)
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
TWO = QUERY.replace("WHERE", "FROM STREAM t :t WHERE").replace("ON readings", "ON t", 1)
TYPES = {"low": pa.int64(), "high": pa.int64()}


def readings(sensors: int = 4) -> pa.Table:
    """Two readings of each sensor, of which those of the odd ones rise."""
    names = [f"s{number}" for number in range(sensors)]
    return pa.table(
        {
            "at": [NOON] * sensors + [NOON + timedelta(minutes=5)] * sensors,
            "sensor": names * 2,
            "celsius": [20] * sensors + [20 + 15 * (number % 2) for number in range(sensors)],
        }
    )


def matched(group: Any) -> pa.Table:
    """What a worker computes for one group."""
    found = match(
        group,
        QUERY.replace(" , ", " ; "),
        map=MAPPING,
        time_column="at",
        columns=["s", "low", "high"],
        types=TYPES,
    )
    return found.read_all()


WANTED = [("http://example.org/s1", 20, 35), ("http://example.org/s3", 20, 35)]


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def test_a_table_a_reader_and_batches() -> None:
    table = readings()
    assert rows(matched(table)) == WANTED
    assert rows(matched(table.to_reader(3))) == WANTED
    assert rows(matched(table.to_batches(3))) == WANTED
    assert rows(matched(iter([table.slice(0, 5), table.slice(5)]))) == WANTED
    assert rows(matched(table.combine_chunks().to_batches()[0])) == WANTED


def test_batches_are_read_as_matches_are_asked_for() -> None:
    read: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(50):
            read.append(number)
            at = NOON + timedelta(minutes=number)
            yield pa.record_batch({"at": [at], "sensor": ["s1"], "celsius": [20 * number]})

    reader = match(batches(), QUERY, map=MAPPING, time_column="at", size=1)
    assert reader.read_next_batch().num_rows == 1
    assert len(read) < 10


def test_events_in_columns_as_on_spark() -> None:
    graphs = [f'<urn:s> <http://example.org/celsius> "{n}"^^<{INTEGER}> .' for n in (20, 40)]
    times = {
        "timestamps": pa.array([NOON, NOON + timedelta(seconds=1)]),
        "numbers": pa.array([1, 2]),
        "texts": pa.array(["2026-01-05T12:00:00Z", "2026-01-05T12:00:01Z"]),
    }
    for kind, column in times.items():
        table = pa.table({"time": column, "graph": graphs, "name": ["urn:e1", None]})
        found = match(table, QUERY, columns=["low", "high", "events"]).read_all().to_pylist()
        assert [(row["low"], row["high"]) for row in found] == [(20, 40)], kind
        assert [event["name"] for event in found[0]["events"]] == ["urn:e1", None]


INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def test_several_queries_and_programs(tmp_path: Path) -> None:
    path = tmp_path / "rise.rq"
    path.write_text(QUERY)
    program = spaseq.compile([QUERY, QUERY], names=["a", "b"])
    for query in (program, [QUERY, QUERY], [path, path]):
        found = match(readings(), query, map=MAPPING, time_column="at").read_all()
        assert found.num_rows == 0  # with two sensors, the next event is another one's
    both = program.names
    alone = readings().slice(1, 5).filter([True, False, False, False, True])
    found = match(alone, program, map=MAPPING, time_column="at").read_all()
    assert found.column("query").to_pylist() == list(both)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"reader": 7}, ArgumentError, "reader: a reader, table or frame .*, not an int"),
        ({"reader": "t.parquet"}, ArgumentError, "not a str"),
        ({"reader": [7]}, ArgumentError, "an iterable of record batches is needed, and 7 is none"),
        ({"reader": []}, SpaseqError, "an iterable without a batch has no columns"),
        ({"map": None}, ArgumentError, "time_column: it is for rows with a mapping"),
        ({"map": None, "time_column": None}, SpaseqError, "has no column time .*sensor, celsius"),
        ({"map": "CONSTRUCT {"}, QueryError, "mapping:1"),
        ({"query": 7}, ArgumentError, "a query is a text"),
        ({"query": TWO},
         SpaseqError, "the events of one stream, and the queries read 2"),
    ],
)  # fmt: skip
def test_what_cannot_be_matched(
    arguments: dict[str, Any], kind: type[SpaseqError], message: str
) -> None:
    given = {"reader": readings(), "query": QUERY, "map": MAPPING, "time_column": "at"} | arguments
    with pytest.raises(kind, match=message):
        match(**given)


def test_events_without_a_graph_or_a_time() -> None:
    for column in ("time", "graph"):
        table = pa.table({"time": [NOON], "graph": [""]} | {column: pa.nulls(1, pa.string())})
        with pytest.raises(EventError, match=column):
            match(table, QUERY)


# ------------------------------------------------------------------ the libraries


def needs(module: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed")


@needs("polars")
def test_in_polars() -> None:
    import polars as pl

    frame: Any = pl.from_arrow(readings())
    found = frame.group_by("sensor").map_groups(lambda group: pl.from_arrow(matched(group)))
    assert sorted(found.rows()) == WANTED


@needs("duckdb")
def test_in_duckdb() -> None:
    import duckdb

    relation = duckdb.from_arrow(readings()).order('"at"')
    found = duckdb.from_arrow(matched(relation))
    assert sorted(found.fetchall()) == WANTED


@needs("dask")
def test_in_dask() -> None:
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(readings().to_pandas(), npartitions=2)
    meta = matched(readings(0)).to_pandas()
    found = (
        frame.shuffle("sensor", npartitions=2)
        .map_partitions(lambda part: matched(part.sort_values("at")).to_pandas(), meta=meta)
        .compute(scheduler="sync")
    )
    assert isinstance(found, pd.DataFrame)
    assert sorted(found.itertuples(index=False, name=None)) == WANTED


@needs("daft")
def test_in_daft() -> None:
    import daft

    @daft.func.batch(return_dtype=daft.DataType.struct(
        {"s": daft.DataType.string(), "low": daft.DataType.int64(), "high": daft.DataType.int64()}
    ))  # fmt: skip
    def jumps(at: Any, sensor: Any, celsius: Any) -> pa.Array:
        columns = {"at": at, "sensor": sensor, "celsius": celsius}
        return matched(pa.table({k: v.to_arrow() for k, v in columns.items()})).to_struct_array()

    frame = daft.from_arrow(readings()).sort("at")
    made = frame.groupby("sensor").map_groups(
        jumps(frame["at"], frame["sensor"], frame["celsius"]).alias("jump")
    )
    found = made.to_pydict()["jump"]
    assert sorted(tuple(row.values()) for row in found if row is not None) == WANTED


@needs("ray")
def test_in_ray() -> None:
    import ray

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        remote = ray.remote(lambda table: match(
            table, QUERY.replace(" , ", " ; "), map=MAPPING, time_column="at",
            columns=["s", "low", "high"], types=TYPES,
        ).read_all())  # fmt: skip
        table = readings()
        groups = [
            table.filter([name.as_py() == f"s{n}" for name in table["sensor"]]) for n in range(4)
        ]
        found = ray.get([remote.remote(group) for group in groups])
    finally:
        ray.shutdown()
    assert rows(pa.concat_tables(found)) == WANTED
