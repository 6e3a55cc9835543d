"""Generated trades in a file, and the rate of a query from the file to its matches."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from pathlib import Path
from time import process_time

from figure import Point

import spaseq
from spaseq.generate import write
from spaseq.io.source import Source
from spaseq.pipeline import matches

STREAM = "http://example.org/stock/trades"
SEED = 1
HEAD = f"PREFIX stock: <http://w3id.org/spaseq/stock#> SELECT * FROM STREAM trades <{STREAM}> "


def generated(folder: str, events: int) -> Path:
    """A file of trades; each has a price and a number of shares."""
    return write("stock", events, SEED, Path(folder))[0]


def query(sequence: str, patterns: Mapping[str, str], minutes: int) -> str:
    """A query over the trades, with the window in minutes."""
    defined = " ".join(f"DEFINE GPM {gpm} ON trades {{ {text} }}" for gpm, text in patterns.items())
    return f"{HEAD} WITHIN {minutes} MINUTES WHERE {{ SEQ({sequence}) {defined} }}"


def rates(queries: Mapping[float, str], path: Path, events: int, passes: int) -> list[Point]:
    """Events per second of the processor, with reading; the passes are interleaved."""
    programs = {x: spaseq.compile(text) for x, text in queries.items()}
    points = {x: Point(x, []) for x in queries}
    for _ in range(passes):
        for x, program in programs.items():
            run = program.start()
            gc.collect()
            started = process_time()
            source = Source(STREAM, [str(path)], relevance=run.relevance)
            found = sum(1 for _ in matches(run, source))
            points[x].values.append(events / (process_time() - started))
            points[x].counts = {"events": events, "matches": found}
    return list(points.values())
