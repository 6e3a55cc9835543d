"""Streaming queries on Spark: as the engine alone, also when the driver is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from streaming_driver import LATENESS, QUERY, STREAM

import spaseq
from spaseq.errors import SpaseqError
from spaseq.spark import SingleTaskWarning, match_stream

DRIVER = Path(__file__).with_name("streaming_driver.py")
AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
XSD = "http://www.w3.org/2001/XMLSchema#"
KILLS = int(os.environ.get("SPASEQ_KILLS", "1"))


def stamp(second: int) -> str:
    return f"2026-01-05T10:{second // 60:02}:{second % 60:02}Z"


def event(number: int, second: int, quads: str) -> str:
    name = f"<http://example.org/event/{number}>"
    text = f'{name} {AT} "{stamp(second)}"^^<{XSD}dateTime> .\n'
    return text + "".join(f"{quad} {name} .\n" for quad in quads.splitlines())


def written(folder: Path, files: int, seed: int) -> list[tuple[int, int, str]]:
    """Files of events, disordered by less than the lateness also from file to file."""
    chance = random.Random(seed)
    events = []
    for number in range(20 * files):
        key, second = f"<http://example.org/k{chance.randrange(5)}>", number * 3 // 4
        quad = f'{key} <http://example.org/value> "{chance.randrange(10)}"^^<{XSD}integer>'
        if chance.random() < 0.08:
            quad = f"{key} <http://example.org/alarm> _:x"
        events.append((number, second, quad))
    arriving = sorted(events, key=lambda e: e[1] + chance.random() * 4.9)
    folder.mkdir()
    for number in range(files):
        some = arriving[20 * number : 20 * number + 20]
        # Within a file events are in order: a file that is not would need the reader's lateness.
        text = "".join(event(*one) for one in sorted(some, key=lambda e: e[1]))
        target = folder / f"{number:03}.nq"
        target.write_text(text)
        os.utime(target, ns=(number * 10**9, number * 10**9))
    # A heartbeat far ahead lets the watermark pass everything.
    (folder / f"{files:03}.nq").write_text(event(10**6, 3000, ""))
    return events


def wanted(events: Sequence[tuple[int, int, str]]) -> Counter[str]:
    run = spaseq.compile(QUERY).start()
    found = []
    ordered = sorted(events, key=lambda e: (e[1], f"http://example.org/event/{e[0]}"))
    for number, second, quad in ordered:
        moment = spaseq.Event  # noqa: F841
        found += run.push(STREAM, _moment(second), f"{quad} .\n", name=None)
    return Counter(_shown(match.to_dict()) for match in [*found, *run.finish()])
