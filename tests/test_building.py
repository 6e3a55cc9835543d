"""The sdist has all files; on Windows, setup.py compiles with clang-cl and links its library."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from setuptools import Extension

ROOT = Path(__file__).parent.parent
SETUP = ROOT / "setup.py"


class Compiler:
    """What setup.py uses of setuptools' compiler for MSVC."""

    cc = ""

    def initialize(self) -> None:
        self.cc = "cl.exe"


@pytest.fixture
def use_clang() -> Any:
    return runpy.run_path(str(SETUP))["use_clang"]


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o700)


def test_modules_are_compiled_by_clang_and_linked_with_its_library(
    use_clang: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "clang-cl", "exit 1")
    program(tmp_path, "clang", 'echo "builtins.lib of $*"')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    compiler, module = Compiler(), Extension("a", ["a.c"], extra_link_args=["/x"])
    use_clang(compiler, [module])
    assert compiler.cc == str(tmp_path / "clang-cl")
    library = "builtins.lib of --rtlib=compiler-rt -print-libgcc-file-name"
    assert module.extra_link_args == ["/x", library]


def test_an_error_says_where_clang_comes_from(
    use_clang: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"clang-cl.*Visual Studio"):
        use_clang(Compiler(), [])


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a checkout knows its files")
def test_the_sdist_has_every_file_of_the_checkout(tmp_path: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    command = [sys.executable, str(SETUP), "-q", "egg_info", "--egg-base", str(tmp_path)]
    environment = os.environ | {"SPASEQ_BUILD": "none"}
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=environment)
    sources = (tmp_path / "spaseq.egg-info" / "SOURCES.txt").read_text("utf-8").splitlines()
    assert set(tracked.split("\0")) - {""} - set(sources) == set()
