"""What a mapping leaves out of its events is counted, with the first example, at every door."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import spaseq
from spaseq import cli
from spaseq.io.losses import Loss
from spaseq.io.read_options import ReadOptions
from spaseq.io.rows.mapping import parsed
from spaseq.io.rows.source import EVENTS_AT_ONCE, RowSource

EX = "http://example.org/"
PREFIXES = f"PREFIX : <{EX}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
STATIONS = """time,name,v
1,Köln Süd,10
2,Bonn,11
3,Köln Süd,12
4,Bonn,13
"""
MAPPING = PREFIXES + (
    "CONSTRUCT { ?s :v ?n } WHERE { "
    f'BIND(IRI(CONCAT("{EX}station/", ?name)) AS ?s) BIND(xsd:integer(?v) AS ?n) }}'
)
QUERY = f"""PREFIX : <{EX}>
SELECT ?s ?a ?b WITHIN 1 MINUTE FROM STREAM S :S WHERE {{
  SEQ(A ; B)
  DEFINE GPM A ON S {{ ?s :v ?a }}
  DEFINE GPM B ON S {{ ?s :v ?b FILTER(?b > ?a) }}
}}"""
ERRED = (
    f'BIND(IRI(CONCAT("{EX}station/", ?name)) AS ?s) erred in 2 of 4 rows, first in '
    f'stations.csv, row 1: "{EX}station/Köln Süd": a space is not allowed in an IRI; '
    "ENCODE_FOR_URI(?name) encodes it"
)


def lost(*tables: Any, mapping: str, **options: Any) -> list[Loss]:
    options.setdefault("time_column", "t")
    source = RowSource(EX, tables, ReadOptions(**options), mapping=parsed(mapping))
    for _ in source:
        pass
    return source.counters.losses()


def texts(losses: list[Loss]) -> list[str]:
    return [str(loss) for loss in losses if loss.count]


TIMES = {"t": [1, 2, 3, 4]}


@pytest.mark.parametrize(
    ("where", "expression"),
    [
        ("BIND(xsd:integer(?v) AS ?n)", "BIND(xsd:integer(?v) AS ?n)"),
        ("BIND(?v AS ?n) FILTER(xsd:integer(?v) > 0)", "FILTER(xsd:integer(?v) > 0)"),
        # Evaluated in Python, and without a cache.
        ("BIND(xsd:integer(CONCAT(?v, SUBSTR(MD5(?v), 1, 0))) AS ?n)", None),
        ("BIND(xsd:integer(?v) + 0 * RAND() AS ?n)", "BIND(xsd:integer(?v) + 0 * RAND() AS ?n)"),
    ],
)
def test_expressions_that_err(where: str, expression: str | None) -> None:
    table = pa.table({**TIMES, "v": ["n/a", "1", None, "n/a"]})
    mapping = PREFIXES + f"CONSTRUCT {{ :s :v ?n }} WHERE {{ {where} }}"
    loss, *_ = lost(table, mapping=mapping)
    assert (loss.kind, loss.count, loss.rows, loss.unbound) == ("expression", 2, 4, 1)
    assert loss.place == "<Table>, row 1"
    assert 'xsd:integer("n/a"): a string' in loss.example
    assert expression in (None, loss.what)


def test_repeated_values_are_counted_by_row() -> None:
    """Results are cached by value; rows are not."""
    count = 3 * EVENTS_AT_ONCE
    table = pa.table({"t": range(count), "v": ["n/a"] * count})
    mapping = PREFIXES + "CONSTRUCT { :s :v ?n } WHERE { BIND(xsd:integer(?v) AS ?n) }"
    loss, _ = lost(table, mapping=mapping)
    assert (loss.count, loss.rows) == (count, count)


def test_an_error_within_coalesce_is_none() -> None:
    table = pa.table({**TIMES, "v": ["n/a", "1", None, "2"]})
    mapping = PREFIXES + (
        "CONSTRUCT { :s :v ?n } WHERE { BIND(COALESCE(xsd:integer(?v), 0) AS ?n) "
        "FILTER(?n >= 0 || xsd:integer(?v) > 0) }"
    )
    assert lost(table, mapping=mapping) == []


def test_what_follows_from_an_error_is_not_one() -> None:
    table = pa.table({**TIMES, "v": ["n/a", "1", "2", "3"]})
    mapping = PREFIXES + (
        "CONSTRUCT { :s :v ?m } WHERE { BIND(xsd:integer(?v) AS ?n) BIND(?n * 2 AS ?m) }"
    )
    first, second, empty = lost(table, mapping=mapping)
    assert (first.count, first.unbound) == (1, 0)
    assert (second.count, second.unbound) == (0, 1)
    assert (empty.kind, empty.count) == ("row", 1)


def test_terms_out_of_place() -> None:
    table = pa.table({**TIMES, "id": ["a", "b", None, "c"], "p": ["x", None, "x", "x"]})
    mapping = PREFIXES + "CONSTRUCT { ?id :v 1 . :s ?p 1 } WHERE { }"
    assert texts(lost(table, mapping=mapping))[:2] == [
        'the triple ?id :v 1 is omitted in 3 of 4 rows, first in <Table>, row 1: "a" is no IRI; '
        "IRI(…) makes an IRI of a string",
        'the triple :s ?p 1 is omitted in 3 of 4 rows, first in <Table>, row 1: "x" is no IRI; '
        "IRI(…) makes an IRI of a string",
    ]


def test_rows_without_triples() -> None:
    table = pa.table({**TIMES, "id": ["a", None, "b", None]})
    mapping = PREFIXES + "CONSTRUCT { ?s :v 1 } WHERE { BIND(IRI(CONCAT(STR(:), ?id)) AS ?s) }"
    assert texts(lost(table, mapping=mapping)) == [
        "2 of 4 rows gave no triple, first in <Table>, row 2: no variable of the template has a "
        "value",
    ]
    every = PREFIXES + "CONSTRUCT { :s a :Row ; :v ?id } WHERE { }"
    assert lost(table, mapping=every) == []


def test_several_tables_are_added() -> None:
    mapping = PREFIXES + "CONSTRUCT { :s :v ?n } WHERE { BIND(xsd:integer(?v) AS ?n) }"
    good = pa.table({"t": [1], "v": ["1"]})
    bad = pa.table({"t": [2, 3], "v": ["x", "y"]})
    (loss, _) = lost(good, bad, good.set_column(0, "t", pa.array([4])), mapping=mapping)
    assert (loss.count, loss.rows, loss.place) == (2, 2, "<Table>, row 1")
    assert loss.example == 'xsd:integer("x"): a string'


# ------------------------------------------------------------------ doors


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("stations.csv").write_text(STATIONS, "utf-8")
    Path("map.rq").write_text(MAPPING, "utf-8")
    Path("query.rq").write_text(QUERY, "utf-8")
    return tmp_path


RUN = [
    "run",
    "query.rq",
    "--stream",
    "S=stations.csv",
    "--map",
    "S=map.rq",
    "--time-column",
    "time",
]


@pytest.mark.usefixtures("folder")
def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*RUN, "--format", "csv", "--workers", "2"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == ["s,a,b", f"{EX}station/Bonn,11,13"]
    assert err == f"spaseq: {ERRED}\n"


@pytest.mark.usefixtures("folder")
def test_statistics(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*RUN, "--stats"]) == 0
    shown = capsys.readouterr().err
    assert "2 of 4 rows" in shown.rpartition("matches written")[2]
    assert cli.main([*RUN, "--stats-json"]) == 0
    counted = json.loads(capsys.readouterr().err.splitlines()[-1])
    first, empty = counted["read"][EX + "S"]["mapping_errors"]
    assert (first["errors"], first["rows"], first["first"]) == (2, 4, "stations.csv, row 1")
    assert (empty["kind"], empty["errors"]) == ("row", 2)


@pytest.mark.usefixtures("folder")
def test_the_command_that_maps(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["map", "map.rq", "stations.csv", "--time-column", "time"]) == 0
    assert capsys.readouterr().err == f"spaseq: {ERRED}\n"


def frames() -> list[Callable[[Path], Any]]:
    columns = {"time": [1, 2, 3, 4], "name": ["Köln Süd", "Bonn"] * 2, "v": [10, 11, 12, 13]}

    def pandas(folder: Path) -> Any:
        return pytest.importorskip("pandas").DataFrame(columns)

    def polars(folder: Path) -> Any:
        return pytest.importorskip("polars").DataFrame(columns)

    def lines(folder: Path) -> Any:
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        path = folder / "rows.ndjson"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        return path

    return [pandas, polars, lines, lambda folder: pa.table(columns)]


@pytest.mark.parametrize("make", frames())
def test_python(make: Callable[[Path], Any], tmp_path: Path) -> None:
    result = spaseq.run(QUERY, {"S": make(tmp_path)}, map={"S": MAPPING}, time_column="time")
    assert [match.values for match in result] == [{"s": EX + "station/Bonn", "a": 11, "b": 13}]
    (errors,) = result.stats["mapping_errors"].values()
    assert [(each["kind"], each["errors"], each["rows"]) for each in errors] == [
        ("expression", 2, 4),
        ("row", 2, 4),
    ]
    assert "ENCODE_FOR_URI(?name) encodes it" in errors[0]["example"]


def test_nothing_is_said_where_nothing_is_lost() -> None:
    table = pa.table({**TIMES, "v": [1, 2, 3, 4]})
    mapping = PREFIXES + "CONSTRUCT { :s :v ?v } WHERE { }"
    result = spaseq.run(QUERY, {"S": table}, map={"S": mapping}, time_column="t")
    assert len(list(result)) == 3
    assert "mapping_errors" not in result.stats
