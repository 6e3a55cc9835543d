"""The experiments of the papers on small inputs: matches, counters, pictures and the page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import ModuleType

import pytest
from oracle import evaluate

from spaseq.io.source import Source

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks" / "papers"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "automaton"))
    monkeypatch.syspath_prepend(str(FOLDER))
    import report

    return report


def test_the_page_has_every_figure(tmp_path: Path) -> None:
    """The scripts compare their matches with independent counts, and fail if one differs."""
    command = [sys.executable, str(FOLDER / "report.py"), "--short", "--output", str(tmp_path)]
    command += ["--record", str(tmp_path / "record.json")]
    subprocess.run(
        command, check=True, capture_output=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    page = (tmp_path / "index.html").read_text("utf-8")
    record = json.loads((tmp_path / "record.json").read_text("utf-8"))["figures"]
    scripts = list(FOLDER.glob("*/*.py"))
    assert len(record) == len(scripts)
    for name, shown in record.items():
        assert f'id="{name}"' in page
        assert shown["answer"] in page
        picture = ElementTree.parse(tmp_path / f"{name}.svg").getroot()
        figure = json.loads((tmp_path / f"{name}.json").read_text("utf-8"))
        points = [point for line in figure["lines"] for point in line["points"]]
        assert len(picture.findall(".//{*}circle")) == len(points)
        assert all(point["counts"] for point in points)
    for script in scripts:
        readme = (script.parent / "README.md").read_text("utf-8")
        assert f"python benchmarks/papers/{script.relative_to(FOLDER).as_posix()}" in readme


@pytest.mark.parametrize("name", ["clauses", "windows"])
def test_the_queries_over_trades(report: ModuleType, name: str, tmp_path: Path) -> None:
    """The figures' matches are those of the reference."""
    import trades

    script = report.module_of(FOLDER / "spaseq" / f"{name}.py")
    path = trades.generated(str(tmp_path), 150)
    events = list(Source(trades.STREAM, [str(path)]))
    ways = script.OPERATORS if name == "clauses" else script.SEQUENCES
    texts = [script.query(x, way) for x in (3, 10)[:1] for way in ways.values()]
    total = 0
    for text in texts:
        (point,) = trades.rates({1.0: text}, path, len(events), 1)
        assert point.counts["matches"] == len(evaluate(text, {trades.STREAM: events}))
        total += point.counts["matches"]
    assert total
