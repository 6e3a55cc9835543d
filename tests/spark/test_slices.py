"""Files matched slice by slice have the matches of the whole, for any cuts."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from jobs import shown
from pyspark.sql import SparkSession

import spaseq
from spaseq.errors import InputError
from spaseq.io.arrow_columns import columns_of
from spaseq.io.arrow_rows import batches
from spaseq.io.source import Source
from spaseq.kb.snapshot import open_kb
from spaseq.program import Program
from spaseq.spark import match
from spaseq.spark.distribution import lookback
from spaseq.spark.division import Division
from spaseq.spark.slices import Slices, Slicing, _in_order, slices, source_options
from spaseq.spark.source import EventOptions
from spaseq.spark.tasks import Job

STREAM = "http://example.org/s"
AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
XSD = "http://www.w3.org/2001/XMLSchema#"
GPMS = {
    "Low": "{ ?k :value ?low ; :at ?where FILTER(?low < 3) }",
    "Mid": "{ ?k :value ?n FILTER(?n >= 3 && ?n < 7) }",
    "High": "{ ?k :value ?high FILTER(?high > ?low + 5) }",
}


def query(select: str, window: str, sequence: str) -> str:
    used = "".join(
        f" DEFINE GPM {name} ON s {text}" for name, text in GPMS.items() if name in sequence
    )
    return f"""PREFIX : <http://example.org/>
        SELECT {select} WITHIN {window} FROM STREAM s :s WHERE {{ SEQ({sequence}) {used} }}"""


QUERIES = {
    "compiled": query("?k ?low ?high ?where", "30 SECONDS", "Low ; High"),
    "partition": query("*", "40 SECONDS PARTITION BY ?k EMIT MAX", "Low , Mid+ ; High"),
    "closing": query("?k ?low ?where", "20 SECONDS", "Low ; !High"),
    "optional": query("?k ?n ?low ?where", "20 SECONDS", "Mid? ; Low ; High"),
    "every": query("?k ?high ?where", "20 SECONDS", "Low , High"),
    "in front": query("?k ?low ?n ?where", "5 SECONDS", "!High WITHIN 15 SECONDS ; Low ; Mid"),
}


def write(folder: Path, files: int, events: int, seed: int) -> list[Path]:
    """Readings of four keys, where several share a time, with blank nodes; none crosses a file."""
    chance, seconds, number, paths = random.Random(seed), 0, 0, []
    for file in range(files):
        text = ""
        for _ in range(events // files):
            seconds += chance.choice((0, 0, 1, 2))
            name = f"<urn:e{number}>" if chance.random() < 0.8 else f"_:g{number}"
            key, value = f"<http://example.org/k{chance.randrange(4)}>", chance.randrange(10)
            text += f'{name} {AT} "{seconds}"^^<{XSD}integer> .\n'
            text += f'{key} <http://example.org/value> "{value}"^^<{XSD}integer> {name} .\n'
            text += f"{key} <http://example.org/at> _:here {name} .\n"
            number += 1
        seconds += 1
        # The order of names is not that of time.
        paths.append(folder / f"{files - file}.nq")
        paths[-1].write_text(text)
    return paths


def wanted(program: Program, paths: list[Path]) -> Counter[str]:
    run = program.start()
    source = Source(STREAM, list(map(str, paths)), relevance=run.relevance)
    found = [m for batch in source.batches() for m in run.push_batch(batch)]
    columns = columns_of(program, "decimal")
    return shown(row for b in batches(columns, [*found, *run.finish()]) for row in b.to_pylist())


def given(folder: Path, **more: str) -> EventOptions:
    return EventOptions.parse({"path": str(folder), "stream": STREAM, "times": "decimal", **more})


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("files", [1, 3])
def test_slices_are_the_files(
    name: str, files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = write(tmp_path, files, 240, files)
    program = spaseq.compile(QUERIES[name])
    back = lookback(program.queries[0].plan)
    assert isinstance(back, int)
    columns = columns_of(program, "decimal")
    job: Any = Job(program, open_kb({}), columns, Division((), ((),)))
    found = _in_order(given(tmp_path))
    assert found is not None
    assert [file.path for file in found] == list(map(str, paths))
    reference = wanted(program, paths)
    assert reference.total() >= 5
    chance = random.Random(files)
    for count in (1, 2, 7, 40):
        monkeypatch.setattr("spaseq.spark.splits._PROBE_BYTES", chance.choice((300, 3000)))
        monkeypatch.setattr("spaseq.spark.slices._PROBE_BYTES", chance.choice((200, 2000)))
        work = Slicing(SimpleNamespace(value=job), Slices(given(tmp_path), found, count, back))
        numbers = pa.RecordBatch.from_pydict({"id": list(range(count))})
        assert shown(row for batch in work([numbers]) for row in batch.to_pylist()) == reference


def test_what_is_left_to_rows(tmp_path: Path) -> None:
    paths = write(tmp_path, 2, 60, 1)
    assert _in_order(given(tmp_path)) is not None
    # Times that overlap, a file that is read whole only, and one without events.
    (tmp_path / "again.nq").write_bytes(paths[0].read_bytes())
    assert _in_order(given(tmp_path)) is None
    (tmp_path / "again.nq").unlink()
    (tmp_path / "more.trig").write_text("")
    assert _in_order(given(tmp_path)) is None
    (tmp_path / "more.trig").write_text("<urn:a> { <urn:a> <urn:b> <urn:c> }")
    assert _in_order(given(tmp_path)) is None
    (tmp_path / "more.trig").unlink()
    (tmp_path / "none.nq").write_text("# nothing\n")
    assert _in_order(given(tmp_path)) is None


def test_through_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spaseq.spark.slices._PROBE_BYTES", 2000)
    write(tmp_path, 1, 3000, 5)
    program = spaseq.compile(QUERIES["compiled"])
    job = Job(program, open_kb({}), columns_of(program, "decimal"), Division((), ((),)))
    reader = spark.read.format("rdf-events").option("stream", STREAM).option("times", "decimal")
    df = reader.load(str(tmp_path))
    cut = slices(df, job, 5)
    assert cut is not None
    assert cut.count == 5
    rows = df.where("time >= 0")
    assert source_options(rows) is None
    found = shown(match(df, program, partitions=5).toArrow().to_pylist())
    assert found == shown(match(rows, program, partitions=5).toArrow().to_pylist())
    assert found.total() > 100
    assert slices(reader.option("mode", "DROPMALFORMED").load(str(tmp_path)), job, 5) is None
    wrong = reader.option("mode", "FAILFAST").option("times", "timestamp").load(str(tmp_path))
    with pytest.raises(Exception, match="its timestamp is a number"):
        match(wrong, program, partitions=5).collect()


def test_time_that_goes_back_is_told(tmp_path: Path) -> None:
    (path,) = write(tmp_path, 1, 60, 1)
    program = spaseq.compile(QUERIES["compiled"])
    columns = columns_of(program, "decimal")
    job: Any = Job(program, open_kb({}), columns, Division((), ((),)))
    found = _in_order(given(tmp_path))
    assert found is not None
    text = path.read_text().splitlines(keepends=True)
    path.write_text("".join(text[90:] + text[:90]))
    work = Slicing(SimpleNamespace(value=job), Slices(given(tmp_path), found, 1, 10))
    with pytest.raises(InputError, match="back"):
        list(work([pa.RecordBatch.from_pydict({"id": [0]})]))
