"""Rows with equal times and a mapping with blank nodes: no division and no order of rows matters.

A batch, a stream and the table function of SQL read the same drawn rows, without Spark: in any
order, in one to twelve partitions, each cut into Arrow batches.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from jobs import shuffled
from pyspark.sql import Row
from pyspark.sql import types as t
from pyspark.sql.udtf import AnalyzeArgument
from test_stateful import AFTER_ALL, Stream

import spaseq
from spaseq.io.arrow_columns import columns_of
from spaseq.kb.snapshot import open_kb
from spaseq.spark.division import Division
from spaseq.spark.mapped_rows import RowReader, checked
from spaseq.spark.sql import SpaseqMatch
from spaseq.spark.tasks import Evaluating, Gathering, Job, Numbering

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "12"))
STREAM = "http://example.org/s"
MAPPING = """PREFIX : <http://example.org/>
CONSTRUCT { [] :of ?s ; :v ?v ; :by _:who . _:who :with ?other }
WHERE { BIND(IRI(CONCAT(STR(:), ?k)) AS ?s) BIND(BNODE() AS ?other) FILTER(?v != 13) }"""
QUERY = """PREFIX : <http://example.org/> SELECT ?s ?a ?b WITHIN 1 HOUR PARTITION BY ?s
FROM STREAM s :s WHERE { SEQ(A , B)
  DEFINE GPM A ON s { [] :of ?s ; :v ?a } DEFINE GPM B ON s { [] :of ?s ; :v ?b } }"""
SCHEMA = t.StructType().add("time", "timestamp").add("k", "string").add("v", "long")
SCHEMA.add("n", "long")
ARROW = pa.schema(
    [
        ("time", pa.timestamp("us", "UTC")),
        ("k", pa.string()),
        ("v", pa.int64()),
        ("n", pa.int64()),
    ]
)
Rows = list[dict[str, Any]]


def drawn(chance: random.Random) -> Rows:
    """Rows of a few times, keys and values, so that some are equal but for their number `n`."""
    return [
        {
            "time": datetime.fromtimestamp(1_767_600_000 + number // 9, UTC),
            "k": chance.choice("xy"),
            "v": chance.randrange(25),
            "n": number,
        }
        for number in range(45)
    ]


def partitions(rows: Rows, count: int, chance: random.Random) -> list[list[pa.RecordBatch]]:
    """The rows in any order in some partitions, each in Arrow batches."""
    rows = chance.sample(rows, len(rows))
    found = []
    for number in range(count):
        own, batches = rows[number::count], []
        while own:
            size = chance.randint(1, len(own))
            batches.append(pa.RecordBatch.from_pylist(own[:size], schema=ARROW))
            own = own[size:]
        found.append(batches)
    return found


def reader() -> RowReader:
    return RowReader(STREAM, checked(MAPPING), "time", "timestamp", "FAILFAST")


def sourced(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.append_column("source", pa.nulls(len(batch), pa.string()))


def mapped(parts: Sequence[Sequence[pa.RecordBatch]]) -> Iterator[list[pa.RecordBatch]]:
    for batches in parts:
        yield [sourced(batch) for batch in reader()(batches)]


def pairs(rows: Any) -> Counter[tuple[str, ...]]:
    return Counter((row["s"], row["a"], row["b"]) for row in rows)


def batch(rows: Rows, count: int, chance: random.Random) -> Counter[tuple[str, ...]]:
    program = spaseq.compile(QUERY)
    columns = columns_of(program, "timestamp")
    job: Any = SimpleNamespace(
        value=Job(program, open_kb({}), columns, Division(("s",), ((),) * 3), buckets=3)
    )
    parts = mapped(partitions(rows, count, chance))
    gathered = [row for some in parts for row in Gathering(job)(some)]
    divided = list(Numbering(job)(shuffled(gathered)))
    return pairs(row for some in Evaluating(job)(shuffled(divided)) for row in some.to_pylist())


def stream(rows: Rows, count: int, chance: random.Random) -> Counter[tuple[str, ...]]:
    made = Stream(spaseq.compile(QUERY), open_kb({}), "timestamp", 3)
    for some in mapped(partitions(rows, count, chance)):
        events = pa.Table.from_batches(some).to_pylist() if some else []
        for event in events:
            event["graph"] = event["graph"].encode()
        made.batch(events, chance)
    made.watermark = AFTER_ALL
    made.batch([], chance)
    return pairs(made.rows)


def table_function(rows: Rows, chance: random.Random, **given: Any) -> Rows:
    """The rows of `spaseq_match`, PARTITION BY k ORDER BY time."""
    arguments = {"query": QUERY, "map": MAPPING, "time_column": "time", **given}
    constants = {
        name: AnalyzeArgument(t.StringType(), v, False, True) for name, v in arguments.items()
    }
    analysis = SpaseqMatch.analyze(AnalyzeArgument(SCHEMA, None, True, False), **constants)
    found = []
    for key in "xy":
        function = SpaseqMatch(analysis)
        own = [row for row in chance.sample(rows, len(rows)) if row["k"] == key]
        own.sort(key=lambda row: row["time"])
        made = []
        for row in own:
            local = row["time"].astimezone().replace(tzinfo=None)
            made += function.eval(Row(**{**row, "time": local}))
        found += [*made, *function.terminate()]
    return [dict(zip(analysis.schema.names, values, strict=True)) for values in found]


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_partitions_batches_and_orders_do_not_matter(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr("spaseq.spark.sql._ROWS_AT_ONCE", chance.choice((3, 7, 1024)))
    rows = drawn(chance)
    whole = batch(rows, 1, chance)
    assert whole.total() > 20
    for count in (3, 12):
        assert batch(rows, count, chance) == whole
    for count in (1, 3, 12):
        assert stream(rows, count, chance) == whole
    for _ in range(2):
        assert pairs(table_function(rows, chance)) == whole
