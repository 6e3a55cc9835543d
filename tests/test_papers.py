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
    command += ["--record", str(tmp_path / "record.json"), "--peers", "duckdb", "polars"]
    subprocess.run(
        command, check=True, capture_output=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    page = (tmp_path / "index.html").read_text("utf-8")
    record = json.loads((tmp_path / "record.json").read_text("utf-8"))["figures"]
    scripts = list(FOLDER.glob("*/*.py"))
    published = "SPASEQ_DATA" in os.environ
    assert {"duckdb", "polars"} == set(record["peers-sequences"]["lines"])
    assert len(record) == len(scripts) - (not published)
    assert ("spaseq-published" in record) == published
    for name, shown in record.items():
        assert f'id="{name}"' in page
        assert shown["answer"] in page
        picture = ElementTree.parse(tmp_path / f"{name}.svg").getroot()
        figure = json.loads((tmp_path / f"{name}.json").read_text("utf-8"))
        points = [point for line in figure["lines"] for point in line["points"]]
        shape = "rect[@height]" if figure["x"]["places"] else "circle"
        keys = len(figure["lines"]) * bool(figure["x"]["places"])
        assert len(picture.findall(f".//{{*}}{shape}")) == len(points) + keys
        assert all(point["counts"] for point in points)
    for script in scripts:
        readme = (script.parent / "README.md").read_text("utf-8")
        assert f"python benchmarks/papers/{script.relative_to(FOLDER).as_posix()}" in readme


@pytest.mark.parametrize("name", ["clauses", "windows"])
def test_the_queries_over_trades(report: ModuleType, name: str) -> None:
    """The figures' matches are those of the reference."""
    import feeds

    script = report.module_of(FOLDER / "spaseq" / f"{name}.py")
    ways = script.OPERATORS if name == "clauses" else script.SEQUENCES
    total = 0
    with feeds.trades(150) as feed:
        events = list(Source(feed.iri, [str(feed.path)]))
        for text in (script.query(3, way) for way in ways.values()):
            (point,) = feeds.rates({1.0: text}, feed, 1)
            assert point.counts["matches"] == len(evaluate(text, {feed.iri: events}))
            total += point.counts["matches"]
    assert total


@pytest.mark.parametrize("name", ["duckdb", "polars", "pyoxigraph", "siddhi", "flink", "comunica"])
def test_a_driver_answers_as_documented(report: ModuleType, name: str) -> None:
    """Every question it can ask, twice, over events that it has not seen before."""
    import counts
    import streams
    from driving import KNOWN, Driver, Unable

    steps = ["A1", "A2", "A3"]
    sizes = {"comunica": 12, "pyoxigraph": 60}
    some, keyed = streams.steps(3, sizes.get(name, 300)), streams.keyed(3, sizes.get(name, 300))
    asked = [
        ("next", 20, steps, some, counts.nearest(some, steps, 20)),
        ("all", 20, steps, some, sum(counts.endings(some, steps, 20))),
        ("key", 30, "AB", keyed, counts.joined(keyed, 30)),
    ]
    answered = 0
    try:
        with Driver(KNOWN[name]) as driver:
            for question, window, kinds, events, expected in asked:
                lines = [f"{time},{kind},{key}" for time, (kind, key, _) in enumerate(events)]
                if (name, question) == ("siddhi", "all"):
                    with pytest.raises(Unable, match="no way to ask for all"):
                        driver.ask(question, window, kinds, lines)
                    continue
                driver.ask(question, window, kinds, lines)
                for _ in range(2):
                    found, seconds = driver.run()
                    assert found == expected
                    assert seconds >= 0
                answered += 1
    except Unable as why:
        if name in ("duckdb", "polars", "pyoxigraph"):
            raise
        pytest.skip(str(why))
    assert answered == 3 - (name == "siddhi")


def test_a_driver_of_its_own_that_miscounts_is_refused(tmp_path: Path) -> None:
    driver = tmp_path / "driver.py"
    driver.write_text(
        "import sys\n"
        "for line in sys.stdin:\n"
        "    if line.startswith('question'): print('ready', flush=True)\n"
        "    elif line == 'run\\n': print(7, 0.5, flush=True)\n"
    )
    script = FOLDER / "peers" / "sequences.py"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def asked(peer: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(script), "--short", "--peers", peer]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    assert "mine, next: 7 matches where 214 are" in asked(f"mine={sys.executable} {driver}").stderr
    assert "rsp: no such peer" in asked("rsp").stderr
