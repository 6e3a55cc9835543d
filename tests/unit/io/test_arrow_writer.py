"""Matches as Arrow and Parquet: rows of the core and of objects, kinds of time, empty results."""

from __future__ import annotations

import io
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_match_blocks import QUERIES, drawn_events, event, query

from spaseq.io import arrow_writer
from spaseq.io.native._columns import RowMaker
from spaseq.io.sinks import Sink, open_sink
from spaseq.pipeline import pump, shapes
from spaseq.program import compile_queries
from spaseq.rdf.event import Event


def read(format: str, path: Path) -> pa.Table:
    if format == "parquet":
        return pq.read_table(path)
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def written(
    folder: Path, text: str, events: list[Event], format: str = "arrow", natively: bool = True,
    limit: int | None = None,
) -> tuple[pa.Table, int]:  # fmt: skip
    program = compile_queries(text)
    run, path = program.start(), folder / "out"
    with pytest.MonkeyPatch.context() as patch:
        if not natively:
            patch.setattr(Sink, "format_natively", lambda *_: None)
        with open_sink(format, shapes(program), str(path)) as sink:
            pump(run, events, sink, batch=7, limit=limit)
    assert isinstance(run.queries[0].native.matches, RowMaker) == (natively and limit is None)
    return read(format, path), sink.written


@pytest.mark.parametrize("format", ["arrow", "parquet"])
@pytest.mark.parametrize("seed", range(6))
def test_rows_of_the_core_are_those_of_objects(tmp_path: Path, format: str, seed: int) -> None:
    draw = random.Random(seed)
    text, events = draw.choice(QUERIES), drawn_events(draw, 30)
    native, count = written(tmp_path, text, events, format)
    plain, _ = written(tmp_path, text, events, format, natively=False)
    assert native.equals(plain)
    assert native.num_rows == count > 0


def test_columns_and_times(tmp_path: Path) -> None:
    table, _ = written(tmp_path, query("?x ?y", "A ; B"), [event(1), event(2)])
    assert table.column_names == ["id", "query", "start", "end", "x", "y", "bindings", "events"]
    assert str(table.schema.field("end").type) == "decimal128(38, 6)"
    assert [str(value) for value in table["end"].to_pylist()] == ["2.000000"]
    assert table["x"].to_pylist() == ["1"]
    limited, count = written(tmp_path, query("?x", "A"), [event(1), event(2)], limit=1)
    assert limited.num_rows == count == 1


def test_groups_show_the_number_of_their_results(tmp_path: Path) -> None:
    text = query("?results (COUNT(*) AS ?n)", "A") + " GROUP BY (?x > 1 AS ?results) OVER 9 SECONDS"
    table, _ = written(tmp_path, text, [event(n) for n in (1, 2, 3)], natively=False)
    assert table.column_names == [
        "id", "query", "start", "end", "results_", "n", "bindings", "results", "events",
    ]  # fmt: skip
    assert table["results"].to_pylist() == [1, 1, 2]
    assert [len(events) for events in table["events"].to_pylist()] == [1, 1, 1]
    plain, _ = written(tmp_path, query("?x", "A"), [event(1)])
    assert "results" not in plain.column_names


@pytest.mark.parametrize("format", ["arrow", "parquet"])
def test_a_document_without_matches_has_columns(tmp_path: Path, format: str) -> None:
    table, count = written(tmp_path, query("?x", "A"), [], format)
    assert (table.num_rows, count) == (0, 0)
    assert str(table.schema.field("end").type) == "timestamp[us, tz=UTC]"


def test_row_groups_are_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_writer, "ROW_GROUP", 50)
    monkeypatch.setattr("spaseq.io.arrow_rows.ROWS_AT_ONCE", 10)
    events = [event(second) for second in range(20)]
    written(tmp_path, query("?x ?y", "A : B"), events, "parquet", natively=False)
    groups = pq.ParquetFile(tmp_path / "out").metadata
    sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
    assert sizes == [50, 50, 50, 40]


class Pipe(io.BytesIO):
    def seekable(self) -> bool:
        return False


def test_a_pipe_gets_a_stream_without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe: Any = Pipe()
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=pipe))
    program = compile_queries(query("?x", "A"))
    sizes = list[int]()

    def live() -> Any:
        for second in range(3):
            sizes.append(len(pipe.getvalue()))
            yield event(second)

    with open_sink("arrow", shapes(program), live=True) as sink:
        pump(program.start(), live(), sink, batch=1)
    assert sizes[0] == 0 < sizes[1] < sizes[2]
    assert pa.ipc.open_stream(pipe.getvalue()).read_all().num_rows == 3
