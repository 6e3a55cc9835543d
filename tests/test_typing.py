"""mypy finds no error in the package, and refuses wrong uses of its public interface."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
USES = ROOT / "tests" / "typing_uses.py"


def test_mypy_refuses_wrong_uses_and_nothing_else() -> None:
    """One run for both, since reading the types of the libraries is most of the cost."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context"]
    command += ["-p", "spaseq", "-m", USES.stem]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"MYPYPATH": str(USES.parent)},
        capture_output=True,
        text=True,
    )
    assert not done.stderr
    at_uses = re.compile(rf"{re.escape(str(USES.relative_to(ROOT)))}:(\d+): (?:error|note)")
    refused = [(line, at_uses.match(line)) for line in done.stdout.splitlines()]
    assert all(found for _, found in refused), done.stdout
    lines = USES.read_text("utf-8").splitlines()
    wanted = {n for n, line in enumerate(lines, 1) if line.endswith("# refused")}
    assert {int(found[1]) for line, found in refused if found and ": error" in line} == wanted
