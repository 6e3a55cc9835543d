"""Reading N-Quads into encoded events: quads per second, compared with two parsers.

The stream is generated. An event is a graph of seven quads after a timestamp in the default graph;
the graph, the subject, the price and the number of each event are new. Four readers take turns on
one core: the reader of this package, without pruning and with two of the seven predicates retained;
pyoxigraph, which creates a Python object per quad; and, if installed, `serdi`, which also writes
the quads. Then this package and pyoxigraph read the same text from memory: a quarter of the time of
reading the pruned file is the system's, which copies the file. All times are processor times,
including the system's. The script prints the median and the spread of the repeats. All readers must
find the same quads and events.

    python benchmarks/micro/read_nquads.py --quads 800000
"""

from __future__ import annotations

import argparse
import io
import os
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pyoxigraph as ox

from spaseq.io.lines import Lines
from spaseq.io.source import Source
from spaseq.rdf.native._terms import Dictionary, Relevance

STOCK = "http://example.org/stock/"
XSD = "http://www.w3.org/2001/XMLSchema#"
PER_EVENT = 8
KEPT = [(ox.NamedNode(STOCK + name), None) for name in ("company", "price")]


def write_stream(path: Path, events: int, seed: int) -> None:
    """Trades, one per second."""
    draw = random.Random(seed)
    with path.open("w", encoding="utf-8") as out:
        for number in range(events):
            graph, trade = f"<{STOCK}graph/{number:08}>", f"<{STOCK}trade/{number:08}>"
            company = draw.choice("ABCDEFGHIJ")
            day, second = divmod(number, 86_400)
            clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
            time = f"2026-01-{day % 28 + 1:02}T{clock}Z"
            facts = {
                "http://www.w3.org/1999/02/22-rdf-syntax-ns#type": f"<{STOCK}Trade>",
                STOCK + "company": f"<{STOCK}company/{company}>",
                STOCK + "price": f'"{draw.uniform(1, 100):.2f}"^^<{XSD}double>',
                STOCK + "volume": f'"{draw.randrange(1000)}"^^<{XSD}integer>',
                STOCK + "exchange": f"<{STOCK}exchange/{company}1>",
                STOCK + "number": f'"{number}"^^<{XSD}integer>',
                STOCK + "note": f'"a trade of {company}"',
            }
            out.write(
                f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{time}"^^<{XSD}dateTime> .\n'
            )
            out.writelines(f"{trade} <{p}> {o} {graph} .\n" for p, o in facts.items())


def read_encoded(path: Path, relevance: Relevance) -> tuple[int, int]:
    """(quads, events) of the compiled reader; one quad per event is its timestamp."""
    source = Source("http://example.org/trades", [str(path)], relevance=relevance)
    events = sum(len(batch) for batch in source.batches())
    return source.counters.statements + events, events


def read_in_memory(data: bytes, relevance: Relevance) -> tuple[int, int]:
    """The same of a stream that is in memory."""

    def opened(path: str) -> Lines:
        return Lines(path, io.BytesIO(data))

    source = Source(
        "http://example.org/trades", ["trades.nq"], relevance=relevance, open_lines=opened
    )
    events = sum(len(batch) for batch in source.batches())
    return source.counters.statements + events, events


def read_parsed(path: Path) -> tuple[int, int]:
    """(quads, events) of pyoxigraph."""
    quads = sum(1 for _ in ox.parse(path=path))
    return quads, quads // PER_EVENT


def parsed_in_memory(data: bytes) -> tuple[int, int]:
    """The same of a stream that is in memory."""
    quads = sum(1 for _ in ox.parse(data, format=ox.RdfFormat.N_QUADS))
    return quads, quads // PER_EVENT


def read_serdi(path: Path) -> tuple[int, int]:
    """(quads, events) of serdi, whose output is discarded."""
    command = ["serdi", "-i", "nquads", "-o", "nquads", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        quads = 0
        while block := process.stdout.read(1 << 20):
            quads += block.count(b"\n")
    return quads, quads // PER_EVENT


def spent() -> float:
    """The processor seconds so far, including ended child processes."""
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + others.ru_utime + others.ru_stime


def measure(
    ways: dict[str, Callable[[], tuple[int, int]]], repeats: int
) -> dict[str, tuple[tuple[int, int], list[float]]]:
    """The counts and the seconds of each reader; the readers take turns."""
    found: dict[str, tuple[tuple[int, int], list[float]]] = {}
    for _ in range(repeats):
        for name, read in ways.items():
            started = spent()
            counts = read()
            seconds = spent() - started
            found.setdefault(name, (counts, []))[1].append(seconds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Reading N-Quads into encoded events.")
    parser.add_argument("--quads", type=int, default=800_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    everything = Relevance(Dictionary())
    some = Relevance(Dictionary(), KEPT)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trades.nq")
        write_stream(path, max(1, options.quads // PER_EVENT), options.seed)
        data = path.read_bytes()
        ways: dict[str, Callable[[], tuple[int, int]]] = {
            "pyoxigraph.parse": lambda: read_parsed(path),
            "events, all kept": lambda: read_encoded(path, everything),
            "events, 2 of 7 kept": lambda: read_encoded(path, some),
        }
        in_memory: dict[str, Callable[[], tuple[int, int]]] = {
            "pyoxigraph.parse": lambda: parsed_in_memory(data),
            "events, all kept": lambda: read_in_memory(data, everything),
            "events, 2 of 7 kept": lambda: read_in_memory(data, some),
        }
        if shutil.which("serdi"):
            ways["serdi, reads and writes"] = lambda: read_serdi(path)
        found = measure(ways, options.repeats)
        found_in_memory = measure(in_memory, options.repeats)
    quads, events = found["pyoxigraph.parse"][0]
    print(
        f"{quads:,} quads of {events:,} events, {len(data) / 1e6:.1f} MB, seed {options.seed}, "
        f"median of {options.repeats}, quads in a second of the processor"
    )
    for title, results in (("from a file", found), ("from memory", found_in_memory)):
        print(
            f"{title:26}{'quads/s':>12}{'spread':>24}{'x pyoxigraph':>14}{'quads':>11}{'events':>9}"
        )
        report(results)


def report(found: dict[str, tuple[tuple[int, int], list[float]]]) -> None:
    """Print a row per reader."""
    (quads, events), yardstick = found["pyoxigraph.parse"]
    for name, (counts, seconds) in found.items():
        assert counts == (quads, events), f"{name} found {counts}"
        rate = quads / statistics.median(seconds)
        spread = f"{quads / max(seconds):,.0f}-{quads / min(seconds):,.0f}"
        ratio = statistics.median(yardstick) / statistics.median(seconds)
        print(f"{name:26}{rate:>12,.0f}{spread:>24}{ratio:>14.2f}{counts[0]:>11,}{counts[1]:>9,}")


if __name__ == "__main__":
    main()
