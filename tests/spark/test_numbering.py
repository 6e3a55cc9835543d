"""Ordinals belong to a stream: no number of cores, parts or batches changes a match or its `id`.

The command, `match` and `match_stream` read the same drawn files, in which many events share a
time, within a file and across files.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from clusters_driver import batch, described
from pyspark.sql import SparkSession
from streaming_driver import STREAM

import spaseq
from spaseq.cli import main
from spaseq.io.arrow_columns import columns_of
from spaseq.io.arrow_rows import batches
from spaseq.io.read_options import ReadOptions
from spaseq.io.source import Source
from spaseq.results.identity import event_digest
from spaseq.spark import chunks, match_stream, numbering

AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
A = "DEFINE GPM A ON s { ?k :value ?a FILTER(?a < 5) }"
B = "DEFINE GPM B ON s { ?k :value ?b FILTER(?b >= 5) }"
N = "DEFINE GPM N ON s { ?any :stop ?n }"
HEAD = "PREFIX : <http://example.org/>\nSELECT * WITHIN 3 SECONDS"
FROM = "FROM STREAM s :s\nWHERE { SEQ"
QUERIES = {
    "key": f"{HEAD} PARTITION BY ?k {FROM}(A ; !N ; B) {A} {B} {N} }}",
    "time": f"{HEAD} {FROM}(A , B) {A} {B.replace('?k', '?l')} }}",
}
LATENESS = 1000
"""Seconds: more than the files last."""


def write(folder: Path, seed: int, files: int) -> list[Path]:
    """Files in whose order of names the events of one time follow each other."""
    chance, paths = random.Random(seed), []
    events = folder / "events"
    events.mkdir(parents=True)
    for file in range(files):
        seconds, text = 0, ""
        for number in range(12):
            seconds += chance.choice((0, 0, 1))
            name = f"<urn:e{chance.randrange(99)}-{file}-{number}>"
            if chance.random() < 0.2:
                name = f"_:g{number}"
            text += f'{name} {AT} "{seconds}"{INTEGER} .\n'
            for key in chance.sample("abc", chance.choice((0, 1, 1, 2))):
                value = f'"{chance.randrange(10)}"{INTEGER}'
                text += f"<urn:{key}> <http://example.org/value> {value} {name} .\n"
            if chance.random() < 0.1:
                text += f'<urn:z> <http://example.org/stop> "1"{INTEGER} {name} .\n'
        paths.append(events / f"{file}.nq")
        paths[-1].write_text(text)
        # The order in which files were written is not that of their names.
        os.utime(paths[-1], ns=((files - file) * 10**9,) * 2)
    return paths


def engine(query: str, paths: list[Path]) -> list[list[Any]]:
    """What the engine finds in one process."""
    program = spaseq.compile(query)
    run = program.start()
    options = ReadOptions(lateness=LATENESS * 1_000_000)
    source = Source(STREAM, list(map(str, paths)), options, relevance=run.relevance)
    matches = [match for events in source.batches() for match in run.push_batch(events)]
    made = batches(columns_of(program, "decimal"), [*matches, *run.finish()])
    return described(row for some in made for row in some.to_pylist())


def command(
    query: str, paths: list[Path], folder: Path, capsys: pytest.CaptureFixture[str]
) -> list[list[Any]]:
    """The events of the matches that the command finds, without names that are blank nodes."""
    capsys.readouterr()
    (folder / "run.rq").write_text(query)
    streams = [part for path in paths for part in ("--stream", f"s={path}")]
    lateness = f"{LATENESS}s"
    assert main(["run", str(folder / "run.rq"), *streams, "--lateness", lateness]) == 0
    lines = capsys.readouterr().out.splitlines()
    (folder / "run.rq").unlink()
    return sorted(
        [[e.get("graph"), e["ordinal"]] for e in json.loads(line)["events"]] for line in lines
    )


def places(matches: list[list[Any]]) -> list[list[Any]]:
    return [events for _, events in matches]


def is_blank(name: str) -> bool:
    return name.startswith("_:")


def named(matches: list[list[Any]]) -> list[list[Any]]:
    """The events of matches, those that are blank nodes by their ordinals alone."""
    return sorted([["_:" if is_blank(n) else n, o] for n, o in events] for events in matches)


def test_the_command_a_batch_and_a_stream_find_the_same(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = write(tmp_path, 2, 4)
    wanted = {name: engine(query, paths) for name, query in QUERIES.items()}
    for name, query in QUERIES.items():
        assert len(wanted[name]) > 3
        assert named(command(query, paths, tmp_path, capsys)) == named(places(wanted[name]))
    reader = spark.read.format("rdf-events").option("stream", STREAM).option("times", "decimal")
    rows = reader.load(str(tmp_path / "events"))
    for name, query in QUERIES.items():
        assert batch(rows, query, partitions=5) == wanted[name]
        assert batch(rows.repartition(7, "name"), query) == wanted[name]
    tick = f'<urn:tick> {AT} "100000"{INTEGER} .\n'
    (tmp_path / "events" / "last.nq").write_text(tick)
    stream = spark.readStream.format("rdf-events").option("times", "decimal")
    stream = stream.option("stream", STREAM).option("maxFilesPerTrigger", "2")
    stream = stream.load(str(tmp_path / "events"))
    out, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")
    lateness = f"{LATENESS} seconds"
    found = match_stream(
        stream, QUERIES["key"], lateness=lateness, parts=5, columns=["id", "events"]
    )
    writer = found.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(out).awaitTermination()
    assert described(spark.read.parquet(out).collect()) == wanted["key"]


def arrived(*rows: dict[str, Any]) -> pa.Table:
    """Events of the stream 0 at the time 1, with the columns that matter."""
    plain = {"micros": 1, "stream": 0, "dated": False, "graph": b""}
    return pa.Table.from_pylist([{**plain, **row} for row in rows], schema=chunks.ARRIVED)


def test_the_order_of_simultaneous_events() -> None:
    """By source, ordinal, name, graph; an event without one of them comes first."""
    rows: list[dict[str, Any]] = [
        {"name": None, "graph": b"1"},
        {"name": None, "graph": b"2"},
        {"name": "a", "graph": b"2"},
        {"name": "a", "graph": b"3"},
        {"name": "b", "graph": b"1"},
        {"name": "a", "ordinal": 0},
        {"name": "a", "ordinal": 7},
        {"source": "1", "ordinal": 3, "name": "x"},
        {"source": "2", "ordinal": 1, "name": "y"},
        {"source": "2", "ordinal": 2, "name": "a"},
        {"stream": 1, "name": "c"},
        {"micros": 2, "name": "d"},
    ]
    chance = random.Random(1)
    for _ in range(5):
        table = chunks.ordered(arrived(*chance.sample(rows, len(rows))))
        done = numbering.numbered(table, ("s", "t"))
        assert done.schema == chunks.EVENTS
        first = [row for row in done.to_pylist() if (row["micros"], row["stream"]) == (1, 0)]
        assert [(row["name"], row["graph"]) for row in first] == [
            (row["name"], row.get("graph", b"")) for row in rows[:-2]
        ]
        assert [row["ordinal"] for row in first] == list(range(len(rows) - 2))
        assert [row["ordinal"] for row in done.to_pylist() if row["name"] in ("c", "d")] == [0, 0]


def test_names_that_are_blank_nodes_follow_the_ordinal() -> None:
    def blank(ordinal: int) -> str:
        return f"_:e{event_digest('s', 1, ordinal)}"

    rows = [{"source": s, "ordinal": 0, "name": blank(0)} for s in "ab"]
    rows.append({"source": "c", "ordinal": 0, "name": "_:eother"})
    names = numbering.numbered(arrived(*rows), ("s",)).column("name").to_pylist()
    assert names == [blank(0), blank(1), "_:eother"]


def test_watermarks_release_times_as_a_whole() -> None:
    first = arrived({"micros": 5, "name": "b"}, {"micros": 9, "name": "z"})
    second = arrived({"micros": 2, "name": "late"}, {"micros": 5, "name": "a"})
    done = numbering.release([], [first], 4, ("s",))
    assert (len(done.ready), len(done.late), done.waiting.num_rows) == (0, 0, 2)
    done = numbering.release([done.waiting], [second], 4, ("s",))
    assert done.late.column("name").to_pylist() == ["late"]
    done = numbering.release([done.waiting], [], 6, ("s",))
    assert done.ready.select(["name", "ordinal"]).to_pylist() == [
        {"name": "a", "ordinal": 0},
        {"name": "b", "ordinal": 1},
    ]
    assert done.waiting.column("name").to_pylist() == ["z"]
