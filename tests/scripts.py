"""Runs the scripts of `benchmarks/` for the tests."""

from __future__ import annotations

import gc
import os
import runpy
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
NAMES = frozenset(path.stem for path in (ROOT / "benchmarks").rglob("*.py"))
"""The names of the scripts, some of which are also names of modules of the tests."""


def printed(script: Path, *options: str) -> str:
    """What a script prints, run in this process, which has loaded what most of them import.

    The script collects no garbage before its measurements: the times are of no use here.
    """
    shown = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(shown):
        for name in NAMES & sys.modules.keys():
            patch.delitem(sys.modules, name)
        outside = [path for path in sys.path if not Path(path).is_relative_to(TESTS)]
        patch.setattr(sys, "path", outside)
        patch.setattr(sys, "argv", [str(script), *options])
        patch.setattr(gc, "collect", lambda generation=2: 0)
        patch.syspath_prepend(str(script.parent))
        try:
            runpy.run_path(str(script), run_name="__main__")
        finally:
            for name in NAMES & sys.modules.keys():
                del sys.modules[name]
    return shown.getvalue()


def printed_alone(script: Path, *options: str) -> str:
    """The same in a process of its own, for scripts that measure their process."""
    command = [sys.executable, str(script), *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment
    ).stdout
