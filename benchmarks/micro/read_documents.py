"""From files to matches: TriG against N-Quads, Turtle against N-Triples, and pyoxigraph's parser.

The stream is that of `read_nquads.py`: each event is a graph of seven quads after a timestamp.
pyoxigraph writes it as TriG, with full IRIs and with prefixes. Without graphs and
timestamps it is written as N-Triples and Turtle, and each event is seven triples. A query of two
steps reads two of the seven predicates. The files take turns; all times are processor times on
one core, and all files must have the same events and matches. pyoxigraph parses each file and
makes a Python object of each quad.

    python benchmarks/micro/read_documents.py --events 60000
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path
from time import process_time

import pyoxigraph as ox
from read_nquads import STOCK, XSD, write_stream

import spaseq
from spaseq.io.read_options import Framing, ReadOptions
from spaseq.io.source import Source
from spaseq.pipeline import matches

STREAM = "http://example.org/trades"
QUERY = f"""
PREFIX : <{STOCK}>
SELECT ?company ?p1 ?p2
WITHIN 1 MINUTE
FROM STREAM trades <{STREAM}>
WHERE {{
  SEQ(A , B)
  DEFINE GPM A ON trades {{ ?a :company ?company ; :price ?p1 FILTER(?p1 > 90.0) }}
  DEFINE GPM B ON trades {{ ?b :company ?company ; :price ?p2 FILTER(?p2 < 10.0) }}
}}
"""
PREFIXES = {"stock": STOCK, "xsd": XSD, "prov": "http://www.w3.org/ns/prov#"}
PER_EVENT = 7


def write_files(folder: Path, events: int, seed: int) -> list[tuple[str, Path]]:
    """The files, each with its title; after a line-based file, the documents with its content."""
    lines = folder / "trades.nq"
    write_stream(lines, events, seed)
    quads = list(ox.parse(path=lines))
    triples = [quad.triple for quad in quads if quad.graph_name != ox.DefaultGraph()]
    formats = ox.RdfFormat
    files = [("N-Quads", lines)]
    for title, name, data, syntax, prefixes in (
        ("TriG", "full.trig", quads, formats.TRIG, None),
        ("TriG, prefixes", "short.trig", quads, formats.TRIG, PREFIXES),
        ("N-Triples", "trades.nt", triples, formats.N_TRIPLES, None),
        ("Turtle", "full.ttl", triples, formats.TURTLE, None),
        ("Turtle, prefixes", "short.ttl", triples, formats.TURTLE, PREFIXES),
    ):
        path = folder / name
        path.write_bytes(ox.serialize(data, format=syntax, prefixes=prefixes) or b"")
        files.append((title, path))
    return files


def match(path: Path, program: spaseq.Program) -> tuple[int, int]:
    """(events, matches) of a file."""
    run = program.start()
    framing = "auto" if path.suffix in (".nq", ".trig") else f"triples:{PER_EVENT}"
    options = ReadOptions(Framing.parse(framing))
    source = Source(STREAM, [str(path)], options, relevance=run.relevance)
    found = sum(1 for _ in matches(run, source))
    return source.counters.events, found


def main() -> None:
    parser = argparse.ArgumentParser(description="From N-Quads, TriG and Turtle to matches.")
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    program = spaseq.compile(QUERY)
    counts: dict[str, tuple[int, int]] = {}
    matching: dict[str, list[float]] = {}
    parsing: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder), options.events, options.seed)
        sizes = {title: path.stat().st_size / 1e6 for title, path in files}
        for _ in range(options.repeats):
            for title, path in files:
                started = process_time()
                counts[title] = match(path, program)
                matching.setdefault(title, []).append(process_time() - started)
                started = process_time()
                for _ in ox.parse(path=path):
                    pass
                parsing.setdefault(title, []).append(process_time() - started)
    print(
        f"{options.events:,} events of {PER_EVENT} quads, seed {options.seed}, median of "
        f"{options.repeats}, events in a second of the processor"
    )
    print(
        f"{'':18}{'MB':>7}{'events/s':>12}{'min-max':>22}{'x lines':>9}{'x parsing':>11}"
        f"{'events':>9}{'matches':>9}"
    )
    lines = ""
    for title, (events, found) in counts.items():
        lines = title if title.startswith("N-") else lines
        assert (events, found) == counts[lines], f"{title}: {events} events, {found} matches"
        seconds = statistics.median(matching[title])
        spread = f"{events / max(matching[title]):,.0f}-{events / min(matching[title]):,.0f}"
        ratio = statistics.median(matching[lines]) / seconds
        print(
            f"{title:18}{sizes[title]:>7.1f}{events / seconds:>12,.0f}{spread:>22}{ratio:>9.2f}"
            f"{statistics.median(parsing[title]) / seconds:>11.1f}{events:>9,}{found:>9,}"
        )


if __name__ == "__main__":
    main()
