"""The data source `rdf-events`: its readers in this process, and once through Spark."""

from __future__ import annotations

import gzip
import json
import os
import random
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from spaseq.errors import InputError, SpaseqError
from spaseq.generate import write
from spaseq.spark import source, versions
from spaseq.spark.source import EventOptions, EventsReader, GrowingFolder, RdfEvents
from spaseq.spark.versions import ReadAllAvailable, ReadMaxFiles

STREAM = "http://example.org/s"
AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
XSD = "http://www.w3.org/2001/XMLSchema#"


def options(path: Path, **more: str) -> EventOptions:
    return EventOptions.parse({"path": str(path), "stream": STREAM, **more})


def read(given: EventOptions) -> list[dict[str, Any]]:
    reader = EventsReader(given)
    return [
        row
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]


def lines_of(seed: int, events: int) -> Iterator[str]:
    """N-Quads in which many events share a time, which stands in front, behind or inside."""
    chance = random.Random(seed)
    time = 0
    for number in range(events):
        time += chance.choice((0, 0, 0, 1))
        name = f"<http://example.org/{number}>" if chance.random() < 0.9 else f"_:g{number}"
        shown = chance.choice((f'"{time}"^^<{XSD}integer>', f'"{time}.0"^^<{XSD}decimal>'))
        stamp = f"{name} {AT} {shown} .\n"
        quads = "".join(
            f'_:n <http://example.org/p> "{chance.random()} \\"quoted\\" . <x> {number}" {name} .\n'
            for _ in range(chance.randint(1, 4))
        )
        yield stamp + quads if chance.random() < 0.5 else quads + stamp
        if chance.random() < 0.1:
            yield "# a comment\n\n"


@pytest.mark.parametrize("seed", range(8))
def test_stretches_are_the_file(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.nq"
    path.write_text("".join(lines_of(seed, 60)))
    whole = read(options(path, times="string", splitSize="100000000"))
    assert len(whole) == 60
    chance = random.Random(seed)
    monkeypatch.setattr("spaseq.spark.splits._PROBE_BYTES", chance.choice((64, 300, 2000)))
    for size in (37 if seed < 2 else 370, chance.randint(50, 4000), path.stat().st_size - 1):
        given = options(path, times="string", splitSize=str(size))
        assert len(EventsReader(given).partitions()) > 1
        parts = read(given)
        assert [(r["time"], r["ordinal"], r["name"]) for r in parts] == [
            (r["time"], r["ordinal"], r["name"]) for r in whole
        ]
        assert [r["graph"] for r in parts] == [r["graph"] for r in whole]


def test_formats_say_the_same(tmp_path: Path) -> None:
    trades = Path(write("stock", 60, 1, tmp_path)[0])
    found = read(options(trades))
    zipped = tmp_path / "zipped.nq.gz"
    zipped.write_bytes(gzip.compress(trades.read_bytes()))
    trig = tmp_path / "same.trig"
    trig.write_bytes(trades.read_bytes().replace(b"\r", b""))
    assert len(found) == 60
    assert {row["source"] for row in found} == {str(trades)}
    assert read(options(zipped)) == [{**row, "source": str(zipped)} for row in found]
    assert found[0]["stream"] == STREAM
    assert found[0]["time"].year > 2000


def test_messages_and_triples(tmp_path: Path) -> None:
    messages = tmp_path / "m.nt"
    one = f'<http://e/s> {AT} "1"^^<{XSD}integer> .\n<http://e/s> <http://e/p> <http://e/o> .\n'
    messages.write_text('VERSION "1.2-messages"\n' + one + "MESSAGE\n" + one.replace('"1"', '"2"'))
    found = read(options(messages, times="decimal", splitSize="20"))
    assert [int(row["time"]) for row in found] == [1, 2]
    plain = tmp_path / "t.nt"
    plain.write_text("<http://e/s> <http://e/p> <http://e/o> .\n" * 3)
    assert len(read(options(plain, events="triples:1", times="decimal"))) == 3


def test_corrupt_records(tmp_path: Path) -> None:
    path = tmp_path / "events.nq"
    lines = list(lines_of(1, 5))
    path.write_text("".join(lines[:2]) + "what is this\n" + "".join(lines[2:]))
    with pytest.raises(InputError, match=r"^\[SPASEQ_INVALID_INPUT\] .*events\.nq:\d+:"):
        read(options(path, times="string"))
    dropped = read(options(path, times="string", mode="dropMalformed"))
    kept = read(options(path, times="string", mode="PERMISSIVE"))
    assert [row["name"] for row in kept if row["graph"]] == [row["name"] for row in dropped]
    (bad,) = [row["_corrupt_record"] for row in kept if row["_corrupt_record"]]
    assert "events.nq:" in bad


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"timess": "string"}, "no option timess"),
        ({"times": "dates"}, "one of timestamp, decimal, string"),
        ({"stream": ""}, "needs the option stream"),
        ({"events": "triples:0"}, "triples:N"),
        ({"path": "ftp://there/x"}, "neither a path nor a URL of a known file system"),
        ({"path": "nowhere/*.nq"}, "no RDF file at nowhere"),
    ],
)
def test_wrong_options(given: dict[str, str], said: str) -> None:
    with pytest.raises(SpaseqError, match=rf"^\[SPASEQ_ERROR\] .*{said}"):
        RdfEvents({"path": "x.nq", "stream": STREAM, **given}).reader(StructType()).partitions()


