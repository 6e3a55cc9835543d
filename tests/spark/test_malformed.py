"""Rows that are no events: in every mode, in batch and in a stream, without Spark."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from jobs import arrow, shown, shuffled
from test_stateful import AFTER_ALL, Stream

import spaseq
from spaseq.errors import (
    ArgumentError,
    EventError,
    InputError,
    KbError,
    LimitExceeded,
    QueryError,
    StateError,
)
from spaseq.io.arrow_columns import columns_of
from spaseq.kb.snapshot import open_kb
from spaseq.spark import condition
from spaseq.spark.conditions import with_conditions
from spaseq.spark.division import Division
from spaseq.spark.malformed import CORRUPT, Mode, mode_of
from spaseq.spark.streaming import Unpacking
from spaseq.spark.tasks import Evaluating, Gathering, Job, Numbering, Sampling

QUERY = """
PREFIX : <http://example.org/>
SELECT ?k ?a ?b WITHIN 20 SECONDS PARTITION BY ?k FROM STREAM s :s
WHERE {
  SEQ(A ; B)
  DEFINE GPM A ON s { ?k :value ?a FILTER(?a < 5) }
  DEFINE GPM B ON s { ?k :value ?b FILTER(?b >= 5) }
}"""
STREAM = "http://example.org/s"
KINDS = {"ordinal": pa.int64(), "graph": pa.binary()}
XSD = "http://www.w3.org/2001/XMLSchema#"


def event(second: int, value: int, **other: Any) -> dict[str, Any]:
    graph = f'<urn:k{second % 2}> <http://example.org/value> "{value}"^^<{XSD}integer> .\n'
    row = {"stream": STREAM, "time": str(second), "ordinal": None, "source": "a"}
    return {**row, "name": f"urn:e{second}", "graph": graph.encode(), **other}


SOUND = [event(second, second * 7 % 10) for second in range(60)]
WRONG = {
    "urn:graph": (event(100, 1, name="urn:graph", graph=b"<urn:a> <urn:b> ."), "not N-Triples"),
    "urn:quad": (
        event(101, 1, name="urn:quad", graph=b"<urn:a> <urn:b> <urn:c> <urn:g> ."),
        "N-Triples",
    ),
    "urn:bytes": (event(102, 1, name="urn:bytes", graph=b"\xff\xfe"), "N-Triples"),
    "no IRI": (event(103, 1, name="no IRI"), "IRI"),
    "urn:null": (event(104, 1, name="urn:null", time=None), "no time"),
    "urn:time": (event(105, 1, name="urn:time", time="noon"), "noon"),
}


def job(mode: Mode) -> Job:
    program = spaseq.compile(QUERY, names=["q"])
    columns = columns_of(program, "string")
    return Job(
        program,
        open_kb({}),
        columns,
        Division(("k",), ((),) * 3),
        buckets=2,
        mode=mode,
        reported=program.streams,
    )


def rows(mode: Mode, given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    shared: Any = SimpleNamespace(value=job(mode))
    chance = random.Random(2)
    chance.shuffle(given)
    some = [arrow(given[:30], "string"), arrow(given[30:], "string")]
    divided = list(Numbering(shared)(shuffled(list(Gathering(shared)(some)))))
    made = Evaluating(shared)(shuffled(divided))
    return [row for batch in made for row in batch.to_pylist()]


def test_a_batch_without_its_malformed_rows() -> None:
    whole = shown(rows("FAILFAST", [*SOUND]))
    assert whole.total() > 10
    given = [*SOUND, *(row for row, _ in WRONG.values())]
    assert shown(rows("DROPMALFORMED", [*given])) == whole
    found = rows("PERMISSIVE", [*given])
    matches = [row for row in found if row[CORRUPT] is None]
    assert shown({k: v for k, v in row.items() if k != CORRUPT} for row in matches) == whole
    records = {row[CORRUPT]["name"]: row for row in found if row[CORRUPT] is not None}
    assert records.keys() == WRONG.keys()
    for name, (row, said) in WRONG.items():
        record = records[name].pop(CORRUPT)
        assert said in record["error"]
        assert record["graph"] == row["graph"].decode("utf-8", "replace")
        assert (record["stream"], record["time"], record["source"]) == (STREAM, row["time"], "a")
        assert set(records[name].values()) == {None}


def test_a_malformed_row_keeps_the_type_of_its_time() -> None:
    moment = datetime(2026, 1, 5, 10, tzinfo=UTC)
    for time, kind in (
        (moment, pa.timestamp("us", "UTC")),
        (moment.replace(tzinfo=None), pa.timestamp("us")),
        (moment.date(), pa.date32()),
        (2.5, pa.float64()),
        (Decimal("2.5"), pa.decimal128(5, 2)),
    ):
        row = {**event(0, 1), "graph": b"oops", "time": time}
        batch = pa.RecordBatch.from_pylist([row]).cast(
            pa.schema([(n, kind if n == "time" else KINDS.get(n, pa.string())) for n in row])
        )
        made = replace(job("PERMISSIVE"), time=kind)
        shared: Any = SimpleNamespace(value=made)
        divided = list(Numbering(shared)(shuffled(list(Gathering(shared)([batch])))))
        ((found,),) = (some.to_pylist() for some in Evaluating(shared)(shuffled(divided)))
        assert found[CORRUPT]["time"] == time
        assert made.schema.field(CORRUPT).type.field("time").type == kind


SEVERAL = """PREFIX : <http://example.org/> SELECT * WITHIN 20 SECONDS
FROM STREAM s :s FROM STREAM t :t WHERE { SEQ(A ; B)
  DEFINE GPM A ON s { ?k :value ?a } DEFINE GPM B ON t { ?k :value ?b } }"""


def test_rows_without_a_stream() -> None:
    """They are malformed if the queries read several streams."""
    whole = job("PERMISSIVE")
    for query, mode in ((SEVERAL, "PERMISSIVE"), (SEVERAL, "FAILFAST")):
        program = spaseq.compile(query)
        columns = columns_of(program, "string")
        made = replace(
            whole,
            program=program,
            columns=columns,
            division=Division((), ((),)),
            mode=mode_of(mode),
            reported=program.streams,
        )
        shared: Any = SimpleNamespace(value=made)
        given = arrow([event(0, 1, stream=None)], "string")
        if mode == "FAILFAST":
            with pytest.raises(EventError, match="has no stream, and the queries read several"):
                list(Gathering(shared)([given]))
        else:
            divided = list(Numbering(shared)(shuffled(list(Gathering(shared)([given])))))
            ((row,),) = (some.to_pylist() for some in Evaluating(shared)(shuffled(divided)))
            assert (row[CORRUPT]["stream"], row[CORRUPT]["name"]) == (None, "urn:e0")


def test_no_row_of_the_streams_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    shared: Any = SimpleNamespace(value=job("FAILFAST"))
    for given, said in (([], 1), ([arrow(SOUND, "string")], 0)):
        caplog.clear()
        gathered = [row for some in ([], given) for row in Gathering(shared)(some)]
        list(Numbering(shared)(shuffled(gathered)))
        assert len(caplog.messages) == said
    assert caplog.text == ""


def test_a_sample_without_its_malformed_rows() -> None:
    given = arrow([*SOUND, *(row for row, _ in WRONG.values())], "string")
    for mode in ("DROPMALFORMED", "PERMISSIVE"):
        (sample,) = Sampling(SimpleNamespace(value=job(mode_of(mode))))([given])  # type: ignore[arg-type]
        assert len(sample) == len(SOUND)
    with pytest.raises(EventError, match="no time"):
        list(Sampling(SimpleNamespace(value=job("FAILFAST")))([given]))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", WRONG)
def test_failing_fast_names_the_event(name: str) -> None:
    row, said = WRONG[name]
    with pytest.raises(EventError, match=said) as caught:
        rows("FAILFAST", [*SOUND, row])
    assert re.search(f"the event <?{name}>? ", str(caught.value))
    assert str(caught.value).startswith("[SPASEQ_INVALID_EVENT] ")


def test_a_stream_goes_on_behind_malformed_rows() -> None:
    program = spaseq.compile(QUERY, names=["q"])
    found = {}
    for mode, given in (("FAILFAST", SOUND), ("PERMISSIVE", [*SOUND, WRONG["urn:graph"][0]])):
        stream = Stream(program, open_kb({}), "string", 3)
        stream.shared.value = replace(
            stream.shared.value, mode=mode_of(mode), reported=program.streams
        )
        chance = random.Random(1)
        stream.batch(given[:20], chance)
        stream.batch(given[20:], chance)
        stream.watermark = AFTER_ALL
        stream.batch([], chance)
        found[mode] = stream
    assert found["PERMISSIVE"].found == found["FAILFAST"].found
    assert found["FAILFAST"].found.total() > 10
    (record,) = found["PERMISSIVE"].malformed
    assert record["name"] == "urn:graph"


def test_rows_of_a_stream_have_one_schema() -> None:
    """Those of matches, late events and malformed rows."""
    shared: Any = SimpleNamespace(value=job("PERMISSIVE"))
    gathered = Gathering(shared)([arrow([WRONG["urn:graph"][0]], "string")])
    (chunk,) = (row["chunk"] for batch in gathered for row in batch.to_pylist() if row["chunk"])
    sent = pa.RecordBatch.from_pydict({"kind": ["malformed"], "payload": [chunk], "size": [1]})
    (batch,) = Unpacking(shared, "rows")([sent])
    (row,) = batch.to_pylist()
    assert batch.schema.names[-2:] == ["late", CORRUPT]
    assert (row["late"], row[CORRUPT]["name"]) == (None, "urn:graph")


def test_modes() -> None:
    assert mode_of("permissive") == "PERMISSIVE"
    with pytest.raises(ArgumentError, match="FAILFAST, DROPMALFORMED, PERMISSIVE is needed"):
        mode_of("SKIP")


def test_conditions() -> None:
    class Fails:
        def __init__(self, error: Exception):
            self.error = error

        @with_conditions
        def __call__(self) -> Iterator[int]:
            yield 1
            raise self.error

    failures = {
        EventError("x"): "SPASEQ_INVALID_EVENT",
        InputError("x", "f", 3): "SPASEQ_INVALID_INPUT",
        KbError("x"): "SPASEQ_INVALID_KNOWLEDGE_BASE",
        StateError("x"): "SPASEQ_INVALID_CHECKPOINT",
        LimitExceeded("x"): "SPASEQ_LIMIT_EXCEEDED",
        spaseq.SpaseqError("x"): "SPASEQ_ERROR",
    }
    for error, name in failures.items():
        assert condition(error) == name
        with pytest.raises(type(error), match=rf"^\[{name}\] ") as caught:
            list(Fails(error)())
        # What the driver sees is the text alone.
        assert condition(RuntimeError(f"worker failed\n{caught.value}")) == name
    with pytest.raises(LimitExceeded, match=r"^\[SPASEQ_LIMIT_EXCEEDED\] a worker has no memory"):
        list(Fails(MemoryError("no room"))())
    with pytest.raises(QueryError) as wrong:
        spaseq.compile("SELECT")
    assert condition(wrong.value) == "SPASEQ_INVALID_QUERY"
    assert condition(ValueError("x")) is None
