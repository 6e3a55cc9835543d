"""Files and frames of rows: every format, malformed ones, times, and what mappings may name."""

from __future__ import annotations

import builtins
import gzip
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spaseq
from spaseq.errors import InputError, QueryError, SpaseqError
from spaseq.io.read_options import ReadOptions
from spaseq.io.rows import columns, tables
from spaseq.io.rows.columns import columns_of
from spaseq.io.rows.formats import row_format_of
from spaseq.io.rows.mapping import parsed, read_mapping
from spaseq.io.rows.plan import bind_mapping
from spaseq.io.rows.source import EVENTS_AT_ONCE, RowSource

EX = "http://example.org/"
PREFIXES = f"PREFIX : <{EX}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
PAIR = PREFIXES + "CONSTRUCT { :s :a ?a ; :b ?b } WHERE { }"


def read(*content: Any, mapping: str = PAIR, log: Any = None, **options: Any) -> list[str]:
    """The events as `time: object object …`, or `time name: …`."""
    options.setdefault("time_column", "t")
    source = RowSource(
        EX, content, ReadOptions(**options), mapping=parsed(mapping), log=log or (lambda text: None)
    )
    return [shown(event) for event in source]


def shown(event: Any) -> str:
    objects = " ".join(str(fact[2]).partition("^^")[0] for fact in event.facts)
    name = "" if event.name is None else f" {event.name}"
    return f"{event.time.term.value}{name}: {objects}".rstrip()


def file(folder: Path, name: str, text: str | bytes) -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


EVENTS = ['1: "x" "1"', '2: "y"', '3: "z" "3"']
TABLE = pa.table({"t": [1, 2, 3], "a": ["x", "y", "z"], "b": [1, None, 3]})


# ------------------------------------------------------------------ formats


def ipc(write: Callable[[Any, pa.Schema], Any]) -> bytes:
    sink = io.BytesIO()
    with write(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return sink.getvalue()


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, row_group_size=2)
    return sink.getvalue()


JSON = '{"t": 1, "a": "x", "b": 1}\n{"t": 2, "a": "y"}\n{"t": 3, "a": "z", "b": 3}\n'
FILES: Mapping[str, bytes] = {
    "csv": b"t,a,b\n1,x,1\n2,y,\n3,z,3\n",
    "tsv": b"t\ta\tb\n1\tx\t1\n2\ty\t\n3\tz\t3",
    "jsonl": JSON.encode(),
    "ndjson": JSON.encode(),
    "parquet": parquet(),
    "arrow": ipc(pa.ipc.new_file),
    "feather": ipc(pa.ipc.new_file),
    "arrows": ipc(pa.ipc.new_stream),
}


@pytest.mark.parametrize("extension", FILES)
def test_every_format(extension: str, tmp_path: Path) -> None:
    assert read(file(tmp_path, f"rows.{extension}", FILES[extension])) == EVENTS


@pytest.mark.parametrize("extension", ["csv", "tsv"])
def test_no_thread_of_pyarrow_has_a_file_at_the_end(
    extension: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that released one while the interpreter ends would abort the process."""
    watched: list[Any] = []
    wait = tables._wait_for

    def noted(released: Sequence[Any]) -> None:
        watched.extend(released)
        wait(released)

    monkeypatch.setattr(tables, "_wait_for", noted)
    read(file(tmp_path, f"rows.{extension}", FILES[extension]))
    assert watched
    assert [each() for each in watched] == [None] * len(watched)


@pytest.mark.parametrize("extension", ["csv", "tsv", "jsonl"])
def test_texts_may_be_compressed(extension: str, tmp_path: Path) -> None:
    packed = gzip.compress(FILES[extension])
    assert read(file(tmp_path, f"rows.{extension}.gz", packed)) == EVENTS
    assert read(file(tmp_path, f"rows.{extension}", packed)) == EVENTS


@pytest.mark.parametrize("extension", ["csv", "tsv", "jsonl", "parquet", "arrow", "arrows"])
def test_the_content_tells_the_format(extension: str, tmp_path: Path) -> None:
    assert read(file(tmp_path, "rows", FILES[extension])) == EVENTS


@pytest.mark.parametrize(("extension", "named"), [("tsv", "tsv"), ("ndjson", "jsonl")])
def test_the_option_tells_the_format(extension: str, named: str, tmp_path: Path) -> None:
    assert read(file(tmp_path, "rows.csv", FILES[extension]), syntax=named) == EVENTS


@pytest.mark.parametrize("extension", ["csv", "jsonl", "parquet", "arrow", "arrows"])
def test_standard_input(extension: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        buffer = io.BufferedReader(io.BytesIO(FILES[extension]))  # type: ignore[arg-type]

    monkeypatch.setattr(sys, "stdin", Input)
    assert read("-") == EVENTS


def test_extensions() -> None:
    assert row_format_of("a/B.CSV.gz") == "csv"
    assert row_format_of("b.parquet") == "parquet"
    assert row_format_of("b.parquet.gz") is None
    assert row_format_of("csv") is None
    assert row_format_of("a.nq") is None


class Capsule:
    """A table that has nothing but Arrow's interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


class ArrayCapsule:
    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


FRAMES: Mapping[str, Callable[[], Any]] = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": lambda: TABLE.to_reader(),
    "stream": Capsule,
    "array": ArrayCapsule,
    "pandas": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "categories": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype).astype({"a": "category"}),
}


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame(name: str) -> None:
    assert read(FRAMES[name]()) == EVENTS


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(TABLE)
    assert read(frame) == EVENTS
    for kind in (polars.Categorical, polars.Enum(["x", "y", "z"])):
        assert read(frame.cast({"a": kind})) == EVENTS


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_dictionaries_of_views_in_files(new: Any, tmp_path: Path) -> None:
    for view in ("string_view", "binary_view"):
        if not hasattr(pa, view):
            pytest.skip("this pyarrow has no views")
        values = pa.array(["x", "y", "z"]).cast(getattr(pa, view)())
        column = pa.DictionaryArray.from_arrays(pa.array([2, None, 0], pa.int8()), values)
        table = pa.table({"t": [1, 2, 3], "a": column, "b": [1, 1, 1]})
        path = tmp_path / f"{view}.arrow"
        with new(str(path), table.schema) as writer:
            writer.write_table(table)
        shown = ['"z"', '"x"'] if view == "string_view" else ['"7A"', '"78"']
        assert read(str(path)) == [f'1: {shown[0]} "1"', '2: "1"', f'3: {shown[1]} "1"']


