"""The types of the public interface refuse wrong streams, times and graphs, and no right ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
USES = ROOT / "tests" / "typing_uses.py"


def test_mypy_refuses_wrong_uses_and_no_others() -> None:
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context"]
    command += ["--config-file", "pyproject.toml", str(USES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert not done.stderr
    found = {int(line) for line in re.findall(r"typing_uses\.py:(\d+): error", done.stdout)}
    lines = USES.read_text("utf-8").splitlines()
    wanted = {n for n, line in enumerate(lines, 1) if line.endswith("# refused")}
    assert found == wanted, done.stdout
