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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check"], "give a query: QUERY.rq, - for standard input, or -q TEXT"),
        (["check", "-q", "SELECT"], "-q:1:7: error"),
        (["check", "-", "-"], "standard input is given for two queries"),
        (["run", "-", "--stream", "s=-"], "both for a query and for a stream"),
        (["q.rq"], "q.rq is no command; to run a query: spaseq run q.rq"),
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
