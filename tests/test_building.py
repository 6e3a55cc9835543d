"""On Windows, setup.py compiles with clang-cl, and links its runtime library."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from setuptools import Extension

SETUP = Path(__file__).parent.parent / "setup.py"


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
