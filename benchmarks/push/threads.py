"""Independent runs in several threads: elapsed time, beside the same runs one after the other.

Each run gets its own events. They are pushed one by one as N-Triples bytes, which is mostly Python
code, or read from a file as N-Quads, which is mostly compiled code without the interpreter's lock.
With the lock, pushes of several threads take turns; a free-threaded Python has no lock. All runs
must give the same matches.

Elapsed times are distorted by other load; `load` is printed.

    python benchmarks/push/threads.py --events 50000 --repeat 5
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

from graphs import QUERY, STREAM, pushed, text_of

import spaseq


def read(program: spaseq.Program, path: Path) -> int:
    """The number of matches of a run over a file, in the calling thread alone."""
    return sum(1 for _ in spaseq.run(program, {STREAM: str(path)}, workers=1))


def stated(number: int) -> str:
    """An event as N-Quads: its time and its statements."""
    graph = f"<{STREAM}/{number}>"
    return (
        f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{number}"'
        f"^^<http://www.w3.org/2001/XMLSchema#decimal> .\n" + text_of(number, f" {graph}")
    )


def compare(name: str, ways: dict[str, Callable[[], Iterable[int]]], repeat: int) -> None:
    """Time each way, which gives the number of matches of each run, and print a line for it."""
    elapsed: dict[str, list[float]] = {way: [] for way in ways}
    spent: dict[str, list[float]] = {way: [] for way in ways}
    found = set[int]()
    for _ in range(repeat):
        for way, begin in ways.items():
            begun, before = perf_counter(), process_time()
            found |= set(begin())
            elapsed[way].append(perf_counter() - begun)
            spent[way].append(process_time() - before)
    (matches,) = found
    base = statistics.median(elapsed["in turn"])
    for way, times in elapsed.items():
        middle = statistics.median(times)
        print(
            f"{name:7} {way}  {middle:.3f} s ({min(times):.3f} to {max(times):.3f}), "
            f"{base / middle:.2f} x, processor {statistics.median(spent[way]):.3f} s, "
            f"{matches:,} matches each"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    program = spaseq.compile(QUERY)
    texts = [text_of(number).encode() for number in range(options.events)]
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(
        f"{options.threads} runs of {options.events:,} events, median of {options.repeat}, "
        f"Python {sys.version.split()[0]} {'with' if locked else 'without'} the lock, "
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.threads) as pool:
        path = Path(folder) / "events.nq"
        path.write_text("".join(map(stated, range(options.events))), encoding="utf-8")
        runs = range(options.threads)
        for name, work in {
            "pushed": lambda _: pushed(program, texts),
            "read": lambda _: read(program, path),
        }.items():
            compare(
                name,
                {
                    "in turn": partial(map, work, runs),
                    "at once": partial(pool.map, work, runs),
                },
                options.repeat,
            )


if __name__ == "__main__":
    main()
