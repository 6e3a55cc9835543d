"""Streaming queries on Spark: as the engine alone, also when the driver is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from streaming_driver import LATENESS, QUERY, STREAM, write_matches

import spaseq
from spaseq.errors import SpaseqError
from spaseq.io.arrow_columns import columns_of
from spaseq.io.arrow_rows import batches
from spaseq.rdf.time import date_time_text
from spaseq.spark import SingleTaskWarning, from_rows, late_events, match_stream

DRIVER = Path(__file__).with_name("streaming_driver.py")
AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
XSD = "http://www.w3.org/2001/XMLSchema#"
KILLS = int(os.environ.get("SPASEQ_KILLS", "1"))
MORNING = 1_767_600_000_000_000
IN_FILE = 40


@dataclass(frozen=True)
class Reading:
    number: int
    micros: int
    quad: str

    @property
    def name(self) -> str:
        return f"http://example.org/event/{self.number}"

    @property
    def text(self) -> str:
        stamp = f'<{self.name}> {AT} "{date_time_text(self.micros)}"^^<{XSD}dateTime> .\n'
        return stamp + (f"{self.quad} <{self.name}> .\n" if self.quad else "")


def readings(count: int, seed: int) -> list[Reading]:
    """Values of five keys, some of them alarms; every time is different."""
    chance, found = random.Random(seed), []
    for number in range(count):
        key = f"<http://example.org/k{chance.randrange(5)}>"
        quad = f'{key} <http://example.org/value> "{chance.randrange(10)}"^^<{XSD}integer>'
        if chance.random() < 0.08:
            quad = f"{key} <http://example.org/alarm> _:x"
        found.append(Reading(number, MORNING + 750_000 * number, quad))
    return found


def write_files(folder: Path, events: Sequence[Reading], seed: int) -> None:
    """The events in files, disordered by less than the lateness from file to file.

    The last file is a heartbeat far ahead: the watermark passes everything.
    """
    chance = random.Random(seed)
    arriving = sorted(events, key=lambda e: e.micros + chance.random() * 4_900_000)
    folder.mkdir()
    starts = range(0, len(arriving), IN_FILE)
    parts = [sorted(arriving[s : s + IN_FILE], key=lambda e: e.micros) for s in starts]
    parts.append([Reading(10**6, MORNING + 10**10, "")])
    for number, part in enumerate(parts):
        path = folder / f"{number:03}.nq"
        path.write_text("".join(event.text for event in part))
        os.utime(path, ns=(number * 10**9, number * 10**9))


def wanted(events: Sequence[Reading]) -> Counter[str]:
    run = spaseq.compile(QUERY).start()
    columns = columns_of(run.program, "timestamp")
    found = [
        match
        for event in events
        for match in run.push(STREAM, _moment(event.micros), f"{event.quad} .\n", event.name)
    ]
    rows = [row for b in batches(columns, [*found, *run.finish()]) for row in b.to_pylist()]
    return Counter(f"{row['id']} {row['k']} {row['low']} {row['high']} {row['n']}" for row in rows)


def _moment(micros: int) -> object:
    from spaseq.rdf.time import from_micros

    return from_micros(micros, "dateTime")


MADE = ("id", "k", "low", "high", "n")


def shown(matches: DataFrame) -> Counter[str]:
    rows = matches.select(*MADE).collect()
    return Counter(" ".join(row) for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    events = readings(160, 7)
    write_files(tmp_path / "events", events, 7)
    return tmp_path


def test_a_stream_gives_what_the_engine_gives(spark: SparkSession, folder: Path) -> None:
    stream = (
        spark.readStream.format("rdf-events")
        .option("stream", STREAM)
        .option("maxFilesPerTrigger", "3")
        .load(str(folder / "events"))
    )
    query = (
        match_stream(stream, QUERY, lateness=LATENESS, parts=3, columns=MADE)
        .writeStream.format("json")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    query.awaitTermination()
    found = wanted(readings(160, 7))
    assert len(found) > 20
    written = spark.read.json(str(folder / "out"))
    assert set(written.columns) == set(MADE)
    assert shown(written) == found


def test_a_driver_that_is_killed_and_started_again(spark: SparkSession, folder: Path) -> None:
    """Each kill is that of a process; at last the session of the tests goes on."""
    chance = random.Random(int(os.environ.get("SPASEQ_SEED", "0")))
    names = ("events", "checkpoint", "out", "scratch")
    command = [sys.executable, str(DRIVER), *(str(folder / name) for name in names)]
    commits, batches = folder / "checkpoint" / "commits", 3
    for kill in range(KILLS):
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        until = 1 + (batches - 2) * (kill + 1) // (KILLS + 1)
        while process.poll() is None:
            done = len(list(commits.glob("[0-9]*"))) if commits.exists() else 0
            if done >= until:
                break
            time.sleep(0.02)
        time.sleep(chance.random())
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    written = [str(folder / name) for name in ("events", "checkpoint", "out")]
    assert shown(write_matches(spark, *written)) == wanted(readings(160, 7))


def test_late_events_are_rows_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    """One row each, into however many parts its keys would have taken it."""
    source = tmp_path / "events"
    source.mkdir()
    early = readings(1, 1)[0]
    for number, micros in enumerate((MORNING + 10**8, MORNING, MORNING + 10**10)):
        event = Reading(number, micros, early.quad)
        keys = (f'<urn:k{n}> <http://example.org/value> "1" <{event.name}> .\n' for n in range(9))
        (source / f"{number}.nq").write_text(event.text + "".join(keys))
        os.utime(source / f"{number}.nq", ns=(number * 10**9, number * 10**9))
    stream = (
        spark.readStream.format("rdf-events")
        .option("stream", STREAM)
        .option("maxFilesPerTrigger", "1")
        .load(str(source))
    )
    query = (
        match_stream(stream, QUERY, late="rows", parts=3, mode="PERMISSIVE", observe="seen")
        .writeStream.format("memory")
        .queryName("late")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    (row,) = late_events(spark.table("late")).collect()
    assert (row.stream, row.name) == (STREAM, "http://example.org/event/1")
    counted: Counter[str] = Counter()
    for progress in query.recentProgress:
        for metrics in progress.observedMetrics.values():
            counted.update(metrics.asDict())
    numbers = {"events": 3, "other_streams": 0, "matches": 0, "late": 1, "malformed": 0}
    assert counted == numbers


def test_a_checkpoint_without_any_state_belongs_to_its_query(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Also where all that it has read is of a stream that the query does not read.

    Its events are rows of JSON, by a mapping.
    """
    source = tmp_path / "events"
    source.mkdir()

    def goes_on(number: int, query: str, parts: int) -> None:
        row = {"time": "2026-01-05T10:00:00Z", "value": number}
        (source / f"{number}.json").write_text(json.dumps(row))
        rows = spark.readStream.schema("time timestamp, value int").json(str(source))
        mapping = "CONSTRUCT { <urn:a> <urn:b> ?value } WHERE {}"
        events = from_rows(rows, "urn:other", mapping, time_column="time")
        found = match_stream(events, query, parts=parts, columns=["id"])
        writer = found.writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()

    goes_on(0, QUERY, 3)
    with pytest.raises(Exception, match=r'"parts": 3.*"parts": 2.*start a new checkpoint'):
        goes_on(1, QUERY, 2)
    goes_on(2, QUERY, 3)


def test_what_cannot_be_is_told_at_once(spark: SparkSession) -> None:
    batch = spark.createDataFrame([("2026-01-05", "")], "time string, graph string")
    with pytest.raises(SpaseqError, match="use match for any other"):
        match_stream(batch, QUERY)
    stream = spark.readStream.format("rate").load()
    with pytest.raises(SpaseqError, match="no column graph"):
        match_stream(stream, QUERY)
    timed = stream.selectExpr("timestamp AS time", "'' AS graph")
    with pytest.raises(ValueError, match="there is no column events_; there are id,"):
        match_stream(timed, QUERY, columns=["id", "events_"])
    with pytest.warns(SingleTaskWarning, match="EVENTS counts the events of all keys"):
        match_stream(timed, QUERY.replace("20 SECONDS", "20 EVENTS"))
