"""`spaseq bench`: its figures belong to the run that `spaseq run` makes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_cli import QUERY, STREAM, S

from spaseq.cli import main


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "q.rq").write_text(QUERY, encoding="utf-8")
    (tmp_path / "s.nq").write_text(STREAM, encoding="utf-8")
    return [str(tmp_path / "q.rq"), "--stream", f"{S}={tmp_path / 's.nq'}"]


def test_the_table(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *files, "--repeat", "2", "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("  ")[0] for line in lines[1:5]] == [
        "reading",
        "matching, csv written",
        "the whole run",
        "the whole run, elapsed",
    ]
    assert lines[5].startswith(f"3 events, 3 triples, {len(STREAM)} bytes, 1 matches")
    assert "100%" in lines[3]


def test_json_has_every_measurement(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *files, "--repeat", "3", "--json", "--workers", "1"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["events"], record["triples"], record["matches"]) == (3, 3, 1)
    for clock in ("processor", "elapsed"):
        assert {name: len(times) for name, times in record[clock].items()} == {
            "reading": 3,
            "whole": 3,
        }


def test_a_pipe_cannot_be_read_twice(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", files[0], "--stream", f"{S}=-"]) == 2
    assert "- is read several times, so it must be a file" in capsys.readouterr().err


def test_bad_input_is_reported_like_that_of_a_run(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.nq").write_text(STREAM + "nonsense\n", encoding="utf-8")
    assert main(["bench", *files]) == 2
    assert "s.nq:7" in capsys.readouterr().err
