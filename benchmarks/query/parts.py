"""A long N-Quads file parsed by one thread, by one that reads ahead, and by several in parts.

The stream is that of `three_steps.py`. Four things are timed in turns: reading alone, without the
triples that the query cannot use and with them; and a query with few partial matches, and one with
many. `one` is `--workers 1`; `ahead` is `--workers 2` with one thread that reads; `parts` has
`--workers` threads that parse. The matches must be equal.

Elapsed times are distorted by other load; `load` is printed. Processor times are those of all
threads together: what the parts cost beyond reading ahead is the price of dividing the file.

    python benchmarks/query/parts.py --events 200000 --repeat 5
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

from three_steps import QUERY, STREAM, widen

import spaseq
from spaseq.generate import write
from spaseq.io import line_parts
from spaseq.io.merge import merge
from spaseq.io.read_options import ReadOptions
from spaseq.io.source import Source
from spaseq.pipeline import matches

NEVER = 1 << 62
"""More parts than a file has."""


def read(program: spaseq.Program, prune: bool, path: Path, workers: int) -> int:
    """Read the events and drop them."""
    run = program.start(prune=prune)
    source = Source(STREAM, [str(path)], ReadOptions(workers=workers), relevance=run.relevance)
    return sum(map(len, source.batches()))


def match(program: spaseq.Program, path: Path, workers: int) -> int:
    """Read and match; the number of matches."""
    run = program.start()
    source = Source(STREAM, [str(path)], ReadOptions(workers=workers), relevance=run.relevance)
    return sum(1 for _ in matches(run, merge([source])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    program = spaseq.compile(QUERY)
    cheap, dear = program.bind({"many": 999}), program.bind({"many": 600})
    tasks: dict[str, Callable[[Path, int], int]] = {
        "reading": partial(read, cheap, True),
        "reading every triple": partial(read, cheap, False),
        "few partial matches": partial(match, cheap),
        "many partial matches": partial(match, dear),
    }
    ways = {"one": (1, NEVER), "ahead": (2, NEVER), "parts": (given.workers, 4)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wider.nq"
        widen(write("stock", given.events, given.seed, Path(folder))[0], path, 7)
        print(
            f"{given.events:,} trades, {path.stat().st_size / 1e6:.0f} MB, seed {given.seed}, "
            f"median of {given.repeat}, load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors"
        )
        for name, task in tasks.items():
            figures: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
            results = set()
            for _ in range(given.repeat):
                for way, (workers, line_parts.FEWEST_PARTS) in ways.items():
                    started, begun = perf_counter(), process_time()
                    results.add(task(path, workers))
                    figures[way].append((perf_counter() - started, process_time() - begun))
            assert len(results) == 1, (name, results)
            print(f"\n{name}, {results.pop():,} {'matches' if 'match' in name else 'events'}")
            for way, some in figures.items():
                shown = []
                for number, title in enumerate(("elapsed", "processor")):
                    times = [pair[number] for pair in some]
                    middle = statistics.median(times)
                    shown.append(f"{title} {middle:.3f} s ({min(times):.3f} to {max(times):.3f})")
                print(f"  {way:8}{', '.join(shown)}")


if __name__ == "__main__":
    main()