def repeated(values: pa.Array, rows: int) -> dict[str, pa.Array]:
    """A column that repeats one value, in each encoding that stores it once."""
    return {
        "dictionary": pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), values),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), values),
    }


@pytest.mark.parametrize(
    ("encoding", "extension"),
    [("dictionary", "arrow"), ("dictionary", "parquet"), ("runs", "arrow")],
)
@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
def test_repeated_values_are_bounded_before_they_are_written_out(
    encoding: str, extension: str, type_: pa.DataType, tmp_path: Path
) -> None:
    """A value of a megabyte in 10,000 rows: 10 GB in a file of a megabyte, or of 2 kB."""

    def path(size: int, rows: int) -> str:
        column = repeated(pa.array(["x" * size], type_), rows)[encoding]
        table = pa.table({"t": range(rows), "a": column})
        found = str(tmp_path / f"{size}.{extension}")
        if extension == "parquet":
            pq.write_table(table, found, compression="zstd")
        else:
            with pa.ipc.new_file(found, table.schema) as writer:
                writer.write_table(table)
        return found

    mapping = PREFIXES + "CONSTRUCT { :s :a ?a } WHERE { }"
    assert read(path(3, 10_000), mapping=mapping)[9998:] == ['9998: "xxx"', '9999: "xxx"']
    large = path(1_000_000, 10_000)
    with pytest.raises(InputError) as raised:
        read(large, mapping=mapping)
    assert str(raised.value) == (
        f"{large}, row 1: the column a cannot be read: 10,000 rows of it have 9,536 MiB; the limit "
        "is 1,024 MiB"
    )


def test_a_row_group_is_bounded_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    texts = [f"{i:07}" * 1000 for i in range(600)]
    table = pa.table({"t": range(600), "a": ["x"] * 600, "c": texts})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    monkeypatch.setattr(columns, "COLUMN_MAX_BYTES", 2 << 20)
    other = PREFIXES + "CONSTRUCT { :s :a ?a } WHERE { }"
    assert len(read(str(path), mapping=other)) == 600
    with pytest.raises(InputError) as raised:
        read(str(path), mapping=PREFIXES + "CONSTRUCT { :s :c ?c } WHERE { }")
    assert str(raised.value) == (
        f"{path}: cannot be read: the row group 1 has 4 MiB in the columns that are read; the "
        "limit is 2 MiB (write the file with a smaller row_group_size)"
    )
    pq.write_table(table, path, compression="zstd", use_dictionary=False, row_group_size=200)
    assert len(read(str(path), mapping=PREFIXES + "CONSTRUCT { :s :c ?c } WHERE { }")) == 600


def test_several_tables_follow_each_other(tmp_path: Path) -> None:
    later = TABLE.set_column(0, "t", pa.array([4, 5, 6]))
    path = file(tmp_path, "rows.csv", FILES["csv"])
    found = read(path, later, mapping=PREFIXES + "CONSTRUCT { :s :a ?a ; :r ?_row } WHERE { }")
    assert found[2:4] == ['3: "z" "3"', '4: "x" "1"']


