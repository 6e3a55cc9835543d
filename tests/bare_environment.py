"""An environment that has the package, built as a wheel, with its required dependencies alone.

Nothing is downloaded: the wheel is built from the extension modules of this checkout, and the
dependencies are those installed here, linked into the new environment.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and its exit status."""

    status: int
    out: str
    errors: str


@dataclass(frozen=True)
class BareEnvironment:
    """A virtual environment without pip, extras and tools."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(
        self, arguments: Sequence[str], folder: Path, more: Mapping[str, str] | None = None
    ) -> Outcome:
        """Start a program of the environment in a folder, as a user does."""
        kept = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR"}
        environment = {name: value for name, value in os.environ.items() if name in kept}
        environment |= {"COLUMNS": "80", "PYTHONPYCACHEPREFIX": str(self.folder / "cache")}
        done = subprocess.run(
            arguments,
            cwd=folder,
            env=environment | (more or {}),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def spaseq(self, *arguments: str, folder: Path) -> Outcome:
        """Start the installed command."""
        return self.run([str(self.folder / "bin" / "spaseq"), *arguments], folder)

    def each(self, commands: Iterable[Sequence[str]], folder: Path) -> list[Outcome]:
        """Call the command line once for each command, all in one process of the environment."""
        lines = self.run([str(self.python), "-c", _CALLS, json.dumps(list(commands))], folder)
        assert lines.status == 0, lines.errors
        return [Outcome(**json.loads(line)) for line in lines.out.splitlines()]


_CALLS = """
import contextlib, io, json, os, sys, tempfile, traceback
from spaseq.cli import main
for command in json.loads(sys.argv[1]):
    kept = os.dup(1), os.dup(2)
    files = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
    for number, file in zip((1, 2), files):
        os.dup2(file.fileno(), number)
    try:
        status = main(command)
    except BaseException:
        status = -1
        traceback.print_exc()
    sys.stdout.flush(); sys.stderr.flush()
    for number, before in zip((1, 2), kept):
        os.dup2(before, number)
    texts = []
    for file in files:
        file.seek(0)
        texts.append(file.read())
    print(json.dumps({"status": status, "out": texts[0], "errors": texts[1]}), flush=True)
"""


def required(name: str) -> list[Distribution]:
    """The distributions that a package requires without extras, and those that they require."""
    found: dict[str, Distribution] = {}
    waiting = [name]
    while waiting:
        for line in distribution(waiting.pop()).requires or ():
            other = re.split(r"[^\w.-]", line, maxsplit=1)[0].lower().replace("_", "-")
            if "extra ==" in line or other in found:
                continue
            try:
                found[other] = distribution(other)
            except PackageNotFoundError:
                continue  # for another platform or version of Python
            waiting.append(other)
    return list(found.values())


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout, with its extension modules as they are."""
    environment = os.environ | {"SPASEQ_BUILD": "none"}
    built, output = folder / "lib", folder / "wheels"
    setup = [sys.executable, "setup.py", "--quiet"]
    egg = ["egg_info", "--egg-base", str(folder)]
    subprocess.run(
        [*setup, *egg, "build_py", "--build-lib", str(built)],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
    )
    for module in (ROOT / "spaseq").rglob("*.so"):
        shutil.copy2(module, built / module.relative_to(ROOT))
    build = ["build", "--build-lib", str(built), "--build-base", str(folder / "base")]
    pack = ["bdist_wheel", "--skip-build", "--dist-dir", str(output)]
    subprocess.run(
        [*setup, *egg, *build, *pack, "--bdist-dir", str(folder / "bdist")],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
    )
    (wheel,) = output.iterdir()
    return wheel


def make_environment(folder: Path) -> BareEnvironment:
    """Build the wheel and install it beside the required dependencies alone."""
    made = BareEnvironment(folder / "environment")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(made.folder)],
        check=True,
        capture_output=True,
    )
    (packages,) = (made.folder / "lib").glob("python*/site-packages")
    for dist in required("spaseq"):
        for top in {Path(file).parts[0] for file in dist.files or ()} - {"..", "__pycache__"}:
            source = Path(str(dist.locate_file(top)))
            if source.exists() and not (packages / top).exists():
                (packages / top).symlink_to(source)
    wheel = build_wheel(folder)
    pip = [sys.executable, "-m", "pip", "--python", str(made.python), "install", "--quiet"]
    subprocess.run(
        [*pip, "--no-deps", "--no-index", "--no-compile", str(wheel)],
        check=True,
        capture_output=True,
    )
    return made
