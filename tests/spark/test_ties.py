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
from spaseq.errors import ArgumentError, InputError
from spaseq.io.arrow_columns import columns_of
from spaseq.io.arrow_rows import batches
from spaseq.io.read_options import ReadOptions
from spaseq.io.rows.source import RowSource
from spaseq.kb.snapshot import open_kb
from spaseq.spark.division import Division
from spaseq.spark.mapped_rows import RowReader, checked, with_ordinal
from spaseq.spark.sql import SpaseqMatch
from spaseq.spark.tasks import Evaluating, Gathering, Job, Numbering

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "6"))
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


def reader(ordinal: str | None) -> RowReader:
    mapping = with_ordinal(checked(MAPPING), SCHEMA, ordinal)
    return RowReader(STREAM, mapping, "time", "timestamp", "FAILFAST")


def sourced(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.append_column("source", pa.nulls(len(batch), pa.string()))


def mapped(
    parts: Sequence[Sequence[pa.RecordBatch]], ordinal: str | None
) -> Iterator[list[pa.RecordBatch]]:
    for some in parts:
        yield [sourced(batch) for batch in reader(ordinal)(some)]


def pairs(rows: Any) -> Counter[tuple[str, ...]]:
    return Counter((row["s"], row["a"], row["b"]) for row in rows)


def batch(rows: Rows, count: int, chance: random.Random, ordinal: str | None = None) -> Rows:
    program = spaseq.compile(QUERY)
    columns = columns_of(program, "timestamp")
    job: Any = SimpleNamespace(
        value=Job(program, open_kb({}), columns, Division(("s",), ((),) * 3), buckets=3)
    )
    parts = mapped(partitions(rows, count, chance), ordinal)
    gathered = [row for some in parts for row in Gathering(job)(some)]
    divided = list(Numbering(job)(shuffled(gathered)))
    return [row for some in Evaluating(job)(shuffled(divided)) for row in some.to_pylist()]


def stream(rows: Rows, count: int, chance: random.Random, ordinal: str | None = None) -> Rows:
    made = Stream(spaseq.compile(QUERY), open_kb({}), "timestamp", 3)
    for some in mapped(partitions(rows, count, chance), ordinal):
        events = pa.Table.from_batches(some).to_pylist() if some else []
        for event in events:
            event["graph"] = event["graph"].encode()
        made.batch(events, chance)
    made.watermark = AFTER_ALL
    made.batch([], chance)
    return made.rows


def engine(rows: Rows) -> Counter[tuple[str, ...]]:
    """What one process finds in the rows as they are."""
    program = spaseq.compile(QUERY)
    run = program.start()
    source = RowSource(
        STREAM,
        [pa.Table.from_pylist(rows, schema=ARROW)],
        ReadOptions(time_column="time"),
        relevance=run.relevance,
        mapping=checked(MAPPING),
    )
    matches = [match for some in source.batches() for match in run.push_batch(some)]
    columns = columns_of(program, "timestamp")
    made = batches(columns, [*matches, *run.finish()])
    return pairs(row for some in made for row in some.to_pylist())


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
    for ordinal in (None, "n"):
        whole = batch(rows, 1, chance, ordinal)
        assert pairs(whole).total() > 20
        ids = {row["id"] for row in whole}
        assert len(ids) == len(whole)
        for count in (3, 12):
            assert {row["id"] for row in batch(rows, count, chance, ordinal)} == ids
        for count in (1, 3, 12):
            made = stream(rows, count, chance, ordinal)
            assert pairs(made) == pairs(whole)
            assert {row["id"] for row in made} == ids
        named = {} if ordinal is None else {"ordinal_column": ordinal}
        once, again = (table_function(rows, chance, **named) for _ in range(2))
        assert pairs(once) == pairs(again) == pairs(whole)
        assert {row["id"] for row in once} == {row["id"] for row in again}
        if ordinal is not None:
            # Ties are in the order of the numbers, as in a table that is sorted by them.
            assert pairs(whole) == engine(rows)


def test_an_ordinal_is_a_whole_number_or_absent() -> None:
    rule = """PREFIX : <http://example.org/> CONSTRUCT { :s :v ?n }
    WHERE { BIND(IF(?n = 1, 1/0, IF(?n = 2, "2", xsd:integer(?k) - ?n)) AS ?_ordinal) }"""
    rule = rule.replace("xsd:integer", "<http://www.w3.org/2001/XMLSchema#integer>")
    rows = [
        {**row, "n": number, "k": key}
        for number, (row, key) in enumerate(
            zip(drawn(random.Random(1)), ("7", "8", "9", "-9223372036854775800", "x"), strict=False)
        )
    ]
    given = pa.RecordBatch.from_pylist(rows, schema=ARROW)
    (found,) = RowReader(STREAM, checked(rule), "time", "timestamp", "DROPMALFORMED")([given])
    made = dict(
        zip(found.column("graph").to_pylist(), found.column("ordinal").to_pylist(), strict=True)
    )
    assert {int(graph.split('"')[1]): ordinal for graph, ordinal in made.items()} == {
        0: 7,
        1: None,
        3: -9223372036854775803,
        4: None,
    }
    with pytest.raises(InputError, match=r'\?_ordinal is "2"; an ordinal is an xsd:integer'):
        list(RowReader(STREAM, checked(rule), "time", "timestamp", "FAILFAST")([given]))
    with pytest.raises(ArgumentError, match=r"mapping binds \?_ordinal already"):
        with_ordinal(checked(rule), SCHEMA, "n")


UNBOUND = """PREFIX : <http://example.org/> SELECT ?e ?a ?b WITHIN 2 SECONDS FROM STREAM s :s
WHERE { SEQ(A ; B) DEFINE GPM A ON s { ?e :v ?a } DEFINE GPM B ON s { [] :v ?b } }"""


def test_ids_of_different_partitions_are_different() -> None:
    """Also where the query does not see the partition; so are blank nodes of their events."""
    chance, rule = random.Random(4), "PREFIX : <http://example.org/> CONSTRUCT { [] :v 1 } WHERE {}"
    rows = drawn(chance)
    found = table_function(rows, chance, query=UNBOUND, map=rule)
    assert len(found) > 30
    assert len({row["id"] for row in found}) == len(found)
    # `[]` of an event is in one partition only.
    nodes = {
        row["e"]: {other["events"][0]["ordinal"] for other in found if other["e"] == row["e"]}
        for row in found
    }
    assert all(len(ordinals) == 1 for ordinals in nodes.values())
    # The matches of later rows do not depend on the rows before them.
    last = rows[-1]["time"]
    some = [row for row in rows if (last - row["time"]).total_seconds() <= 3]
    later = table_function(some, chance, query=UNBOUND, map=rule)
    wanted = {row["id"] for row in found if row["start"] >= some[0]["time"]}
    assert {row["id"] for row in later} == wanted
    assert len(wanted) > 10
