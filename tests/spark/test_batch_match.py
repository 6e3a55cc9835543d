"""`match` on Spark: as the engine alone, whatever the number of partitions; and its columns."""

from __future__ import annotations

import os
import random
import warnings
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from jobs import event_rows, shown
from pyspark.sql import DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as f

import spaseq
from spaseq.errors import EventError, KbError, SpaseqError
from spaseq.io import time_column
from spaseq.io.arrow_columns import columns_of
from spaseq.io.arrow_rows import batches
from spaseq.io.source import Source
from spaseq.program import Program
from spaseq.rdf.event import Event
from spaseq.spark import SingleTaskWarning, from_kafka, from_quads, match, quads, typed
from spaseq.spark.events import micros as near_micros
from spaseq.spark.paths import Folder
from spaseq.spark.sink import FolderWriter, Target
from spaseq.sparql.registry import registry_restored

STREAM = "http://example.org/s"
AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
XSD = "http://www.w3.org/2001/XMLSchema#"
HEAD = "PREFIX : <http://example.org/>"
GPMS = """
  DEFINE GPM Low ON s { ?k :value ?low FILTER(?low < 3) }
  DEFINE GPM Mid ON s { ?k :value ?n FILTER(?n >= 3 && ?n < 7) }
  DEFINE GPM High ON s { [] :value ?high GRAPH :kb { ?k :in ?room } FILTER(?high > ?low + 5) }
}"""
BY_KEY = f"""{HEAD}
SELECT ?k ?low ?n ?room WITHIN 30 SECONDS PARTITION BY ?k EMIT MAX FROM STREAM s :s
WHERE {{ SEQ(Low , Mid+ ; High) {GPMS.replace("[] :value", "?k :value")}"""
BY_TIME = f"""{HEAD}
CONSTRUCT {{ [] :from ?k ; :to ?room }} WITHIN 8 SECONDS FROM STREAM s :s
WHERE {{ SEQ(Mid? ; Low , High) {GPMS}"""
SINGLE = f"""{HEAD}
SELECT DISTINCT ?low ?high WITHIN 9 EVENTS FROM STREAM s :s
WHERE {{ SEQ(Low ; Mid? , High) {GPMS}"""
KB = f"""@prefix : <{"http://example.org/"}> .
:k0 :in :kitchen . :k1 :in :cellar . :k2 :in :kitchen . :k3 :in :attic .
"""


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """Some hundred, of which several share a time."""
    chance = random.Random(3)
    folder = tmp_path_factory.mktemp("events")
    path, seconds, text = folder / "s.nq", 0, ""
    for number in range(400):
        seconds += chance.choice((0, 1, 1, 2))
        name = f"<http://example.org/event/{number}>"
        time = datetime.fromtimestamp(1_767_600_000 + seconds, UTC).isoformat()
        text += f'{name} {AT} "{time.replace("+00:00", "Z")}"^^<{XSD}dateTime> .\n'
        if chance.random() < 0.9:
            value = f'"{chance.randrange(10)}"^^<{XSD}integer>'
            text += f"<http://example.org/k{chance.randrange(4)}> "
            text += f"<http://example.org/value> {value} {name} .\n"
    path.write_text(text)
    return list(Source(STREAM, [str(path)]))


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    path = tmp_path_factory.mktemp("kb") / "kb.ttl"
    path.write_text(KB)
    return {"http://example.org/kb": str(path)}


@pytest.fixture(scope="module")
def frame(spark: SparkSession, events: list[Event]) -> DataFrame:
    rows = event_rows(events, "timestamp")
    random.Random(1).shuffle(rows)
    for row, event in zip(rows, rows, strict=True):
        row["time"] = datetime.fromtimestamp(event["time"] / 1_000_000, UTC)
    schema = "stream string, time timestamp, ordinal int, name string, graph binary"
    return spark.createDataFrame(rows, schema).repartition(3).cache()


