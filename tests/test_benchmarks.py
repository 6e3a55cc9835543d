"""The benchmarks run, on a small size, and count the matches that the reference finds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from oracle import evaluate

from spaseq.generate import write
from spaseq.io.source import Source

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks" / "query"


def test_three_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    import three_steps

    result = subprocess.run(
        [sys.executable, str(FOLDER / "three_steps.py"), "--events", "400"],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = re.search(r"^reading and matching .* (\d+)$", result.stdout, re.MULTILINE)
    assert shown
    trades = write("stock", 400, 1, tmp_path)[0]
    events = list(Source(three_steps.STREAM, [str(trades)]))
    assert int(shown[1]) == len(evaluate(three_steps.QUERY, {three_steps.STREAM: events})) > 0
    assert len(result.stdout.splitlines()[-1].split(":")[1].split()) == three_steps.SAMPLES
