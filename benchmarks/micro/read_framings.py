"""From files to matches: `--events subject` and `dataset` against `triples:N` and `graph`.

The events are those of `read_nquads.py`. As triples, the seven triples of an event and its
timestamp have one subject: `triples:N` and `subject` read the same N-Triples. As quads they are in
a named graph after its timestamp: `graph` reads the N-Quads in this order, `dataset` the same file,
its lines shuffled, and the TriG that pyoxigraph writes of the shuffled quads. The last row sorts on
disk. A query of two steps reads two of the predicates. The files take turns; all times are
processor times on one core, and all rows must have the same events and matches.

    python benchmarks/micro/read_framings.py --events 40000
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import pyoxigraph as ox
from read_documents import PREFIXES, QUERY, STREAM
from read_nquads import write_stream

import spaseq
from spaseq.io.read_options import Framing, ReadOptions
from spaseq.io.source import Source
from spaseq.io.time_path import GENERATED_AT
from spaseq.pipeline import matches

SMALL = 4 << 20
"""Bytes of memory in which the data set does not fit."""


@dataclass(frozen=True, slots=True)
class Row:
    """A file, read in one way."""

    title: str
    path: Path
    options: ReadOptions


def rows(folder: Path, events: int, seed: int) -> list[Row]:
    """Write the files; the first row is what the others are compared with."""
    lines = folder / "trades.nq"
    write_stream(lines, events, seed)
    quads = list(ox.parse(path=lines))
    triples = [
        ox.Triple(ox.NamedNode(s.value.replace("/graph/", "/trade/")), p, o) for s, p, o, _ in quads
    ]
    formats = ox.RdfFormat
    by_lines, turtle = folder / "trades.nt", folder / "trades.ttl"
    by_lines.write_bytes(ox.serialize(triples, format=formats.N_TRIPLES) or b"")
    turtle.write_bytes(ox.serialize(triples, format=formats.TURTLE, prefixes=PREFIXES) or b"")
    draw = random.Random(seed)
    texts = lines.read_bytes().splitlines(keepends=True)
    draw.shuffle(texts)
    shuffled, trig = folder / "shuffled.nq", folder / "shuffled.trig"
    shuffled.write_bytes(b"".join(texts))
    draw.shuffle(quads)
    trig.write_bytes(ox.serialize(quads, format=formats.TRIG, prefixes=PREFIXES) or b"")
    size = len(triples) // events
    counted = ReadOptions(Framing.parse(f"triples:{size - 1}"), time_predicate=GENERATED_AT)
    subject = ReadOptions(Framing.parse("subject"))
    data_set = ReadOptions(Framing.parse("dataset"))
    on_disk = ReadOptions(Framing.parse("dataset"), max_memory=SMALL)
    return [
        Row(f"N-Triples, triples:{size - 1}", by_lines, counted),
        Row("N-Triples, subject", by_lines, subject),
        Row("Turtle, subject", turtle, subject),
        Row("N-Quads, graph", lines, ReadOptions()),
        Row("N-Quads, dataset", lines, data_set),
        Row("N-Quads shuffled, dataset", shuffled, data_set),
        Row("TriG shuffled, dataset", trig, data_set),
        Row("N-Quads shuffled, on disk", shuffled, on_disk),
    ]


def match(row: Row, program: spaseq.Program) -> tuple[int, int]:
    """(events, matches) of a row."""
    run = program.start()
    source = Source(STREAM, [str(row.path)], row.options, relevance=run.relevance)
    found = sum(1 for _ in matches(run, source))
    return source.counters.events, found


def main() -> None:
    parser = argparse.ArgumentParser(description="From files to matches, by framing.")
    parser.add_argument("--events", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    program = spaseq.compile(QUERY)
    counts: dict[str, tuple[int, int]] = {}
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = rows(Path(folder), given.events, given.seed)
        sizes = {row.title: row.path.stat().st_size / 1e6 for row in files}
        for _ in range(given.repeats):
            for row in files:
                started = process_time()
                counts[row.title] = match(row, program)
                seconds.setdefault(row.title, []).append(process_time() - started)
    print(
        f"{given.events:,} events, seed {given.seed}, median of {given.repeats}, "
        "events in a second of the processor"
    )
    print(
        f"{'':28}{'MB':>7}{'events/s':>12}{'min-max':>22}{'x first':>9}{'events':>9}{'matches':>9}"
    )
    first = next(iter(counts))
    for title, (events, found) in counts.items():
        assert (events, found) == counts[first], f"{title}: {events} events, {found} matches"
        spent = seconds[title]
        median = statistics.median(spent)
        spread = f"{events / max(spent):,.0f}-{events / min(spent):,.0f}"
        ratio = statistics.median(seconds[first]) / median
        print(
            f"{title:28}{sizes[title]:>7.1f}{events / median:>12,.0f}{spread:>22}{ratio:>9.2f}"
            f"{events:>9,}{found:>9,}"
        )


if __name__ == "__main__":
    main()
