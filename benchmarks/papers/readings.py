"""Published data: readings of one value of many keys, and sequences over them.

The data sets are below the folder that SPASEQ_DATA names. Queries are counted twice: by the engine,
and by functions here that share no code with it.
"""

from __future__ import annotations

import csv
import gzip
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import feeds
from feeds import EX, Feed
from figure import LeftOut, Line

TIME = "http://www.w3.org/ns/prov#generatedAtTime"
XSD = "http://www.w3.org/2001/XMLSchema#"

Reading = tuple[float, str, float]
"""(seconds since 1970, key, value)"""

Test = Callable[[float, Sequence[float]], bool]
"""Whether a value can follow those of the steps before."""


@dataclass(frozen=True, slots=True)
class Published:
    """A data set below SPASEQ_DATA.

    Args:
        name: Of the stream, too.
        file: Comma-separated with a header, packed by gzip.
        reading: A row as a reading; None: the row is left out.
        changes: Leave out readings that repeat the value before of their key.
    """

    name: str
    file: str
    reading: Callable[[Mapping[str, str]], Reading | None]
    changes: bool = False

    def readings(self, most: int) -> list[Reading]:
        """The first so many, without those that go back in time.

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
            return list(islice(self._ordered(csv.DictReader(text)), most))

    def _ordered(self, rows: Iterable[Mapping[str, str]]) -> Iterator[Reading]:
        last, values = float("-inf"), dict[str, float]()
        for reading in map(self.reading, rows):
            if reading is None or reading[0] < last:
                continue
            last, key, value = reading
            if not self.changes or values.get(key) != value:
                values[key] = value
                yield reading


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def _segment(row: Mapping[str, str]) -> Reading | None:
    """A speed of 0 is no reading (the README of the data says so)."""
    speed = int(row["avgSpeed"])
    return (_seconds(row["TIMESTAMP"]), row["REPORT_ID"], speed) if speed else None


MAY = _seconds("2012-05-01")
"""The weather of the house begins here, the power earlier."""
GENERATED = _seconds("2011-10-01")
"""The generation is of another year; it is moved to the same one."""


def _power(row: Mapping[str, str]) -> Reading | None:
    time = float(row["TimestampLocal"])
    return (time, "homeC", float(row["MeanWatts"])) if time >= MAY else None


def _panel(row: Mapping[str, str]) -> Reading | None:
    """One of the twelve readings of a minute."""
    time = float(row["TimestampUTC"])
    return (time - GENERATED + MAY, "homeC", float(row["Panel1mAmps"])) if time % 60 < 5 else None


STOCKS = Published(
    "stocks",
    "stocks/taq_multi_trades_2014-09-17.csv.gz",
    lambda row: (_seconds(row["DT"]), row["SYMBOL"], float(row["PRICE"])),
    changes=True,
)
CARDS = Published(
    "cards",
    "cards/fraud_handbook_2018-04-01_2018-05-31.csv.gz",
    lambda row: (_seconds(row["TX_DATETIME"]), row["CUSTOMER_ID"], float(row["TX_AMOUNT"])),
)
POWER = Published("power", "smarthome/homeC-power-1min-mean_2012-04-15_2012-07-05.csv.gz", _power)
WIND = Published(
    "weather",
    "smarthome/homeC-environmental.csv.gz",
    lambda row: (float(row["TimestampLocal"]), "homeC", float(row["windspeed"])),
)
PANEL = Published(
    "generation", "smarthome/homeC-generation-5s_2011-10-01_2011-10-31.csv.gz", _panel
)
TRAFFIC = Published("traffic", "traffic/traffic_all449_2014-08-11_2014-08-13.csv.gz", _segment)


def stream_of(name: str) -> str:
    """The IRI of a stream of readings."""
    return f"{EX}{name}"


@contextmanager
def written(streams: Mapping[str, Sequence[Reading]]) -> Iterator[list[Feed]]:
    """Readings of each stream as N-Quads: `:KEY :value VALUE` in a graph with a time."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found = []
        for name, readings in streams.items():
            path = folder / f"{name}.nq"
            with path.open("w", encoding="utf-8") as out:
                for number, reading in enumerate(readings):
                    out.write(_quads(f"<{EX}{name}/{number}>", reading))
            found.append(Feed(stream_of(name), path, len(readings)))
        yield found


def _quads(graph: str, reading: Reading) -> str:
    seconds, key, value = reading
    instant = datetime.fromtimestamp(seconds, UTC).isoformat()
    return (
        f'{graph} <{TIME}> "{instant}"^^<{XSD}dateTime> .\n'
        f'<{EX}{key}> <{EX}value> "{value:.4f}"^^<{XSD}decimal> {graph} .\n'
    )


# ------------------------------------------------------------------ sequences of one key

OPERATORS = {"skip till next": ";", "strict": ","}
"""The selection strategies, by their operators."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Readings of one key that follow each other.

    Args:
        steps: For each step a condition over ?v1, ?v2, …, which may be empty, and the same in
            Python.
    """

    name: str
    data: Published
    steps: Sequence[tuple[str, Test]]

    def query(self, operator: str, minutes: float) -> str:
        """Strict contiguity is that of the readings of one key."""
        patterns = {
            f"V{number}": f"?key :value ?v{number}" + f" FILTER({condition})" * bool(condition)
            for number, (condition, _) in enumerate(self.steps, 1)
        }
        defined = " ".join(f"DEFINE GPM {gpm} ON s {{ {text} }}" for gpm, text in patterns.items())
        return (
            f"PREFIX : <{EX}> SELECT * WITHIN {minutes:g} MINUTES PARTITION BY (?key) "
            f"FROM STREAM s <{stream_of(self.data.name)}> "
            f"WHERE {{ SEQ({f' {operator} '.join(patterns)}) {defined} }}"
        )

    def count(self, readings: Sequence[Reading], operator: str, minutes: float) -> int:
        """The matches: from each reading that passes the first test there is at most one."""
        by_key: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for time, key, number in readings:
            by_key[key].append((round(1e6 * time), round(number, 4)))
        return sum(
            self._is_matched(some, start, operator, round(60e6 * minutes))
            for some in by_key.values()
            for start in range(len(some))
        )

    def _is_matched(
        self, some: Sequence[tuple[int, float]], start: int, operator: str, window: int
    ) -> bool:
        chain: list[float] = []
        for place in range(start, len(some)):
            time, number = some[place]
            if time > some[start][0] + window:
                return False
            if self.steps[len(chain)][1](number, chain):
                chain.append(number)
                if len(chain) == len(self.steps):
                    return True
            elif operator == "," or not chain:
                return False
        return False


def lines(
    chains: Sequence[Chain], minutes: Sequence[float], events: int, passes: int
) -> list[Line]:
    """The rates of each chain under both strategies, by the window.

    Raises:
        LeftOut: if the data is not there.
        SystemExit: if a number of matches is not that of the count.
    """
    found = []
    for chain in chains:
        readings = chain.data.readings(events)
        for name, operator in OPERATORS.items():
            queries = {size: chain.query(operator, size) for size in minutes}
            with written({chain.data.name: readings}) as streams:
                points = feeds.rates(queries, streams, passes)
            for point in points:
                expected = chain.count(readings, operator, point.x)
                if point.counts["matches"] != expected:
                    raise SystemExit(
                        f"{chain.name}, {name}, {point.x:g} minutes: "
                        f"{point.counts['matches']} matches, not {expected}"
                    )
            found.append(Line(f"{chain.name}, {name}", points))
    return found
