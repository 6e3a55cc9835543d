"""Streams in files, and the rate of a query from the files to its matches."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import feeding
from figure import Line, Point

import spaseq
from spaseq.generate import write
from spaseq.io.merge import merge
from spaseq.io.source import Source
from spaseq.pipeline import matches

TRADES = "http://example.org/stock/trades"
SEED = 1
EX = "http://example.org/"


@dataclass(frozen=True, slots=True)
class Feed:
    """A stream in a file."""

    iri: str
    path: Path
    events: int

    def source(self, run: spaseq.Run | None = None) -> Source:
        """Its events; for a run without the triples that the run cannot use."""
        return Source(self.iri, [str(self.path)], relevance=run and run.relevance)


@contextmanager
def trades(events: int) -> Iterator[Feed]:
    """Generated trades; each has a price and a number of shares."""
    with tempfile.TemporaryDirectory() as folder:
        yield Feed(TRADES, write("stock", events, SEED, Path(folder))[0], events)


def of_trades(sequence: str, patterns: Mapping[str, str], minutes: int) -> str:
    """A query over the trades, with the window in minutes."""
    head = f"PREFIX stock: <http://w3id.org/spaseq/stock#> SELECT * FROM STREAM s <{TRADES}>"
    defined = " ".join(f"DEFINE GPM {gpm} ON s {{ {text} }}" for gpm, text in patterns.items())
    return f"{head} WITHIN {minutes} MINUTES WHERE {{ SEQ({sequence}) {defined} }}"


def lines(ways: Mapping[str, Mapping[float, str]], feed: Feed, passes: int) -> list[Line]:
    """A line of rates for each way to ask."""
    return [Line(name, rates(queries, [feed], passes)) for name, queries in ways.items()]


def rates(queries: Mapping[float, str], streams: Sequence[Feed], passes: int) -> list[Point]:
    """Events per second of the processor, with reading; the passes are interleaved.

    The points also count how often a filter of partial matches was evaluated.
    """
    count = sum(feed.events for feed in streams)
    programs = {x: spaseq.compile(text) for x, text in queries.items()}
    points = {x: Point(x, []) for x in queries}
    for _ in range(passes):
        for x, program in programs.items():
            run = program.start()
            gc.collect()
            started = process_time()
            events = merge([feed.source(run) for feed in streams])
            found = sum(1 for _ in matches(run, events))
            points[x].values.append(count / (process_time() - started))
            points[x].counts = {
                "events": count,
                "matches": found,
                "evaluations": feeding.compiled(run).step.evaluations,
            }
    return list(points.values())
