"""Streams in files, and the rate of a query from the file to its matches."""

from __future__ import annotations

import csv
import gc
import gzip
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from time import process_time

from figure import LeftOut, Line, Point

import spaseq
from spaseq.generate import write
from spaseq.io.source import Source
from spaseq.pipeline import matches

TRADES = "http://example.org/stock/trades"
SEED = 1
EX = "http://example.org/"
STREAM = f"{EX}s"
TIME = "http://www.w3.org/ns/prov#generatedAtTime"
XSD = "http://www.w3.org/2001/XMLSchema#"

Reading = tuple[float, str, float]
"""(seconds since 1970, key, value)"""


@dataclass(frozen=True, slots=True)
class Feed:
    """A stream in a file."""

    iri: str
    path: Path
    events: int


@contextmanager
def trades(events: int) -> Iterator[Feed]:
    """Generated trades; each has a price and a number of shares."""
    with tempfile.TemporaryDirectory() as folder:
        yield Feed(TRADES, write("stock", events, SEED, Path(folder))[0], events)


def of_trades(sequence: str, patterns: Mapping[str, str], minutes: int) -> str:
    """A query over the trades, with the window in minutes."""
    head = f"PREFIX stock: <http://w3id.org/spaseq/stock#> SELECT * FROM STREAM s <{TRADES}>"
    return f"{head} WITHIN {minutes} MINUTES WHERE {{ SEQ({sequence}) {_defined(patterns)} }}"


def of_readings(sequence: str, patterns: Mapping[str, str], window: str) -> str:
    """A query over published readings."""
    head = f"PREFIX : <{EX}> SELECT * FROM STREAM s <{STREAM}> WITHIN {window}"
    return f"{head} WHERE {{ SEQ({sequence}) {_defined(patterns)} }}"


def _defined(patterns: Mapping[str, str]) -> str:
    return " ".join(f"DEFINE GPM {gpm} ON s {{ {text} }}" for gpm, text in patterns.items())


def lines(ways: Mapping[str, Mapping[float, str]], feed: Feed, passes: int) -> list[Line]:
    """A line of rates for each way to ask."""
    return [Line(name, rates(queries, feed, passes)) for name, queries in ways.items()]


def rates(queries: Mapping[float, str], feed: Feed, passes: int) -> list[Point]:
    """Events per second of the processor, with reading; the passes are interleaved."""
    programs = {x: spaseq.compile(text) for x, text in queries.items()}
    points = {x: Point(x, []) for x in queries}
    for _ in range(passes):
        for x, program in programs.items():
            run = program.start()
            gc.collect()
            started = process_time()
            source = Source(feed.iri, [str(feed.path)], relevance=run.relevance)
            found = sum(1 for _ in matches(run, source))
            points[x].values.append(feed.events / (process_time() - started))
            points[x].counts = {"events": feed.events, "matches": found}
    return list(points.values())


# ------------------------------------------------------------------ published data


@dataclass(frozen=True, slots=True)
class Published:
    """A data set below SPASEQ_DATA, as readings of one value of many keys.

    Args:
        file: Comma-separated with a header, packed by gzip.
        reading: A row as a reading; None: the row is left out.
    """

    name: str
    file: str
    reading: Callable[[Mapping[str, str]], Reading | None]

    def readings(self, most: int) -> list[Reading]:
        """The first so many.

        Raises:
            LeftOut: if the data is not there.
        """
        folder = os.environ.get("SPASEQ_DATA")
        if not folder:
            raise LeftOut("SPASEQ_DATA is not set")
        path = Path(folder, self.file)
        if not path.is_file():
            raise LeftOut(f"there is no {path}")
        with gzip.open(path, "rt", encoding="utf-8") as text:
            found = (self.reading(row) for row in csv.DictReader(text))
            return list(islice((one for one in found if one is not None), most))


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def _segment(row: Mapping[str, str]) -> Reading | None:
    """A speed of 0 is no reading (the README of the data says so)."""
    speed = int(row["avgSpeed"])
    return (_seconds(row["TIMESTAMP"]), row["REPORT_ID"], speed) if speed else None


STOCKS = Published(
    "stocks",
    "stocks/taq_multi_trades_2014-09-17.csv.gz",
    lambda row: (_seconds(row["DT"]), row["SYMBOL"], float(row["PRICE"])),
)
CARDS = Published(
    "cards",
    "cards/fraud_handbook_2018-04-01_2018-05-31.csv.gz",
    lambda row: (_seconds(row["TX_DATETIME"]), row["CUSTOMER_ID"], float(row["TX_AMOUNT"])),
)
HOME = Published(
    "smart home",
    "smarthome/homeC-power-1min-mean_2012-04-15_2012-07-05.csv.gz",
    lambda row: (float(row["TimestampLocal"]), "homeC", float(row["MeanWatts"])),
)
TRAFFIC = Published("traffic", "traffic/traffic_all449_2014-08-11_2014-08-13.csv.gz", _segment)


@contextmanager
def written(readings: Sequence[Reading]) -> Iterator[Feed]:
    """Readings as N-Quads: `:KEY :value VALUE` in a graph with a time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "readings.nq")
        with path.open("w", encoding="utf-8") as out:
            for number, (seconds, key, value) in enumerate(readings):
                graph = f"<{EX}e/{number}>"
                instant = datetime.fromtimestamp(seconds, UTC).isoformat()
                out.write(
                    f'{graph} <{TIME}> "{instant}"^^<{XSD}dateTime> .\n'
                    f'<{EX}{key}> <{EX}value> "{value:.4f}"^^<{XSD}decimal> {graph} .\n'
                )
        yield Feed(STREAM, path, len(readings))
