"""Queries of the command line: files, texts, standard input."""

import io
import json
import sys
from pathlib import Path

import pytest

from spaseq import cli

QUERY = """PREFIX : <http://example.org/>
SELECT ?x WITHIN 10 SECONDS FROM STREAM s :s WHERE { SEQ(A) DEFINE GPM A ON s { [] :a ?x } }"""
EVENT = (
    '<http://example.org/g> <http://www.w3.org/ns/prov#generatedAtTime> "1"^^'
    "<http://www.w3.org/2001/XMLSchema#integer> .\n"
    '<http://example.org/e> <http://example.org/a> "1" <http://example.org/g> .\n'
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.nq").write_text(EVENT)
    (tmp_path / "q.rq").write_text(QUERY)
    return tmp_path


def given(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Put a text on standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_a_query_is_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "-q", QUERY, "--stream", "s=s.nq"]) == 0
    assert json.loads(capsys.readouterr().out)["query"] == "query"


def test_texts_and_files_have_names_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "q.rq", "-q", QUERY, "-q", QUERY, "--stream", "s=s.nq"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["query"] for line in lines] == ["q", "query", "query-2"]


def test_a_query_is_read_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch, QUERY)
    assert cli.main(["run", "-", "--stream", "s=s.nq"]) == 0
    assert json.loads(capsys.readouterr().out)["bindings"]["x"]["value"] == "1"


OF_KB = (
    "SELECT * WITHIN 1 SECOND FROM STREAM s <e:s> FROM NAMED <e:kb> "
    "WHERE { SEQ(A) DEFINE GPM A ON s { ?k <e:a> ?x GRAPH <e:kb> { ?k <e:b> ?z } } }"
)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check"], "give a query: QUERY.rq, - for standard input, or -q TEXT"),
        (["check", "-q", "SELECT"], "-q:1:7: error"),
        (["check", "-q", "q.rq"], "-q: the text of a query is needed, not a path (q.rq); omit -q"),
        (["check", "s.nq"], "s.nq is a file of events, and a query is expected here (see"),
        (["check", "-", "-"], "standard input is given for two queries"),
        (["run", "-", "--stream", "s=-"], "both for a query and for a stream"),
        (["q.rq"], "q.rq is not a command; to run a query: spaseq run q.rq"),
        (["--stream", "s=x", "run"], "comes after it: spaseq run --stream … (see spaseq --help)"),
        (["--json", "remote", "list"], "comes after it: spaseq remote list --json …"),
        (["remote", "--limit", "3", "watch"], "comes after it: spaseq remote watch --limit …"),
        (["remote", "list", "--server"], "requires an argument. (see spaseq remote list --help)"),
        (["why", "q.rq"], "why is not a command; did you mean spaseq run … --why?"),
        (["remote", "ls"], "ls is not a command; did you mean spaseq remote list?"),
        (
            ["remote", "list", "--server", "localhost:1"],
            "URL is needed, such as http://localhost:1",
        ),
        (
            ["serve", "q.rq"],
            "--queries DIR, or add them to the running server: spaseq remote add q.rq",
        ),
        (["explain", "-q", OF_KB, "--kb", "kb.ttl"], "IRI=URL, as in e:kb=kb.ttl"),
        (["--nothing"], "No such option '--nothing'"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given(monkeypatch, QUERY)
    assert cli.main(arguments) == 2
    assert said in capsys.readouterr().err


# ------------------------------------------------------------------ fmt

UNTIDY = "PREFIX : <http://example.org/> # where\nselect ?x from stream s :s where { seq(A)\n"
UNTIDY += "define gpm A on s { [] :a ?x } # all\n} within 10 seconds"
TIDY = """\
PREFIX : <http://example.org/>  # where
SELECT ?x
FROM STREAM s :s
WHERE {
  SEQ(A)
  DEFINE GPM A ON s { [] :a ?x }  # all
}
WITHIN 10 SECONDS
"""


def test_fmt_lays_files_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "untidy.rq").write_text(UNTIDY)
    assert cli.main(["fmt", "--check", "untidy.rq"]) == 1
    assert (folder / "untidy.rq").read_text() == UNTIDY
    assert cli.main(["fmt", "untidy.rq"]) == 0
    assert (folder / "untidy.rq").read_text() == TIDY
    assert cli.main(["fmt", "--check", "untidy.rq"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "untidy.rq would be reformatted",
        "untidy.rq changed",
    ]


def test_fmt_of_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch, UNTIDY)
    assert cli.main(["fmt", "-"]) == 0
    assert capsys.readouterr().out == TIDY


def test_a_faulty_file_changes_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "untidy.rq").write_text(UNTIDY)
    (folder / "faulty.rq").write_text("SELECT")
    assert cli.main(["fmt", "untidy.rq", "faulty.rq"]) == 2
    assert (folder / "untidy.rq").read_text() == UNTIDY
    assert "faulty.rq:1:7: error" in capsys.readouterr().err


# ------------------------------------------------------------------ columns of the match


def test_rows_begin_with_columns_of_the_match(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "q.rq", "--stream", "s=s.nq", "--format", "csv"]
    assert cli.main([*command, "--match-columns", "end,query"]) == 0
    assert capsys.readouterr().out == "end,query,x\n1,q,1\n".replace("\n", "\r\n")


def test_rows_of_live_runs_begin_with_columns_of_the_match(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "q.rq", "--stream", "s=s.nq", "--state", "kept", "-o", "out.csv"]
    assert cli.main([*command, "--match-columns", "start"]) == 0
    assert (folder / "out.csv").read_text() == "start,x\n1,1\n"


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("begin", [], "'begin' is not one of start, end, query"),
        ("end,end", [], "end is given twice"),
        ("end", ["--format", "jsonl"], "--match-columns is for --format table, csv or tsv"),
        ("end", ["-q", QUERY.replace("?x", "?end")], "projects ?end, so the column end"),
    ],
)
def test_columns_that_cannot_be(
    columns: str, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    query = [] if "-q" in options else ["q.rq"]
    command = ["run", *query, "--stream", "s=s.nq", "--match-columns", columns, *options]
    assert cli.main(command) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["run"], ["remote", "watch"]])
def test_help_is_also_a_word(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*command, "--help"]) == 0
    asked = capsys.readouterr().out
    assert cli.main(["help", *command]) == 0
    assert capsys.readouterr().out == asked
    assert cli.main(["help", "nothing"]) == 2
    assert "No such command 'nothing'" in capsys.readouterr().err