@pytest.mark.parametrize("rows", [EVENTS_AT_ONCE, EVENTS_AT_ONCE + 1, tables.ROWS_AT_ONCE + 2])
def test_many_rows(rows: int, tmp_path: Path) -> None:
    table = pa.table({"t": range(rows), "a": [str(i % 7) for i in range(rows)], "b": range(rows)})
    pq.write_table(table, tmp_path / "rows.parquet")
    for content in (table, str(tmp_path / "rows.parquet")):
        found = read(content, mapping=PREFIXES + "CONSTRUCT { :s :b ?b ; :r ?_row } WHERE { }")
        assert found[-1] == f'{rows - 1}: "{rows - 1}" "{rows}"'
        assert len(found) == rows


# ------------------------------------------------------------------ CSV


def test_cells_of_csv_are_strings(tmp_path: Path) -> None:
    text = '\ufeffa,"b ",t\r\n007,"say ""hi"",\nthere",1\r\n,"",2\r\nNA,true,3\r\n'
    mapping = PREFIXES + "CONSTRUCT { :s :a ?a ; :b ?b_ } WHERE { }"
    assert read(file(tmp_path, "rows.csv", text), mapping=mapping) == [
        '1: "007" "say \\"hi\\",\\nthere"',
        '2: ""',
        '3: "NA" "true"',
    ]


MALFORMED = "t,a,b\n1,x,1\n2,y\n3,z,3\n4,u,4,4\n5,v,5\n6\n"


def test_a_row_without_all_cells_ends_the_run_after_the_events_before(tmp_path: Path) -> None:
    path = file(tmp_path, "rows.csv", MALFORMED)
    source = iter(RowSource(EX, [path], ReadOptions(time_column="t"), mapping=parsed(PAIR)))
    assert shown(next(source)) == '1: "x" "1"'
    with pytest.raises(InputError, match=r"rows.csv, row 2: malformed: 2 cells instead of 3$"):
        next(source)


def test_malformed_rows_are_skipped_and_numbers_go_on(tmp_path: Path) -> None:
    path = file(tmp_path, "rows.csv", MALFORMED)
    said: list[str] = []
    mapping = PREFIXES + "CONSTRUCT { :s :r ?_row } WHERE { }"
    found = read(path, mapping=mapping, on_error="skip", log=said.append)
    assert found == ['1: "1"', '3: "3"', '5: "5"']
    assert [text.partition("rows.csv, ")[2] for text in said] == [
        "row 2: malformed: 2 cells instead of 3",
        "row 4: malformed: 4 cells instead of 3",
        "row 6: malformed: 1 cells instead of 3",
    ]


