"""Live runs and the server end at once, with a reason, where the system lacks what they need."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spaseq.cli import main

EXAMPLE = Path(__file__).parents[3] / "examples" / "stock"
QUERY = str(EXAMPLE / "v-shape.rq")
STREAM = f"trades={EXAMPLE / 'trades.trig'}"
KB = f"http://example.org/stock/kb={EXAMPLE / 'kb.ttl'}"


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (["run", QUERY, "--stream", STREAM, "--kb", KB, "--follow"], "a live run"),
        (
            ["run", QUERY, "--stream", STREAM, "--kb", KB, "--follow", "--check-config"],
            "a live run",
        ),
        (["serve", "--listen", "127.0.0.1:0"], "the server"),
    ],
    ids=["run", "check", "serve"],
)
def test_a_system_without_reads_by_position(
    command: list[str],
    what: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delattr(os, "pread")
    assert main(command) == 2
    assert f"{what} needs Linux or macOS" in capsys.readouterr().err


def test_a_run_over_finished_files_needs_none(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["run", QUERY, "--stream", STREAM, "--kb", KB]
    assert main(command) == 0
    wanted = capfd.readouterr().out
    monkeypatch.delattr(os, "pread")
    assert main(command) == 0
    assert capfd.readouterr().out == wanted
    assert wanted
