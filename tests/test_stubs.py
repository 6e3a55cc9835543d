"""The stubs of the compiled modules name what the modules contain, by mypy's stubtest.

Whether their types are right is for mypy to say (test_typing.py). stubtest compares the names, and
the parameters of functions as far as Cython reports them. It also reports properties that every
extension type of Cython has; the test ignores these.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
STUBS = sorted((ROOT / "spaseq").rglob("*.pyi"))

OF_CYTHON = re.compile(
    r"cannot be subclassed at runtime|is a disjoint base at runtime"
    r"|\.__init__ is inconsistent, runtime does not have parameter"  # arguments of __cinit__
)
ALIASES = {
    "spaseq.engine.native._push.Method",
    "spaseq.engine.native._push.T",
    "spaseq.nfa.native._selection.StepOf",
    "spaseq.nfa.native._selection.Steps",
    "spaseq.nfa.native._automaton.Fields",
    "spaseq.nfa.native._automaton.Label",
    "spaseq.nfa.native._automaton.Weights",
}
"""Names of types for the annotations alone."""


CONFIGURATION = """
[mypy]
python_version = 3.11
# Names and parameters need no types from elsewhere, and reading those is most of the cost.
follow_imports = skip
ignore_missing_imports = True
"""


def test_the_stubs_agree_with_the_compiled_modules(tmp_path: Path) -> None:
    (tmp_path / "mypy.ini").write_text(CONFIGURATION)
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in STUBS]
    command = [sys.executable, "-m", "mypy.stubtest", "--concise", "--ignore-missing-stub"]
    command += ["--mypy-config-file", str(tmp_path / "mypy.ini"), *modules]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    reported = [line for line in done.stdout.splitlines() if not OF_CYTHON.search(line)]
    expected = {f"{name} is not present at runtime" for name in ALIASES}
    assert not done.stderr
    assert set(reported) == expected