def wanted(program: Program, kb: dict[str, str], events: list[Event]) -> Counter[str]:
    run = program.start(kb)
    columns = columns_of(program, "timestamp")
    made = batches(columns, [*run.push_batch(events), *run.finish()])
    return shown(row for batch in made for row in batch.to_pylist())


def rows(matches: DataFrame) -> Counter[str]:
    return shown(matches.toArrow().to_pylist())


@pytest.mark.parametrize("query", [BY_KEY, BY_TIME, SINGLE], ids=["by key", "by time", "single"])
def test_partitions_do_not_matter(
    query: str, frame: DataFrame, events: list[Event], kb: dict[str, str]
) -> None:
    program = spaseq.compile(query)
    nameless = [Event(e.stream, e.time, e.ordinal, e.facts) for e in events]
    found = wanted(program, kb, nameless)
    assert found.total() > 5
    with warnings.catch_warnings():
        warnings.simplefilter("error" if query != SINGLE else "ignore", SingleTaskWarning)
        # Rows without a stream are of the only one; rows of other streams are counted.
        seen = Observation()
        others = frame.withColumn("stream", f.lit("urn:other")).limit(9)
        mixed = frame.withColumn("stream", f.lit(None)).unionByName(others)
        assert rows(match(mixed, program, kb, partitions=7, observe=seen)) == found
        assert seen.get == {"events": len(events), "other_streams": 9}
        assert rows(match(frame, program, kb, partitions=1)) == found
        assert rows(match(frame, program, kb, balance=True)) == found


def test_functions_of_the_caller_reach_the_workers(
    frame: DataFrame, events: list[Event], kb: dict[str, str]
) -> None:
    with registry_restored():

        @spaseq.function(f"{STREAM}#next")
        def next_number(number: int) -> int:
            return number + 1

        name = f"<{STREAM}#next>"
        program = spaseq.compile(
            BY_KEY.replace("?low < 3", f"{name}(?low) < 4 && {name}(?low) != 2"), names=["q"]
        )
        nameless = [Event(e.stream, e.time, e.ordinal, e.facts) for e in events]
        found = wanted(program, kb, nameless)
        assert 0 < found.total() < wanted(spaseq.compile(BY_KEY, names=["q"]), kb, nameless).total()
        for partitions in (1, 3):
            assert rows(match(frame, program, kb, partitions=partitions)) == found