def test_malformed_rows_in_several_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "BLOCK", 300)
    lines = [f"{i},x,{i}" if i % 13 else f"{i},x" for i in range(1, 400)]
    path = file(tmp_path, "rows.csv", "\n".join(["t,a,b", *lines, ""]))
    said: list[str] = []
    mapping = PREFIXES + "CONSTRUCT { :s :r ?_row } WHERE { }"
    found = read(path, mapping=mapping, on_error="skip", log=said.append)
    assert found == [f'{i}: "{i}"' for i in range(1, 400) if i % 13]
    assert len(said) == 399 // 13


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"t,a,b\n1,\xff,2\n", "invalid UTF8"),
        (b"\xff\xfe\n", "the header is not UTF-8"),
    ],
)
def test_texts_that_are_not_utf8(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read(file(tmp_path, "rows.csv", content))


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.jsonl", "rows"])
def test_an_empty_file_has_no_events(name: str, tmp_path: Path) -> None:
    assert read(file(tmp_path, name, "")) == []


def test_a_header_without_rows(tmp_path: Path) -> None:
    assert read(file(tmp_path, "rows.csv", "t,a,b\n")) == []


# ------------------------------------------------------------------ JSON lines


def test_fields_of_json_objects(tmp_path: Path) -> None:
    text = (
        '{"t": 1, "a": {"x": 1, "y z": {"w": true}}, "l": [1], "at": "2026-01-05T09:00:00Z"}\n'
        '{"t": 2, "a": null, "other": 3}\n'
        '{"t": 3, "a": {"x": 2.5}}\n'
    )
    mapping = PREFIXES + "CONSTRUCT { :s :x ?a_x ; :w ?a_y_z_w ; :at ?at } WHERE { }"
    assert read(file(tmp_path, "rows.jsonl", text), mapping=mapping) == [
        '1: "1" "true" "2026-01-05T09:00:00Z"',
        "2:",
        '3: "2.5"',
    ]


def test_a_field_that_is_absent_from_the_file(tmp_path: Path) -> None:
    path = file(tmp_path, "rows.jsonl", '{"t": 1}\n')
    mapping = PREFIXES + "CONSTRUCT { :s :a ?v } WHERE { BIND(COALESCE(?a, 0) AS ?v) }"
    assert read(path, mapping=mapping) == ['1: "0"']
    mapping = PREFIXES + "CONSTRUCT { :s :a ?a } WHERE { FILTER(!BOUND(?a)) }"
    assert read(path, mapping=mapping) == ["1:"]


# ------------------------------------------------------------------ damaged files


@pytest.mark.parametrize("extension", ["parquet", "arrow", "csv.gz"])
def test_truncated_files(extension: str, tmp_path: Path) -> None:
    content = FILES.get(extension) or gzip.compress(FILES["csv"] * 1000)
    with pytest.raises(InputError, match="cannot be read"):
        read(file(tmp_path, f"rows.{extension}", content[: len(content) // 2]))


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read(str(tmp_path / "rows.csv"))


def test_pyarrow_is_optional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(f"no {name}")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install 'spaseq\[arrow\]'"):
        read(file(tmp_path, "rows.csv", FILES["csv"]))
    assert read(file(tmp_path, "rows.jsonl", JSON)) == EVENTS


# ------------------------------------------------------------------ times and names


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("2026-01-05T09:00:00Z", "s", "2026-01-05T09:00:00Z"),
        ("2026-01-05 09:00:00.25", "s", "2026-01-05T09:00:00.25Z"),
        ("2026-01-05T10:00:00+01:00", "s", "2026-01-05T09:00:00Z"),
        ("2026-01-05", "s", "2026-01-05T00:00:00Z"),
        ("12", "s", "12"),
        ("-12.5", "s", "-12.5"),
        ("1e3", "ms", "1e3"),
        ("1767603600123", "ms", "1767603600123"),
    ],
)
def test_times_of_texts(text: str, unit: str, expected: str) -> None:
    table = pa.table({"t": [text], "a": ["x"], "b": [1]})
    assert read(table, unit=unit) == [f'{expected}: "x" "1"']


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("bound", [False, True])
def test_columns_of_timestamps(unit: str, bound: bool) -> None:
    """A time that is read from the buffer is the time of the term of its column."""
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    ticks = [None, -(10**9) * per_second, -per_second, 0, 1_767_603_600 * per_second]
    if unit != "s":
        ticks.append(1_767_603_600 * per_second + per_second // 1000)
    times = pa.array([None, *ticks], pa.int64()).slice(1).cast(pa.timestamp(unit, "UTC"))
    table = pa.table({"t": times, "a": times, "b": range(len(ticks))})
    mapping = "CONSTRUCT { :s :a ?a } WHERE { BIND(?t AS ?_time) }"
    if not bound:
        mapping = "CONSTRUCT { :s :a ?a } WHERE { }"
    direct = read(table, mapping=PREFIXES + mapping, on_error="skip")
    assert len(direct) == len(ticks) - 1
    for text in direct:
        found, _, value = text.partition(": ")
        assert value == f'"{found}"'


@pytest.mark.parametrize(
    ("ticks", "unit", "precision", "message"),
    [
        (1_000_001, "ns", "error", "is finer than a microsecond"),
        (1_000_001, "ns", "truncate", ""),
        (2**62, "s", "error", "out of range"),
        (-(2**62), "ms", "error", "out of range"),
    ],
)
def test_timestamps_that_are_no_microseconds(
    ticks: int, unit: str, precision: str, message: str
) -> None:
    times = pa.array([ticks], pa.int64()).cast(pa.timestamp(unit))
    table = pa.table({"t": times, "a": ["x"], "b": [1]})
    if not message:
        assert read(table, time_precision=precision) == ['1970-01-01T00:00:00.001Z: "x" "1"']
        return
    with pytest.raises(InputError, match=message):
        read(table, time_precision=precision)


def test_a_copy_of_a_value_is_the_value() -> None:
    mapping = PREFIXES + (
        "CONSTRUCT { :s :a ?z } WHERE { FILTER(?z > 2) BIND(?b + 1 AS ?x) BIND(?x AS ?y) "
        "BIND(?y AS ?z) BIND(?z AS ?_time) }"
    )
    assert read(TABLE, mapping=mapping, time_column=None) == ['4: "4"']


def test_units() -> None:
    table = pa.table({"t": [1500]})
    source = RowSource(
        EX,
        [table],
        ReadOptions(time_column="t", unit="ms"),
        mapping=parsed("CONSTRUCT { } WHERE { }"),
    )
    assert [event.time.micros for event in source] == [1_500_000]


@pytest.mark.parametrize("text", ["soon", "2026-13-01", "2026-01-05T09", ""])
def test_texts_that_are_no_times(text: str) -> None:
    table = pa.table({"t": ["1", text, "2"], "a": ["x", "y", "z"], "b": [1, 2, 3]})
    said: list[str] = []
    assert read(table, on_error="skip", log=said.append) == ['1: "x" "1"', '2: "z" "3"']
    assert "<Table>, row 2: " in said[0]


def test_a_bound_time_precedes_the_column() -> None:
    table = pa.table({"t": [1, 2, 9], "u": [None, 5, None], "a": ["x", "y", "z"]})
    mapping = PREFIXES + "CONSTRUCT { :s :a ?a } WHERE { BIND(?u + 1 AS ?_time) }"
    assert read(table, mapping=mapping) == ['1: "x"', '6: "y"', '9: "z"']
    said: list[str] = []
    found = read(table, mapping=mapping, time_column=None, on_error="skip", log=said.append)
    assert found == ['6: "y"']
    assert said[0] == (
        "skipped: <Table>, row 1: a row without a time: ?_time is unbound, or the time column is "
        "empty"
    )


def test_a_column_may_be_the_time_or_the_name() -> None:
    table = pa.table({"_time": [1, 2], "_graph": [None, "x"]})
    said: list[str] = []
    mapping = PREFIXES + "CONSTRUCT { :s :r ?_row } WHERE { }"
    found = read(table, mapping=mapping, time_column=None, on_error="skip", log=said.append)
    assert found == ['1: "1"']
    assert said == ['skipped: <Table>, row 2: ?_graph is "x"; the name of an event is an IRI']


def test_names() -> None:
    mapping = PREFIXES + (
        'CONSTRUCT { :s :a ?a } WHERE { BIND(IRI(CONCAT("urn:", ?a)) AS ?_graph) }'
    )
    assert read(TABLE, mapping=mapping)[0] == '1 <urn:x>: "x"'


def test_time_columns_by_their_name() -> None:
    table = pa.table({"Trade Time": [1], "a": ["x"], "b": [1]})
    assert read(table, time_column="Trade Time") == ['1: "x" "1"']
    assert read(table, time_column="Trade_Time") == ['1: "x" "1"']


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tt", r"there is no column tt for the time of events; did you mean `t`\?"),
        ("when", "there is no column when for the time of events; the columns are t, a, b, l"),
        ("l", "the column l of times holds lists"),
        (None, "its rows have no time: BIND"),
    ],
)
def test_times_that_are_nowhere(name: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(TABLE.append_column("l", [[[1], [2], [3]]]), time_column=name)


def test_order_and_lateness() -> None:
    table = pa.table({"t": [1, 3, 2, 9, 1], "a": list("vwxyz"), "b": range(5)})
    with pytest.raises(InputError, match="row 3: time runs backwards: 2 after 3"):
        read(table)
    said: list[str] = []
    found = read(table, lateness=5_000_000, log=said.append)
    assert [text[0] for text in found] == ["1", "2", "3", "9"]
    assert said == [
        "late event dropped: <Table>, row 5: its time is 1, but all times before 4 are closed"
    ]


def test_nodes_of_late_events() -> None:
    table = pa.table({"t": [2, 1, 3]})
    mapping = PREFIXES + "CONSTRUCT { _:n :a [ :r ?_row ] } WHERE { }"
    source = RowSource(
        EX,
        [table],
        ReadOptions(time_column="t", lateness=10**6),
        mapping=parsed(mapping),
    )
    facts = [[" ".join(map(str, fact)) for fact in event.facts] for event in source]
    number = '"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert facts == [
        [
            f'_:s0e{event}b0 <{EX}r> "{row}{number}',
            f"_:s0e{event}b1 <{EX}a> _:s0e{event}b0",
        ]
        for event, row in ((1, 2), (2, 1), (3, 3))
    ]


def test_times_of_arrival() -> None:
    found = read(TABLE, time_column=None, arrival_time=True, clock=lambda: 0)
    assert found[0] == '1970-01-01T00:00:00Z: "x" "1"'


def test_times_of_two_domains() -> None:
    dates = pa.table({"t": pa.array([0], pa.timestamp("s")), "a": ["x"], "b": [1]})
    with pytest.raises(InputError, match="the timestamp is a date, but that at <Table>, row 1"):
        read(TABLE, dates)


# ------------------------------------------------------------------ mappings


@pytest.mark.parametrize(
    ("mapping", "message", "hint"),
    [
        ("{ :s :p ?pricee } WHERE { }", "?pricee is not a column", "did you mean `?price`?"),
        ("{ :s :p ?zzz } WHERE { }", "?zzz is not a column", "the columns are ?t, ?price, ?n_x, "),
        ("{ :s :p ?n } WHERE { }", "the column n has fields", "its fields are ?n_x and ?n_y"),
        ("{ :s :p ?l } WHERE { }", "the column l holds lists, not one value", "one row for each"),
        ("{ :s :p ?m } WHERE { }", "the column m holds maps, not one value", "one row for each"),
        ("{ } WHERE { BIND(1 AS ?price) }", "BIND assigns ?price, which is already a column", ""),
        ("{ :s :p ?d_d } WHERE { }", "the columns d d and d.d are both ?d_d", "rename one"),
        ("{ } WHERE { FILTER(?pric > 1) }", "?pric is not a column", "did you mean `?price`?"),
    ],
)
def test_mappings_that_do_not_fit_the_columns(mapping: str, message: str, hint: str) -> None:
    fields = pa.schema(
        [
            ("t", pa.int64()),
            ("price", pa.float64()),
            ("n", pa.struct([("x", pa.int8()), ("y", pa.int8())])),
            ("l", pa.list_(pa.int8())),
            ("m", pa.map_(pa.string(), pa.int8())),
            ("d d", pa.int8()),
            ("d.d", pa.int8()),
        ]
    )
    with pytest.raises(QueryError) as caught:
        read(fields.empty_table(), mapping=f"{PREFIXES} CONSTRUCT {mapping}")
    assert message in str(caught.value)
    assert hint in caught.value.hint
    assert caught.value.line == 1


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("{ :s :p ?a } WHERE { ?a :p ?b }", "a mapping has no graph to match"),
        ("{ } WHERE { OPTIONAL { } }", "a mapping has no graph to match"),
        ("{ } WHERE { FILTER(EXISTS { ?s ?p ?o }) }", "EXISTS in a mapping of rows"),
        ("{ } WHERE { BIND(1 AS ?_row) }", "BIND assigns ?_row, which is the number of the row"),
        ("{ } WHERE { BIND(?b AS ?a) BIND(1 AS ?b) }", "?b is used before the BIND"),
        ("{ } WHERE { BIND(xsd:intger(?b) AS ?a) }", "the function `xsd:intger` is not known"),
        ("{ } WHERE { BIND(1 AS ?a) BIND(2 AS ?a) }", "BIND assigns ?a, which is already bound"),
        ("{ 1 :p ?a } WHERE { }", "a literal as the subject of a triple"),
        ("{ :s :p ?a } WHERE { FILTER(SUM(?a) > 1) }", "SUM"),
        ("{ :s :p* ?a } WHERE { }", "a property path in a CONSTRUCT template"),
        ("{ :s :p ?a }", "is not complete"),
    ],
)
def test_mappings_that_are_none(mapping: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parsed(f"{PREFIXES} CONSTRUCT {mapping}", "m.rq")
    assert message in str(caught.value)
    assert str(caught.value).startswith("m.rq:1:")


WARNED = PREFIXES + 'CONSTRUCT { :s :a ?x } WHERE { BIND(xsd:integer("x") AS ?x) }'


def test_warnings_of_a_mapping() -> None:
    (text,) = parsed(WARNED).shown_warnings()
    assert text.startswith("mapping:1:")
    assert "warning: this value is not a valid `xsd:integer`" in text
    with pytest.warns(spaseq.QueryWarning, match="is not a valid `xsd:integer`"):
        found(streams={"s": TABLE}, map={"s": WARNED}, time_column="t")


@pytest.mark.parametrize(
    ("array", "objects"),
    [
        (pa.array([b"\xab", None], pa.binary(1)), ['"AB"']),
        (pa.array([b"\xab", b""], pa.large_binary()), ['"AB"', '""']),
        (pa.array([b"\xab"], pa.binary_view()), ['"AB"']),
        (pa.array([bytes(15) + b"\5"], pa.uuid()), [f'"{5:032X}"']),
        (pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"]), ['"a"', '"a"', '"b"']),
        (pa.array([1.5, None], pa.float16()), ['"1.5"']),
        (pa.array([86_400_000], pa.date64()), ['"1970-01-02"']),
        (pa.array([7, 7]).dictionary_encode(), ['"7"', '"7"']),
        (pa.ExtensionArray.from_storage(pa.json_(), pa.array(["[]"])), ['"[]"']),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_rare_types_of_columns(array: pa.Array, objects: list[str]) -> None:
    table = pa.table({"v": array, "t": range(len(array))})
    texts = read(table, mapping="CONSTRUCT { <e:s> <e:p> ?v } WHERE { }")
    assert [text.partition(": ")[2] for text in texts if not text.endswith(":")] == objects


@pytest.mark.parametrize("scale", [77, -77, 2000, -2000])
def test_decimals_of_absurd_scale(scale: int) -> None:
    array = pa.nulls(1, pa.decimal128(5, scale))
    with pytest.raises(InputError, match=f"decimals of scale {scale} are not supported"):
        read(
            pa.record_batch({"v": array, "t": pa.array([1])}),
            mapping="CONSTRUCT { <e:s> <e:p> ?v } WHERE { }",
        )


@pytest.mark.parametrize("scale", [76, -76])
def test_decimals_of_great_scale(scale: int) -> None:
    number = (10**38 - 1).to_bytes(16, "little")
    array = pa.Array.from_buffers(pa.decimal128(38, scale), 1, [None, pa.py_buffer(number)])
    (text,) = read(
        pa.record_batch({"v": array, "t": pa.array([1])}),
        mapping="CONSTRUCT { <e:s> <e:p> ?v } WHERE { }",
    )
    digits = "9" * 38
    shown = digits + "0" * 76 if scale < 0 else "0." + "0" * 38 + digits
    assert text == f'1: "{shown}"'


def test_arrays_that_are_malformed() -> None:
    data = pa.py_buffer(b"\xff\xff")
    offsets = pa.py_buffer(b"\0\0\0\0\2\0\0\0")
    array = pa.Array.from_buffers(pa.string(), 1, [None, offsets, data])
    with pytest.raises(InputError, match=r"row 1: the column v cannot be read: .*UTF8"):
        read(
            pa.record_batch({"v": array, "t": pa.array([1])}),
            mapping="CONSTRUCT { <e:s> <e:p> ?v } WHERE { }",
        )


def test_the_number_of_a_row_is_no_column() -> None:
    table = pa.table({"_row": [7], "t": [1]})
    assert read(table, mapping=PREFIXES + "CONSTRUCT { :s :r ?_row } WHERE { }") == ['1: "1"']


def test_mappings_are_read_once(tmp_path: Path) -> None:
    path = file(tmp_path, "m.rq", PAIR)
    mapping = read_mapping(path)
    assert read_mapping(mapping) is mapping
    assert mapping.tree == read_mapping(PAIR).tree == read_mapping(Path(path)).tree
    with pytest.raises(SpaseqError, match="cannot be read: No such file"):
        read_mapping(tmp_path / "none.rq")
    with pytest.raises(SpaseqError, match="is not UTF-8"):
        read_mapping(file(tmp_path, "l.rq", b"\xff"))


def test_volatile_functions_are_evaluated_for_each_row() -> None:
    mapping = PREFIXES + "CONSTRUCT { :s :a ?u } WHERE { BIND(UUID() AS ?u) }"
    assert len(set(read(TABLE, mapping=mapping))) == 3


def test_nodes_of_bnode_are_fresh_for_each_event() -> None:
    mapping = PREFIXES + 'CONSTRUCT { ?n :a ?n } WHERE { BIND(BNODE("x") AS ?n) }'
    found = [text.partition(": ")[2] for text in read(TABLE, mapping=mapping)]
    assert found == ["_:s0e1b0", "_:s0e2b0", "_:s0e3b0"]


# ------------------------------------------------------------------ what is read


def plan_of(mapping: str, *predicates: str) -> list[str]:
    """The columns that are read where queries use some predicates."""
    columns = columns_of(pa.schema([(name, pa.int64()) for name in "abct"]))
    plan = bind_mapping(
        parsed(f"{PREFIXES} CONSTRUCT {mapping}"),
        columns,
        "t",
        lambda predicate, value: predicate.value.removeprefix(EX) in predicates,
    )
    return [column.name for column in plan.columns]


@pytest.mark.parametrize(
    ("mapping", "predicates", "columns"),
    [
        ("{ :s :a ?a ; :b ?b } WHERE { }", "ab", ["a", "b", "t"]),
        ("{ :s :a ?a ; :b ?b ; :c 1 } WHERE { }", "a", ["a", "t"]),
        # Without triples of ?b it would not be known whether the event has any.
        ("{ :s :a ?a ; :b ?b } WHERE { }", "a", ["a", "b", "t"]),
        ("{ ?x :a ?a ; :b ?b ; :c 1 } WHERE { BIND(IRI(?c) AS ?x) }", "a", ["a", "c", "t"]),
        ("{ :s :c 1 ; :b ?b } WHERE { FILTER(?a > 1) }", "", ["a", "t"]),
        ("{ :s :c 1 ; :b ?x } WHERE { BIND(?b + ?c AS ?x) }", "c", ["t"]),
        ("{ :s :c 1 ; ?a ?b } WHERE { }", "", ["a", "b", "t"]),
        ("{ :s :c 1 } WHERE { BIND(?b AS ?_time) BIND(IRI(?a) AS ?_graph) }", "", ["a", "b", "t"]),
    ],
)
def test_columns_that_no_query_needs_are_not_read(
    mapping: str, predicates: str, columns: list[str]
) -> None:
    assert plan_of(mapping, *predicates) == columns


@pytest.mark.parametrize("extension", ["csv", "jsonl", "parquet", "arrow"])
def test_a_mapping_that_reads_no_column(extension: str, tmp_path: Path) -> None:
    path = file(tmp_path, f"rows.{extension}", FILES[extension])
    mapping = PREFIXES + "CONSTRUCT { :s :r ?_row } WHERE { BIND(?_row AS ?_time) }"
    found = read(path, mapping=mapping, time_column=None)
    assert found == ['1: "1"', '2: "2"', '3: "3"']


# ------------------------------------------------------------------ runs

QUERY = """PREFIX : <http://example.org/>
SELECT ?a ?c WITHIN 10 SECONDS FROM STREAM s :s WHERE {
  SEQ(A; B)
  DEFINE GPM A ON s { [] :a ?a ; :b 1 }
  DEFINE GPM B ON s { [] :a ?c }
}"""
MAPPING = PREFIXES + "CONSTRUCT { [] :a ?a ; :b ?b } WHERE { }"


def found(**arguments: Any) -> list[tuple[str, str]]:
    matches = spaseq.run(QUERY, **arguments)
    return [(match.bindings["a"].value, match.bindings["c"].value) for match in matches]


@pytest.mark.parametrize("name", [*FRAMES, *FILES])
def test_runs_over_rows(name: str, tmp_path: Path) -> None:
    make = FRAMES.get(name)
    content = make() if make else file(tmp_path, f"rows.{name}", FILES[name])
    mapping = MAPPING.replace("WHERE { }", "WHERE { BIND(xsd:integer(?b) AS ?n) }").replace(
        "?b }", "?n }"
    )
    given = found(streams={"s": content}, map={"s": mapping}, time_column="t")
    assert given == [("x", "y")]


def test_runs_over_several_tables_and_other_streams(tmp_path: Path) -> None:
    later = TABLE.set_column(0, "t", pa.array([4, 5, 6]))
    options = ReadOptions(time_column="t")
    streams = {EX + "s": [TABLE, later]}
    given = found(streams=streams, map={"s": file(tmp_path, "m.rq", MAPPING)}, options=options)
    assert given == [("x", "y"), ("x", "y")]


TWO = """PREFIX : <http://example.org/>
SELECT ?a ?c WITHIN 10 SECONDS FROM STREAM s :s FROM STREAM u :u WHERE {
  SEQ(A; B)
  DEFINE GPM A ON s { [] :a ?a }
  DEFINE GPM B ON u { [] :a ?c }
}"""
QUADS = """<e:1> <http://www.w3.org/ns/prov#generatedAtTime> 2 .
<e:1> { <e:s> <http://example.org/a> "p" }
<e:2> <http://www.w3.org/ns/prov#generatedAtTime> 3 .
<e:2> { <e:s> <http://example.org/a> "q" }
"""


def test_rows_are_merged_with_other_streams(tmp_path: Path) -> None:
    """The streams are in order together, also where each has many events."""
    quads = file(tmp_path, "u.trig", QUADS)
    given = spaseq.run(TWO, streams={"s": TABLE, "u": quads}, map={"s": MAPPING}, time_column="t")
    pairs = [(match.bindings["a"].value, match.bindings["c"].value) for match in given]
    assert pairs == [("x", "p"), ("y", "q")]
    rows = 5000
    odd, even = (
        pa.table(
            {
                "t": range(start, start + 2 * rows, 2),
                "a": [str(i) for i in range(rows)],
                "b": [1] * rows,
            }
        )
        for start in (1, 2)
    )
    given = spaseq.run(
        TWO, streams={"s": odd, "u": even}, map={"s": MAPPING, "u": MAPPING}, time_column="t"
    )
    pairs = [(match.bindings["a"].value, match.bindings["c"].value) for match in given]
    assert pairs == [(str(i), str(i)) for i in range(rows)]


@pytest.mark.parametrize(
    ("content", "maps", "message"),
    [
        (TABLE, {}, r"has rows \(a Table\), which need a mapping: map"),
        (pd.DataFrame({"t": [1, 2]}), {}, r"has rows \(a DataFrame\), which need a mapping: map"),
        ([{"t": 1}], {"s": MAPPING}, "has a mapping, but a list is .*: pyarrow.Table.from_pylist"),
        ([{"t": 1}], {}, r"\{'t': 1\} is not an event; .*; rows are a table with a mapping"),
        ("x.csv", {}, r"has rows \(x.csv\).*; spaseq map --suggest x.csv writes one"),
        ([(1, "")], {"s": MAPPING}, "has a mapping, but a list is not a file, Arrow table or data"),
        (TABLE, {"s": MAPPING, "u": MAPPING}, "no query reads the stream u"),
    ],
)
def test_streams_and_mappings_that_do_not_fit(content: Any, maps: Any, message: str) -> None:
    with pytest.raises(SpaseqError, match=message):
        found(streams={"s": content}, map=maps)
