"""The benchmarks run, on a small size, and count the matches that the reference finds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from oracle import evaluate

from spaseq.generate import write
from spaseq.io.source import Source

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks" / "query"
MICRO = ROOT / "benchmarks" / "micro"
KB = ROOT / "benchmarks" / "kb"


def test_three_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    import three_steps

    result = subprocess.run(
        [sys.executable, str(FOLDER / "three_steps.py"), "--events", "400"],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = re.search(r"^reading and matching .* (\d+)$", result.stdout, re.MULTILINE)
    assert shown
    trades = write("stock", 400, 1, tmp_path)[0]
    events = list(Source(three_steps.STREAM, [str(trades)]))
    query = three_steps.QUERY.replace("?many", "500")
    assert int(shown[1]) == len(evaluate(query, {three_steps.STREAM: events})) > 0
    assert len(result.stdout.splitlines()[-1].split(":")[1].split()) == three_steps.SAMPLES


def test_read_nquads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    result = subprocess.run(
        [sys.executable, str(MICRO / "read_nquads.py"), "--quads", "4000", "--repeats", "2"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.startswith("4,000 quads of 500 events")
    rows = result.stdout.splitlines()[2:]
    assert len(rows) >= 3
    assert all(row.endswith("4,000      500") for row in rows)


def test_match_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(MICRO))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    import match_events

    result = subprocess.run(
        [
            *(sys.executable, str(MICRO / "match_events.py")),
            *("--events", "300", "--sample", "20", "--repeat", "1"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    high = [
        sum(float(o.value) > 20 for _, p, o in event if p.value.endswith("/price"))
        for event in match_events.trades(300, 1)
    ]
    shown = result.stdout.splitlines()
    assert shown[0] == f"trades: 300 events of 7 triples, {sum(high)} solutions"
    assert [line.split()[-1] for line in shown[2:5]] == [
        str(sum(high)),
        *[str(sum(high[:20]))] * 2,
    ]
    if "SPASEQ_DATA" not in os.environ:
        assert shown[5:] == ["weather: left out, SPASEQ_DATA is not set"]
    else:
        assert len(shown) == 10


def test_window_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    result = subprocess.run(
        [
            *(sys.executable, str(MICRO / "window_memory.py")),
            *("--iris", "30000", "--per-event", "5"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = result.stdout.splitlines()
    assert shown[0] == "30,000 IRIs in 6,000 events, a window of 600 of them"
    samples = [line.split() for line in shown[2:-1]]
    assert [sample[0] for sample in samples] == [f"{n * 600:,}" for n in range(1, 11)]
    live = [int(sample[1].replace(",", "")) for sample in samples]
    # 3,000 IRIs are in the window at any time, and at most half as many more wait to go.
    assert all(3_000 <= count <= 5_000 for count in live)
    assert shown[-1].startswith("30,000 rows, ")


def test_entailment(monkeypatch: pytest.MonkeyPatch) -> None:
    """All ways find as many matches, and some."""
    monkeypatch.syspath_prepend(str(KB))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    import entailment

    result = subprocess.run(
        [
            *(sys.executable, str(KB / "entailment.py")),
            *("--events", "5000", "--classes", "50", "--repeat", "1"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = result.stdout.splitlines()[2:]
    assert [row.split("  ")[0] for row in rows] == [
        "no entailment",
        "entailed",
        "told outright",
        "all types in the file",
        "materialised by hand",
    ]
    (found,) = {int(row.split()[-1]) for row in rows}
    assert found > 0
    assert entailment.above(49) == ["C49", "C4", "Root"]


def test_remote_kb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    result = subprocess.run(
        [
            *(sys.executable, str(KB / "remote.py"), "--keys", "60", "--delay", "1"),
            *("--sample", "20", "--repeat", "1"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split() for line in result.stdout.splitlines()[2:]]
    assert rows[0][-2:] == ["20", "20"]
    assert int(rows[1][-2]) <= 3
    assert rows[1][-1] == "60"


def test_local_kb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    result = subprocess.run(
        [
            *(sys.executable, str(KB / "local.py"), "--events", "300", "--triples", "500"),
            *("2000", "--sample", "10", "--repeat", "1"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = result.stdout.splitlines()
    assert [line.split(":")[0] for line in (shown[0], shown[6])] == ["stock", "cards"]
    for block in (shown[2:5], shown[8:11]):
        rows = {line.split()[-1] for line in block}
        assert len(rows) == 1
        assert 0 < int(rows.pop()) <= 300


def test_partitioned_on_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed (pip install .[dev])")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    result = subprocess.run(
        [
            *(sys.executable, str(ROOT / "benchmarks" / "spark" / "partitioned.py")),
            *("--events", "3000", "--keys", "40", "--query", "negation"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = [line.split() for line in result.stdout.splitlines()[2:4]]
    assert shown[0][-1] == shown[1][-1]
    assert int(shown[0][-1].replace(",", "")) > 10
