"""Run the examples with an installed package, and compare their matches with those expected.

`python .ci/demo.py` uses the `spaseq` beside the interpreter that runs it, in an environment with
nothing but the package. The checkout gives the data, but no code.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("smart-grid", "stock", "card-fraud", "congestion")


def command_of(readme: Path) -> list[str]:
    """The first command of an example's README."""
    found = re.search(r"^```sh\n(spaseq run .*?)^```$", readme.read_text("utf-8"), re.M | re.S)
    assert found, readme
    return shlex.split(found[1].replace("\\\n", " "))[1:]


def comparable(text: str) -> list[str]:
    """The matches in one order, and the triples of their graphs too."""
    matches = [json.loads(line) for line in text.splitlines()]
    for match in matches:
        if "graph" in match:
            match["graph"] = sorted(match["graph"].splitlines())
    return sorted(json.dumps(match, sort_keys=True) for match in matches)


def main() -> int:
    """The exit status: 1 if an example finds other matches."""
    # `which` adds the suffix that programs have on Windows.
    program = shutil.which("spaseq", path=sysconfig.get_path("scripts"))
    assert program is not None, "the environment has no command spaseq"
    where = [sys.executable, "-I", "-c", "import spaseq; print(spaseq.__file__)"]
    installed = Path(
        subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip()
    )
    if ROOT in installed.resolve().parents and ".venv" not in installed.parts:
        print(f"{installed} is in the checkout, not installed", file=sys.stderr)
        return 1
    for name in NAMES:
        folder = ROOT / "examples" / name
        command = [program, *command_of(folder / "README.md")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
        found = comparable(done.stdout)
        if found != comparable((folder / "expected.jsonl").read_text("utf-8")):
            print(f"{name}: other matches than expected.jsonl", file=sys.stderr)
            return 1
        print(f"{name}: {len(found)} matches, as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())