def test_matching_what_follows(
    frame: DataFrame, events: list[Event], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Workers prune, divide and match by the same entailment."""
    path = tmp_path_factory.mktemp("schema") / "kb.ttl"
    schema = ":value <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> :shown .\n"
    path.write_text(KB + schema)
    kb = {"http://example.org/kb": str(path)}
    program = spaseq.compile(BY_KEY.replace(":value", ":shown"))
    nameless = [Event(e.stream, e.time, e.ordinal, e.facts) for e in events]
    found = wanted(spaseq.compile(BY_KEY), kb, nameless)
    assert found.total() > 5
    assert rows(match(frame, program, kb, partitions=3)).total() == 0
    assert rows(match(frame, program, kb, partitions=3, entail="rdfs")) == found
    assert rows(match(frame, program, kb, balance=True, entail="rdfs")) == found


def test_what_cannot_be_divided_warns(frame: DataFrame, kb: dict[str, str]) -> None:
    with pytest.warns(SingleTaskWarning, match="EVENTS counts the events of all keys"):
        match(frame, SINGLE, kb)
    with pytest.warns(SingleTaskWarning, match="hot keys are not divided: .*DISTINCT"):
        match(frame, BY_KEY.replace("SELECT", "SELECT DISTINCT"), kb, balance=True)


def test_what_does_not_fit_is_told_at_once(frame: DataFrame, kb: dict[str, str]) -> None:
    with pytest.raises(KbError, match="was not given"):
        match(frame, BY_KEY.replace("FROM STREAM", "FROM :kb FROM STREAM"))
    with pytest.raises(EventError, match="no column time"):
        match(frame.drop("time"), BY_KEY, kb)
    with pytest.raises(EventError, match="no column graph"):
        match(frame.drop("graph"), BY_KEY, kb)
    with pytest.raises(EventError, match="time has the type array"):
        match(frame.selectExpr("array(1) AS time", "graph"), BY_KEY, kb)
    for wrong, said in (
        ("1 AS stream", "the column stream has the type int; it must be the IRI of a stream"),
        ("'1' AS ordinal", "the column ordinal has the type string; it must be a whole number"),
        ("1 AS graph", "the column graph has the type int; it must be N-Triples as text or bytes"),
    ):
        name = wrong.split()[-1]
        with pytest.raises(EventError, match=said):
            match(frame.drop(name).selectExpr("*", wrong), BY_KEY, kb)
    with pytest.raises(ValueError, match="max_groups must be at least 1"):
        match(frame, BY_KEY, kb, max_groups=0)
    stream = frame.sparkSession.readStream.format("rate").load()
    with pytest.raises(SpaseqError, match="not streaming; use match_stream"):
        match(stream.selectExpr("timestamp AS time", "'' AS graph"), BY_KEY, kb)
    with pytest.raises(ValueError, match="no column nothing"):
        match(frame, BY_KEY, kb, types={"nothing": "int"})


@pytest.mark.parametrize(
    ("time", "micros"),
    [
        ("TIMESTAMP_NTZ'2026-01-05 10:00:00'", 1_767_607_200_000_000),
        ("TIMESTAMP'2026-01-05 10:00:00Z'", 1_767_607_200_000_000),
        ("DATE'2026-01-05'", 1_767_571_200_000_000),
        ("'2026-01-05T10:00:00'", 1_767_607_200_000_000),
        ("'2026-01-05T10:00:00+02:00'", 1_767_600_000_000_000),
        ("'2026-01-05'", 1_767_571_200_000_000),
        ("'\"2.5\"^^<http://www.w3.org/2001/XMLSchema#decimal>'", 2_500_000),
        ("2.5", 2_500_000),
        ("2", 2_000_000),
    ],
)
def test_times_are_those_of_the_engine(spark: SparkSession, time: str, micros: int) -> None:
    """Whatever the session's time zone is: a time without a zone is in UTC."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        df = spark.sql(f"SELECT {time} AS time, '' AS graph")
        near = df.select(near_micros(df.schema)).first()
        (batch,) = df.select("time").toArrow().to_batches()
        exact, _, _ = time_column.read(batch.column(0))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert (near[0], exact.to_pylist()) == (micros, [micros])


@pytest.mark.parametrize("query", [BY_KEY, BY_TIME], ids=["select", "construct"])
def test_columns_that_are_wanted(query: str, frame: DataFrame, kb: dict[str, str]) -> None:
    whole = match(frame, query, kb)
    form = "bindings" if query == BY_KEY else "graph"
    wanted = ["end", form, "id"]
    found = match(frame, query, kb, columns=wanted)
    assert found.dtypes == whole.select(wanted).dtypes
    assert rows(found) == rows(whole.select(wanted))


def test_columns_that_some_queries_lack(frame: DataFrame, kb: dict[str, str]) -> None:
    """They are null there; a query that has none of them has its rows nevertheless."""
    both = [BY_KEY, BY_TIME]
    whole = match(frame, both, kb).cache()
    for wanted in (["graph", "low", "end"], ["low"], ["graph", "graph"]):
        named = list(dict.fromkeys(wanted))
        found = match(frame, both, kb, columns=wanted)
        assert found.columns == named
        assert rows(found) == rows(whole.select(named))
    with pytest.raises(ValueError, match=r"there is no column lo; there are id, .*low.*graph"):
        match(frame, both, kb, columns=["low", "lo"])


def test_columns_that_cannot_be(frame: DataFrame, kb: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="there is no column lo; there are id, query, start"):
        match(frame, BY_KEY, kb, columns=["lo"])
    with pytest.raises(ValueError, match="reads the column bindings, which columns does not list"):
        match(frame, BY_KEY, kb, columns=["low"], types="infer")


def test_typed_columns(frame: DataFrame, kb: dict[str, str]) -> None:
    matches = match(frame, BY_KEY, kb, types="infer")
    types = dict(matches.dtypes)
    assert (types["k"], types["low"], types["n"]) == ("string", "bigint", "bigint")
    (low, as_text) = matches.selectExpr("low", "bindings['low']").first()
    assert as_text == f'"{low}"^^<{XSD}integer>'
    assert dict(typed(matches, {"low": "double"}).dtypes)["low"] == "double"
    assert matches.limit(3).toPandas().shape[0] == 3


def test_graphs_are_written_and_read_again(
    spark: SparkSession, frame: DataFrame, kb: dict[str, str], tmp_path: Path
) -> None:
    matches = match(frame, BY_TIME, kb, partitions=3).cache()
    folder = str(tmp_path / "out")
    for mode in ("append", "overwrite"):
        quads(matches).write.format("rdf").mode(mode).save(folder)
        assert all(name.name.endswith(".nq") for name in Path(folder).iterdir())
        again = spark.read.format("rdf-events").option("stream", "http://x/y").load(folder)
        found = Counter(row.time for row in again.collect())
        assert found == Counter(row["end"] for row in matches.select("end").collect())
    with pytest.raises(Exception, match="cannot be the subject"):
        spark.createDataFrame(
            [("no iri", "<a:b>", "<a:b>")], "s string, p string, o string"
        ).write.format("rdf").mode("append").save(folder)
    with pytest.raises(SpaseqError, match="no graphs"):
        quads(frame)


def test_events_of_other_shapes(
    spark: SparkSession, frame: DataFrame, events: list[Event], kb: dict[str, str]
) -> None:
    named = [Event(e.stream, e.time, e.ordinal, e.facts, e.name) for e in events if e.facts]
    program = spaseq.compile(BY_KEY)
    lines = []
    for event in named:
        lines.append((str(event.name), AT, str(event.time.term), None))
        lines += [(str(s), str(p), str(o), str(event.name)) for s, p, o in event.facts]
    frame_of_quads = spark.createDataFrame(lines, "s string, p string, o string, g string")
    from_rows = rows(match(from_quads(frame_of_quads, STREAM), program, kb, partitions=2))
    table = [
        (
            str(e.name)[1:-1].encode(),
            row["graph"],
            datetime.fromtimestamp(row["time"] / 1e6, UTC),
            n,
        )
        for n, (e, row) in enumerate(zip(named, event_rows(named, "timestamp"), strict=True))
    ]
    kafka = spark.createDataFrame(
        table, "key binary, value binary, timestamp timestamp, offset bigint"
    )
    of_topics = match(from_kafka(kafka, STREAM), program, kb, partitions=2)
    counted: dict[object, int] = {}
    numbered = []
    for event in named:
        ordinal = counted.get(event.time, 0)
        counted[event.time] = ordinal + 1
        numbered.append(Event(STREAM, event.time, ordinal, event.facts, event.name))
    assert rows(of_topics) == wanted(program, kb, numbered)
    # Quads have no order: events of one time are numbered by name.
    assert from_rows.total() > 10


def test_overwrite_replaces_files_of_any_kind(tmp_path: Path) -> None:
    quad = Row(s="<http://x/a>", p="<http://x/p>", o='"1"')
    for suffix in (".nq.gz", ".nt", ".nq", ".nt.gz"):
        writer = FolderWriter(Target(Folder(str(tmp_path)), suffix, ("s", "p", "o")), True)
        writer.commit([writer.write(iter([quad]))])
        (name,) = os.listdir(tmp_path)
        assert name.startswith("part-")
        assert name.endswith(suffix)
