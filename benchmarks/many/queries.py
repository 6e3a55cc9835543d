"""Many queries, and several streams, in one run: events per second against those of one query.

The events of a stream are spread over `kinds` predicates. A query reads one predicate, so it needs
one event in `kinds`. `read` is the whole path from a file of N-Quads to matches, as in `spaseq
run`; `encoded` starts from batches that a reader has encoded before. All queries of a run are
different, except in the row of identical ones. Queries with a sensor each, a band of values each,
or thresholds differ only in constants of their filters; a next-threshold also decides which event
is the next one. Queries with a common prefix differ in their last steps. `--check` compares each
number of matches with separate runs of the queries (for small sizes). Times are processor times and
include the creation of the matches. Passes of the rows are interleaved, and a ratio is the median
of the ratios of neighbouring passes.

    python benchmarks/many/queries.py --events 200000 --repeat 5
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

import pyoxigraph as ox

import spaseq
from spaseq.io.merge import merge, merged_batches
from spaseq.io.source import Source
from spaseq.pipeline import matches
from spaseq.rdf.native._terms import EventBatch, EventSequence

EX = "http://example.org/"
BATCH = 256
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
GENERATED = "http://www.w3.org/ns/prov#generatedAtTime"


@dataclass(frozen=True)
class Reading:
    """One event: its number, its stream, its kind, a sensor and a value."""

    number: int
    stream: str
    kind: int
    sensor: int
    value: int


def readings(
    events: int,
    kinds: int,
    streams: Sequence[str],
    seed: int,
    sensors: int = 20,
    values: int = 100,
) -> list[Reading]:
    chance = random.Random(seed)
    return [
        Reading(
            number,
            streams[number % len(streams)],
            chance.randrange(kinds),
            chance.randrange(sensors),
            chance.randrange(values),
        )
        for number in range(events)
    ]


def query(kind: int, least: int = 90, streams: Sequence[str] = ("s",)) -> str:
    """A high value of a sensor, then the next value of it that is higher yet."""
    sources = " ".join(f"FROM STREAM {name} :{name}" for name in streams)
    on = ", ".join(streams)
    return (
        f"PREFIX : <{EX}> SELECT ?x ?v ?w WITHIN 1000 SECONDS {sources} WHERE {{ SEQ(A ; B) "
        f"DEFINE GPM A ON {on} {{ ?x :p{kind} ?v FILTER(?v > {least}) }} "
        f"DEFINE GPM B ON {on} {{ ?x :p{kind} ?w FILTER(?w > ?v) }} }}"
    )


def of_sensor(sensor: int, half: int) -> str:
    """A value of one sensor above `half`, then its next value that is higher yet."""
    this = f"?x = :x{sensor}"
    return (
        f"PREFIX : <{EX}> SELECT ?x ?v ?w WITHIN 1000 SECONDS FROM STREAM s :s WHERE {{ SEQ(A ; B) "
        f"DEFINE GPM A ON s {{ ?x :p0 ?v FILTER({this} && ?v > {half}) }} "
        f"DEFINE GPM B ON s {{ ?x :p0 ?w FILTER({this} && ?w > ?v) }} }}"
    )


def of_band(band: int) -> str:
    """Two successive values in a band of a hundred, the second one higher."""
    least, most = 100 * band, 100 * band + 99
    return (
        f"PREFIX : <{EX}> SELECT ?v ?w WITHIN 1000 SECONDS FROM STREAM s :s WHERE {{ SEQ(A ; B) "
        f"DEFINE GPM A ON s {{ ?x :p0 ?v FILTER(?v >= {least} && ?v <= {most}) }} "
        f"DEFINE GPM B ON s {{ ?y :p0 ?w FILTER(?w >= {least} && ?w <= {most} && ?w > ?v) }} }}"
    )


def above(least: int, columns: str = "?x ?v ?w") -> str:
    """A value above a threshold, then the next value of the sensor that is higher yet."""
    return (
        f"PREFIX : <{EX}> SELECT {columns} WITHIN 1000 SECONDS FROM STREAM s :s WHERE {{ "
        f"SEQ(A ; B) DEFINE GPM A ON s {{ ?x :p0 ?v FILTER(?v > {least}) }} "
        f"DEFINE GPM B ON s {{ ?x :p0 ?w FILTER(?w > ?v) }} }}"
    )


def followed(least: int) -> str:
    """A value of a sensor, then the next value of another kind above a threshold."""
    return (
        f"PREFIX : <{EX}> SELECT ?v ?w WITHIN 1000 SECONDS FROM STREAM s :s WHERE {{ SEQ(A ; B) "
        f"DEFINE GPM A ON s {{ ?x :p0 ?v }} "
        f"DEFINE GPM B ON s {{ ?x :p1 ?w FILTER(?w > {least}) }} }}"
    )


def with_end(kind: int) -> str:
    """A high value of a sensor, then one of another kind that is higher yet, then a rare kind."""
    return (
        f"PREFIX : <{EX}> SELECT ?x ?v ?w ?u WITHIN 1000 SECONDS FROM STREAM s :s WHERE {{ "
        f"SEQ(A ; B ; C) DEFINE GPM A ON s {{ ?x :p0 ?v FILTER(?v > 50) }} "
        f"DEFINE GPM B ON s {{ ?x :p1 ?w FILTER(?w > ?v) }} "
        f"DEFINE GPM C ON s {{ ?x :p{kind} ?u }} }}"
    )


def rarely(events: int, seed: int, ends: int) -> list[Reading]:
    """Readings of which one in five is of the first two kinds, and the others of many more."""
    chance = random.Random(seed)
    return [
        Reading(
            number,
            "s",
            chance.choice((0, 1)) if chance.random() < 0.2 else 2 + chance.randrange(ends),
            chance.randrange(20),
            chance.randrange(100),
        )
        for number in range(events)
    ]


@dataclass
class Row:
    """A run: its queries, and the events as files or as batches."""

    title: str
    queries: Sequence[str]
    events: Sequence[Reading]
    streams: Sequence[str] = ("s",)
    base: str = ""
    program: spaseq.Program = field(init=False)
    paths: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    found: int = -1
    compiling: float = 0.0
    starting: float = 0.0

    def prepare(self, folder: Path) -> None:
        started = process_time()
        self.program = spaseq.compile(self.queries)
        self.compiling = process_time() - started
        started = process_time()
        self.program.start()
        self.starting = process_time() - started
        for name in self.streams:
            path = folder / f"{len(list(folder.iterdir()))}.nq"
            with path.open("w", encoding="utf-8") as lines:
                lines.writelines(map(written, (e for e in self.events if e.stream == name)))
            self.paths[name] = str(path)

    def encoded(self) -> float:
        """The seconds of the run over batches that are encoded before."""
        run = self.program.start()
        batches = list(sequences(run, self.events, self.streams))
        return self._timed("encoded", lambda: sum(1 for b in batches for _ in run.push_batch(b)))

    def read(self) -> float:
        """The seconds of the run from files."""
        run = self.program.start()
        sources = [
            Source(EX + name, [self.paths[name]], number=number, relevance=run.relevance)
            for number, name in enumerate(self.streams)
        ]
        return self._timed("read", lambda: sum(1 for _ in matches(run, merge(sources))))

    def _timed(self, way: str, work: Callable[[], int]) -> float:
        gc.collect()
        started = process_time()
        found = work()
        seconds = process_time() - started
        self.seconds.setdefault(way, []).append(seconds)
        if self.found not in (-1, found):
            raise SystemExit(f"{self.title}: {found} matches {way}, {self.found} before")
        self.found = found
        return seconds


def written(event: Reading) -> str:
    graph = f"<{EX}e/{event.stream}{event.number}>"
    return (
        f'{graph} <{GENERATED}> "{event.number}"^^<{INTEGER}> .\n'
        f'<{EX}x{event.sensor}> <{EX}p{event.kind}> "{event.value}"^^<{INTEGER}> {graph} .\n'
    )


def sequences(
    run: spaseq.Run, events: Sequence[Reading], streams: Sequence[str]
) -> Iterable[EventBatch | EventSequence]:
    """The events in encoded batches, merged if there are several streams."""
    batches: dict[str, list[EventBatch]] = {name: [] for name in streams}
    terms: dict[str, ox.NamedNode] = {}

    def named(name: str) -> ox.NamedNode:
        return terms.setdefault(name, ox.NamedNode(EX + name))

    for event in events:
        some = batches[event.stream]
        if not some or len(some[-1]) == BATCH:
            some.append(EventBatch(run.rows.matchers.dictionary, EX + event.stream))
        fact = named(f"x{event.sensor}"), named(f"p{event.kind}"), ox.Literal(event.value)
        some[-1].add([fact], event.number * 1_000_000, stamp=ox.Literal(event.number))
    if len(streams) == 1:
        return batches[streams[0]]
    return merged_batches(batches.values())


def rows(events: int, seed: int, count: int) -> list[Row]:
    """The runs; those of many queries have `count` of them."""
    tens = readings(events, 10, ("s",), seed)
    many = readings(events, count, ("s",), seed)
    pairs = readings(events, 10, ("s", "r"), seed)
    spread = readings(events, 1, ("s",), seed, sensors=count, values=100 * count)
    rare = rarely(events, seed, count)
    half, least = 50 * count, 90 * count
    rising = readings(events, 10, ("s",), seed, values=1_000 * count)
    return [
        Row("1 query, wants 1 event in 10", [query(0)], tens),
        Row(
            "10 queries, each wants 1 in 10", [query(n) for n in range(10)], tens, base="1 query, w"
        ),
        Row(f"1 query of these, wants 1 in {count:,}", [query(0)], many),
        Row(
            f"{count:,} queries, each wants 1 in {count:,}",
            [query(n) for n in range(count)],
            many,
            base="1 query of these",
        ),
        Row("1 query, few matches", [query(0, 96)], tens),
        Row(f"{count:,} queries equal to it", [query(0, 96)] * count, tens, base="1 query, few"),
        Row("1 query of one sensor", [of_sensor(0, half)], spread),
        Row(
            f"{count:,} queries of a sensor each",
            [of_sensor(n, half) for n in range(count)],
            spread,
            base="1 query of one sensor",
        ),
        Row("1 query of a band of values", [of_band(0)], spread),
        Row(
            f"{count:,} queries of a band each",
            [of_band(n) for n in range(count)],
            spread,
            base="1 query of a band",
        ),
        Row("1 query with a threshold", [above(least)], spread),
        Row(
            "2 queries with thresholds",
            [above(least), above(95 * count)],
            spread,
            base="1 query with a t",
        ),
        Row(
            "2 queries that select others",
            [above(least), above(least, "?v")],
            spread,
            base="1 query with a t",
        ),
        Row(
            f"{count:,} queries with thresholds",
            [above(least + 10 * n) for n in range(count)],
            spread,
            base="1 query with a t",
        ),
        Row("1 query with a next-threshold", [followed(999 * count)], rising),
        Row(
            f"{count:,} queries with next-thresholds",
            [followed(999 * count + n) for n in range(count)],
            rising,
            base="1 query with a n",
        ),
        Row("1 query with a prefix", [with_end(2)], rare),
        *(
            Row(
                f"{some:,} queries with its prefix",
                [with_end(2 + n) for n in range(some)],
                rare,
                base="1 query with a p",
            )
            for some in dict.fromkeys((min(100, count), count))
        ),
        Row(
            "1 query over two streams",
            [query(0, streams=("s", "r"))],
            pairs,
            ("s", "r"),
            base="1 query, w",
        ),
    ]


def based(table: Sequence[Row], row: Row) -> Row | None:
    """The row that a row is compared with."""
    return next((one for one in table if row.base and one.title.startswith(row.base)), None)


def main() -> None:
    parser = argparse.ArgumentParser(description="Many queries in one run.")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--queries", type=int, default=1_000, help="how many are many")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="", help="the rows whose title has this text")
    options = parser.parse_args()
    table = rows(options.events, options.seed, options.queries)
    table = [row for row in table if options.only in row.title]
    with tempfile.TemporaryDirectory() as folder:
        for row in table:
            row.prepare(Path(folder))
        for _ in range(options.repeat):
            for row in table:
                row.encoded()
                row.read()
    if options.check:
        check(table)
    print(
        f"{options.events:,} events, seed {options.seed}, median of {options.repeat}, "
        "processor time"
    )
    print(
        f"{'':38}{'encoded/s':>12}{'min–max':>24}{'ratio':>7}{'read/s':>11}{'min–max':>21}"
        f"{'ratio':>7}{'matches':>11}{'compile s':>11}{'start s':>9}"
    )
    for row in table:
        line = f"{row.title:38}"
        for way, widths in (("encoded", (12, 24)), ("read", (11, 21))):
            seconds = row.seconds[way]
            rates = [options.events / one for one in (max(seconds), min(seconds))]
            line += f"{options.events / statistics.median(seconds):>{widths[0]},.0f}"
            line += f"{f'{rates[0]:,.0f}–{rates[1]:,.0f}':>{widths[1]}}"
            base = based(table, row)
            ratio = "" if base is None else f"{_ratio(base.seconds[way], seconds):.2f}"
            line += f"{ratio:>7}"
        print(f"{line}{row.found:>11,}{row.compiling:>11.2f}{row.starting:>9.2f}")


def _ratio(base: Sequence[float], seconds: Sequence[float]) -> float:
    """The rate as a share of that of the base, by neighbouring passes."""
    return statistics.median(b / s for b, s in zip(base, seconds, strict=True))


def check(table: Sequence[Row]) -> None:
    """Compare the numbers of matches with those of each different query in a run of its own."""
    for row in table:
        found = 0
        for text in dict.fromkeys(row.queries):
            run = spaseq.compile(text).start()
            alone = [
                match
                for event in row.events
                for match in run.push(EX + event.stream, event.number, [_triple(event)])
            ]
            found += len(alone) * row.queries.count(text)
        if found != row.found:
            raise SystemExit(f"{row.title}: {row.found} matches where {found} are expected")


def _triple(event: Reading) -> ox.Triple:
    return ox.Triple(
        ox.NamedNode(f"{EX}x{event.sensor}"),
        ox.NamedNode(f"{EX}p{event.kind}"),
        ox.Literal(event.value),
    )


if __name__ == "__main__":
    main()
