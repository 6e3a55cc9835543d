"""No argument and no file gives a traceback: each command ends with a status and a line."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from command_lines import draw, write_files

from spaseq.cli import main

CASES = int(os.environ.get("SPASEQ_EXAMPLES", "250"))
STATUSES = (0, 1, 2)


def test_no_command_line_gives_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(os.environ.get("SPASEQ_SEED", "command lines"))
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    for _ in range(CASES):
        words = draw(chance)
        try:
            status = main(words)
        except BaseException as error:
            pytest.fail(f"spaseq {words}: {type(error).__name__}: {error}")
        shown = capfd.readouterr()
        assert status in STATUSES, words
        assert "Traceback" not in shown.err, words
        assert status == 0 or shown.err.strip() or shown.out, words