def test_a_number_where_dates_are_expected(tmp_path: Path) -> None:
    path = tmp_path / "events.nq"
    path.write_text("".join(lines_of(1, 2)))
    with pytest.raises(InputError, match='set the option times to "decimal"'):
        read(options(path))


def test_several_paths_and_folders_in_folders(tmp_path: Path) -> None:
    for number, name in enumerate(("b.nq", "a.nq", "in/c.nq", "in/_d.nq", ".e/f.nq", "g.txt")):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(lines_of(1, 1)))
        os.utime(path, ns=(number * 10**9, number * 10**9))

    def found(*paths: str, **more: str) -> list[str]:
        given = {"paths": json.dumps([str(tmp_path / path) for path in paths]), "stream": STREAM}
        files = EventOptions.parse({**given, **more}).files()
        return [str(Path(file).relative_to(tmp_path)) for file in files]

    assert found("") == ["b.nq", "a.nq"]
    assert found("", recursiveFileLookup="true") == ["b.nq", "a.nq", "in/c.nq"]
    assert found("in", "a.nq", "g.txt") == ["a.nq", "in/c.nq", "g.txt"]
    assert found("*.nq", "a.nq") == ["b.nq", "a.nq"]


def test_a_growing_folder(tmp_path: Path) -> None:
    reader = GrowingFolder(options(tmp_path, times="string", maxFilesPerTrigger="2"))
    assert reader.getDefaultReadLimit() == ReadMaxFiles(2)
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    for number in range(3):
        (tmp_path / f"{number}.nq").write_text("".join(lines_of(number, 3)))
    (tmp_path / ".hidden.nq").write_text("not yet there")
    (tmp_path / "notes.txt").write_text("no RDF")
    first = reader.latestOffset(start, ReadMaxFiles(2))
    assert len(reader.partitions(start, first)) == 2
    reader.prepareForTriggerAvailableNow()
    (tmp_path / "9.nq").write_text("".join(lines_of(9, 3)))
    second = reader.latestOffset(first, ReadAllAvailable())
    (part,) = reader.partitions(first, second)
    assert sum(len(batch) for batch in reader.read(part)) == 3
    assert reader.latestOffset(second, ReadAllAvailable()) == second
    (tmp_path / "0.nq").unlink()
    again = GrowingFolder(options(tmp_path, times="string"))
    assert len(again.latestOffset(second, ReadAllAvailable())["files"]) == 3


def test_a_growing_folder_on_pyspark_4_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this were 4.1, which has no limits and asks for the latest offset without arguments."""
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
    old = runpy.run_path(versions.__file__)
    monkeypatch.setattr(source, "require_read_limits", old["require_read_limits"])
    for number in range(3):
        (tmp_path / f"{number}.nq").write_text("".join(lines_of(number, 3)))
    given = {"path": str(tmp_path), "stream": STREAM, "times": "string"}
    reader = RdfEvents(given).streamReader(StructType())
    assert isinstance(reader, GrowingFolder)
    latest = reader.latestOffset()
    assert len(reader.partitions(reader.initialOffset(), latest)) == 3
    (tmp_path / "3.nq").write_text("".join(lines_of(3, 3)))
    assert len(reader.partitions(latest, reader.latestOffset())) == 1
    with pytest.raises(SpaseqError, match=r"maxFilesPerTrigger needs PySpark 4\.2 or later"):
        RdfEvents({**given, "maxFilesPerTrigger": "2"}).streamReader(StructType())


def test_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    trades = Path(write("stock", 300, 1, tmp_path)[0])
    df = (
        spark.read.format("rdf-events")
        .option("stream", STREAM)
        .option("splitSize", str(trades.stat().st_size // 3))
        .load(str(trades))
    )
    assert df.rdd.getNumPartitions() == 4
    found = sorted((row.time, row.ordinal, row.name) for row in df.collect())
    wanted = read(options(trades))
    assert [name for _, _, name in found] == [
        row["name"] for row in sorted(wanted, key=lambda r: (r["time"], r["ordinal"]))
    ]
