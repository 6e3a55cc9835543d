"""`spaseq map`, and `spaseq run` over rows, as their users meet them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spaseq import cli

TRADES = """time,trade_id,symbol,price,size,code
2026-01-05 09:00:00,t1,eBay,14.0,100,007
2026-01-05 09:00:02.500,t2,eBay,15.5,50,008
2026-01-05 09:00:03,t3,HP,20.25,,009
"""
MAPPING = """PREFIX : <http://example.org/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
CONSTRUCT { ?t a :Trade ; :symbol ?symbol ; :price ?p }
WHERE {
  BIND(IRI(CONCAT("http://example.org/", ?trade_id)) AS ?t)
  BIND(xsd:decimal(?price) AS ?p)
  BIND(?t AS ?_graph)
}
"""
QUERY = """PREFIX : <http://example.org/>
SELECT ?symbol ?p1 ?p2 WITHIN 1 MINUTE FROM STREAM trades :trades WHERE {
  SEQ(A ; B)
  DEFINE GPM A ON trades { ?t :symbol ?symbol ; :price ?p1 }
  DEFINE GPM B ON trades { ?u :symbol ?symbol ; :price ?p2 FILTER(?p2 > ?p1) }
}
"""


class Shell:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]):
        self.folder = folder
        self._capsys = capsys
        self.out = self.err = ""

    def file(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, "utf-8")

    def __call__(self, *arguments: str) -> int:
        status = cli.main(list(arguments))
        self.out, self.err = self._capsys.readouterr()
        return status


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.chdir(tmp_path)
    made = Shell(tmp_path, capsys)
    made.file("trades.csv", TRADES)
    made.file("trades.rq", MAPPING)
    made.file("rise.rq", QUERY)
    return made


RUN = ("run", "rise.rq", "--stream", "trades=trades.csv", "--format", "csv")
FOUND = "symbol,p1,p2\r\neBay,14,15.5\r\n"


def test_run_over_rows(shell: Shell) -> None:
    assert shell(*RUN, "--map", "trades=trades.rq", "--time-column", "time") == 0
    assert (shell.out, shell.err) == (FOUND, "")


def test_the_printed_events_are_the_same_stream(shell: Shell) -> None:
    for name, format_ in (("trades.nq", "nquads"), ("trades.trig", "trig")):
        arguments = ("trades.rq", "trades.csv", "--time-column", "time", "--format", format_)
        assert shell("map", *arguments) == 0
        shell.file(name, shell.out)
        run = ("run", "rise.rq", "--stream", f"trades={name}", "--format", "csv")
        assert shell(*run) == 0
        assert (shell.out, shell.err) == (FOUND, "")


def test_events_are_printed_in_trig(shell: Shell) -> None:
    assert shell("map", "trades.rq", "trades.csv", "--time-column", "time", "--limit", "1") == 0
    assert shell.out == (
        "@prefix prov: <http://www.w3.org/ns/prov#> .\n"
        "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"
        "@prefix : <http://example.org/> .\n"
        ':t1 prov:generatedAtTime "2026-01-05T09:00:00Z"^^xsd:dateTime .\n'
        ":t1 {\n"
        "  :t1 a :Trade ;\n"
        '    :symbol "eBay" ;\n'
        '    :price "14"^^xsd:decimal .\n'
        "}\n"
    )


def test_a_stream_of_times_in_another_unit(shell: Shell) -> None:
    shell.file("n.csv", "t\n1500\n")
    shell.file("n.rq", "CONSTRUCT { <e:s> <e:p> ?_row } WHERE { }")
    arguments = ("n.rq", "n.csv", "--time-column", "t", "--time-unit", "ms", "--format", "nquads")
    assert shell("map", *arguments) == 0
    assert shell.out == (
        "_:event1 <http://www.w3.org/ns/prov#generatedAtTime> "
        '"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal> .\n'
        '<e:s> <e:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> _:event1 .\n'
    )


def test_events_before_an_error_are_printed(shell: Shell) -> None:
    shell.file("trades.csv", TRADES.replace("09:00:03,", "09:00:01,"))
    assert shell("map", "trades.rq", "trades.csv", "--time-column", "time") == 2
    assert shell.out.count("{") == 2
    assert "trades.csv, row 3: time runs backwards: 2026-01-05T09:00:01Z" in shell.err
    arguments = ("trades.rq", "trades.csv", "--time-column", "time", "--on-error", "skip")
    assert shell("map", *arguments) == 0
    assert "1 error skipped" in shell.err


def test_warnings_are_printed(shell: Shell) -> None:
    shell.file("trades.rq", MAPPING.replace("xsd:decimal(?price)", 'xsd:decimal("x")'))
    warning = "trades.rq:6:8: warning: this value is not a valid `xsd:decimal`"
    assert shell("map", "trades.rq", "trades.csv", "--time-column", "time") == 0
    assert shell.err.startswith(warning)
    assert shell(*RUN, "--map", "trades=trades.rq", "--time-column", "time") == 0
    assert shell.err.startswith(warning)


SUGGESTED = """PREFIX : <http://example.org/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
CONSTRUCT {
  ?trade a :Trade ;
    :trade_id ?trade_id ;
    :symbol ?symbol ;
    :price ?price_value ;
    :size ?size_value ;
    :code ?code .
}
WHERE {
  BIND(IRI(CONCAT("http://example.org/trade/", ENCODE_FOR_URI(STR(?trade_id)))) AS ?trade)
  BIND(xsd:decimal(?price) AS ?price_value)
  BIND(xsd:integer(?size) AS ?size_value)
  BIND(?time AS ?_time)
}
"""


def test_a_suggested_mapping_runs(shell: Shell) -> None:
    assert shell("map", "--suggest", "trades.csv") == 0
    assert shell.out == SUGGESTED
    shell.file("suggested.rq", shell.out)
    assert shell(*RUN, "--map", "trades=suggested.rq") == 0
    assert shell.out == FOUND


SECONDS, MILLIS, MICROS = 1_767_603_600, 1_767_603_600_000, 1_767_603_600_000_000
COLUMNS: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    # The columns, lines of the mapping, and options with which it runs.
    "rows without a time": ({"a": ["x", "y"]}, ["No column looks like a time"], ["--arrival-time"]),
    "a timestamp": ({"when": [datetime(2026, 1, 5)] * 2}, ["BIND(?when AS ?_time)"], []),
    "seconds": ({"ts": [SECONDS, SECONDS]}, ["BIND(?ts AS ?_time)"], []),
    "small numbers": ({"time": [1, 2]}, ["BIND(?time AS ?_time)"], []),
    "milliseconds": (
        {"ts": [MILLIS, MILLIS]},
        ["# ?ts counts units of ms: use --time-unit ms"],
        ["--time-unit", "ms"],
    ),
    "microseconds": ({"ts": [MICROS] * 2}, ["use --time-unit us"], ["--time-unit", "us"]),
    "times without seconds": (
        {"when": ["2026-01-05T09:00", "2026-01-05 09:10"]},
        ['BIND(CONCAT(?when, ":00") AS ?_time)'],
        [],
    ),
    "dates with points": (
        {"day": ["05.01.2026", "06.01.2026"]},
        ['BIND(REPLACE(?day, "(..)[.](..)[.](....)", "$3-$2-$1") AS ?_time)'],
        [],
    ),
    "days before months": (
        {"day": ["13/01/2026", "14/01/2026"]},
        ["# ?day is read as day/month/year.", '(..)/(..)/(....)", "$3-$2-$1") AS ?_time)'],
        [],
    ),
    "months before days": (
        {"day": ["01/13/2026 09:00:00"] * 2},
        ["# ?day is read as month/day/year.", '"$3-$1-$2T$4") AS ?_time)'],
        [],
    ),
    "times of an unknown form": (
        {"when": ["1/5/2026 8:15 PM"] * 2},
        ["# ?when has times such as '1/5/2026 8:15 PM':"],
        ["--arrival-time"],
    ),
    "commas between thousands": (
        {"time": [1, 2], "price": ["1,200.50", "9"]},
        ['xsd:decimal(REPLACE(?price, ",", ""))'],
        [],
    ),
    "times with points": ({"at": ["05.01.2026 09:00:00"] * 2}, ['"$3-$2-$1T$4") AS ?_time)'], []),
    "a name before another": (
        {"birthday": ["2026-01-05"] * 2, "created_at": ["2026-01-05"] * 2},
        ["BIND(?created_at AS ?_time)", "BIND(xsd:date(?birthday) AS ?birthday_value)"],
        [],
    ),
    "identifiers of numbers": (
        {"id": [1, 2], "time": [1, 2]},
        ['BIND(IRI(CONCAT("http://example.org/row/", ENCODE_FOR_URI(STR(?id)))) AS ?row)'],
        [],
    ),
    "identifiers that recur": (
        {"id": [1, 1], "time": [1, 2]},
        ['BIND(IRI(CONCAT("http://example.org/row/", STR(?_row))) AS ?row)'],
        [],
    ),
    "fields": (
        {"time": [1, 2], "at": [{"x": 1, "l": [1]}] * 2},
        [":at_x ?at_x", "# The column 'at.l' holds lists: omitted."],
        [],
    ),
    "names that are alike": (
        {"time": [1, 2], "a b": [1, 1], "a.b": [1, 1]},
        ["# The column 'a b' shares ?a_b: omitted."],
        [],
    ),
    "names that are taken": (
        {"time": [1, 2], "row": ["1", "2"], "row_value": [1, 2]},
        [":row ?row_value_", "AS ?row_)"],
        [],
    ),
    "strings": (
        {
            "time": [1, 2],
            "yes": ["true", "false"],
            "real": ["1e3", "2.5"],
            "date": ["2026-01-05"] * 2,
            "at": ["2026-01-05T09:00:00Z"] * 2,
            "mixed": ["1", "x"],
            "gap": ["1", None],
            "none": [None, None],
        },
        ["xsd:boolean(?yes)", "xsd:double(?real)", "xsd:integer(?gap)", "xsd:dateTime(?at)",
         ":mixed ?mixed"],
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
def test_suggestions(name: str, shell: Shell) -> None:
    columns, lines, options = COLUMNS[name]
    pq.write_table(pa.table(columns), shell.folder / "rows.parquet")
    assert shell("map", "--suggest", "rows.parquet") == 0
    for line in lines:
        assert line in shell.out
    shell.file("m.rq", shell.out)
    assert shell("map", "m.rq", "rows.parquet", *options, "--format", "nquads") == 0, shell.err
    assert shell.out.count("generatedAtTime") == 2


def test_cells_between_semicolons(shell: Shell) -> None:
    shell.file("rows.csv", "when;item;price\n05.01.2026 09:00;a,b;1,09\n05.01.2026 09:10;;12\n")
    assert shell("map", "--suggest", "rows.csv") == 0
    shell.file("m.rq", shell.out)
    assert shell("map", "m.rq", "rows.csv", "--format", "nquads") == 0, shell.err
    assert '"2026-01-05T09:10:00Z"' in shell.out
    assert '<http://example.org/item> "a,b"' in shell.out
    assert '/price> "1.09"^^<http://www.w3.org/2001/XMLSchema#decimal>' in shell.out


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        # a decimal comma, or dates with points, show that points separate thousands
        ("when;price;rest\n2026-01-05;1.200;3,50\n2026-01-06;12;4,25\n", "1200"),
        ("when;price\n05.01.2026;1.200\n06.01.2026;1.234.567\n", "1200"),
        # a decimal point in another column shows the opposite
        ("when;rest;price\n2026-01-05;1.5;1,200\n2026-01-06;2.5;2,400\n", "1200"),
        ("when;price\n2026-01-05;1.200\n2026-01-06;2.5\n", "1.2"),
        # nothing shows either
        ("when;price\n2026-01-05;1.200\n2026-01-06;2.500\n", "1.2"),
    ],
)
def test_points_and_commas_of_numbers(lines: str, found: str, shell: Shell) -> None:
    shell.file("rows.csv", lines)
    assert shell("map", "--suggest", "rows.csv") == 0
    is_doubtful = lines.endswith("2.500\n")
    assert ("'1.200' in ?price is read with a decimal point" in shell.out) == is_doubtful
    shell.file("m.rq", shell.out)
    assert shell("map", "m.rq", "rows.csv", "--format", "nquads") == 0, shell.err
    assert f'/price> "{found}"^^' in shell.out


def test_a_file_of_a_german_spreadsheet(shell: Shell) -> None:
    lines = ["Zeit;Ort;Betrag;Ort", "05.01.2026 09:00;a;1.200,50;b", "05.01.2026 09:10;;12;"]
    (shell.folder / "rows.csv").write_bytes("\r\n".join(lines).encode("utf-8-sig"))
    assert shell("map", "--suggest", "rows.csv") == 0
    assert "# The column 'Ort' shares ?Ort: omitted." in shell.out
    shell.file("m.rq", shell.out)
    assert shell("map", "m.rq", "rows.csv", "--format", "nquads") == 0, shell.err
    assert '/Betrag> "1200.5"^^' in shell.out
    assert '/Betrag> "12"^^' in shell.out


@pytest.mark.parametrize("sign", ["|", "\t"])
def test_other_separators(sign: str, shell: Shell) -> None:
    shell.file("rows.csv", f"time{sign}a\n1{sign}x,y\n")
    assert shell("map", "--suggest", "rows.csv") == 0
    shell.file("m.rq", shell.out)
    assert shell("map", "m.rq", "rows.csv", "--format", "nquads") == 0, shell.err
    assert '/a> "x,y"' in shell.out


def test_a_file_without_names_of_columns(shell: Shell) -> None:
    shell.file("rows.csv", "2026-01-05 09:00:00,x\n2026-01-05 09:00:01,y\n")
    assert shell("map", "--suggest", "rows.csv") == 0
    assert "# The first line must name the columns, but has values" in shell.out


def test_another_encoding(shell: Shell) -> None:
    (shell.folder / "rows.csv").write_bytes("time,Größe\n1,2\n".encode("latin-1"))
    assert shell("map", "--suggest", "rows.csv") == 2
    assert "the header is not UTF-8: convert the file, as in iconv" in shell.err


@pytest.mark.parametrize("text", ["", "a,b\n"])
def test_suggestions_for_tables_without_rows(text: str, shell: Shell) -> None:
    shell.file("rows.csv", text)
    assert shell("map", "--suggest", "rows.csv") == 0
    shell.file("m.rq", shell.out)
    assert shell("map", "m.rq", "rows.csv", "--arrival-time") == 0
    assert shell.out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("map trades.rq", "name a mapping and a file, or use --suggest FILE"),
        ("map --suggest trades.csv trades.rq", "--suggest takes one file"),
        ("map --suggest none.csv", "none.csv: there is no such file (named by --suggest)"),
        ("map trades.rq none.csv", "none.csv: there is no such file"),
        ("map none.rq trades.csv", "the mapping none.rq cannot be read: No such file"),
        ("map trades.rq trades.csv", "trades.csv: its rows have no time: BIND ?_time"),
        ("map trades.rq trades.csv --time-column x --arrival-time", "cannot be used together"),
        ("map rise.rq trades.csv", "rise.rq:2:1: error: a mapping of rows begins with CONSTRUCT"),
        (
            "run rise.rq --stream trades=trades.csv",
            "has rows (trades.csv), which need a mapping: --map NAME=MAPPING.rq (map= in Python); "
            "spaseq map --suggest trades.csv writes one",
        ),
        ("map trades.csv trades.rq", "comes first: spaseq map trades.rq trades.csv"),
        ("map a.csv trades.rq b.csv", "comes first: spaseq map trades.rq a.csv b.csv"),
        ("map a.csv b.csv", "comes first: spaseq map MAPPING.rq a.csv b.csv"),
        ("convert trades.csv out.nq", "spaseq map MAPPING.rq trades.csv prints them, and"),
        ("run rise.rq --stream trades=trades.csv --map trades.rq", "it must have the form NAME="),
        (
            "run rise.rq --stream trades=trades.csv --map trades=trades.rq --map trades=trades.rq",
            "has two mappings",
        ),
        ("run rise.rq --stream trades=trades.csv --map t=trades.rq", "no query reads the stream t"),
        (
            "run rise.rq --stream trades=trades.csv --time-column time",
            "--time-column names a column of rows: add --map NAME=MAPPING.rq",
        ),
        (
            "run rise.rq --stream trades=trades.csv --map trades=trades.rq --time-column time "
            "--output trades.rq",
            "--output trades.rq is the same file as the input trades.rq",
        ),
    ],
)
def test_arguments_that_do_not_fit(arguments: str, message: str, shell: Shell) -> None:
    assert shell(*arguments.split()) == 2
    assert message in shell.err
    assert "Traceback" not in shell.err
