"""Reading and matching in two threads: elapsed time, beside each of them alone and one thread.

The stream is that of `three_steps.py`, as N-Quads, N-Quads compressed by gzip and zstd, and TriG;
then the same N-Quads for several queries, and two streams of them for one query. For each input
five things are timed in turns: reading alone, with the pruning of the queries, once without and
once with a thread that decompresses; matching events that have been read; and both together with
one thread and with several (`workers`). The matches of the two must be equal.

Times are elapsed times, so other load distorts them; `load` is printed. For the run with several
threads, the processor time of the matching thread and that of the others is printed as well: the
greater of the two is what the elapsed time would be if each thread had a processor.

    python benchmarks/query/overlapped.py --events 400000 --repeat 5
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time, thread_time

import pyoxigraph as ox
from three_steps import QUERY, STREAM, widen

import spaseq
from spaseq.generate import write
from spaseq.io.merge import merge, merged_batches
from spaseq.io.read_options import ReadOptions
from spaseq.io.source import Source
from spaseq.pipeline import matches

OTHER = "http://example.org/stock/others"
TWO_STREAMS = QUERY.replace(
    f"FROM STREAM trades <{STREAM}>",
    f"FROM STREAM trades <{STREAM}> FROM STREAM others <{OTHER}>",
).replace("Lower  ON trades", "Lower  ON others")


class Task:
    """One input: the queries, and the file of each stream."""

    def __init__(self, queries: Sequence[str], files: Mapping[str, Path], volume: int):
        self._files = files
        self._program = spaseq.compile(list(queries)).bind({"many": volume})

    def _sources(self, run: spaseq.Run, workers: int) -> list[Source]:
        options = ReadOptions(workers=workers)
        return [
            Source(iri, [str(path)], options, number, relevance=run.relevance)
            for number, (iri, path) in enumerate(self._files.items())
        ]

    def read(self) -> int:
        """Read the events and drop them."""
        sources = self._sources(self._program.start(), 1)
        return sum(len(batch) for source in sources for batch in source.batches())

    def read_decompressed(self) -> int:
        """The same, with a thread that decompresses and none that reads ahead."""

        class Undivided(Source):
            __slots__ = ()
            reads_ahead = False

        run, options = self._program.start(), ReadOptions(workers=2)
        sources = [
            Undivided(iri, [str(path)], options, number, relevance=run.relevance)
            for number, (iri, path) in enumerate(self._files.items())
        ]
        return sum(len(batch) for source in sources for batch in source.batches())

    def prepared(self) -> Callable[[], int]:
        """What matches the events, which are read now."""
        run = self._program.start()
        sources = self._sources(run, 1)
        if len(sources) == 1:
            events = list(sources[0].batches())
        else:
            events = list(merged_batches([source.batches() for source in sources]))

        def matched() -> int:
            found = sum(1 for batch in events for _ in run.push_batch(batch))
            return found + len(run.finish())

        return matched

    def both(self, workers: int) -> int:
        """Read and match; the number of matches."""
        run = self._program.start()
        return sum(1 for _ in matches(run, merge(self._sources(run, workers))))


def inputs(trades: Path, volume: int) -> dict[str, Task]:
    """The tasks; the other files are written beside the trades."""
    folder, data = trades.parent, trades.read_bytes()
    zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    (folder / "t.nq.gz").write_bytes(gzip.compress(data, 6))
    (folder / "t.nq.zst").write_bytes(zstd.compress(data, 3))
    quads = ox.parse(data, format=ox.RdfFormat.N_QUADS)
    ox.serialize(quads, str(folder / "t.trig"), format=ox.RdfFormat.TRIG)
    several = [QUERY.replace("5 MINUTES", f"{minutes} MINUTES") for minutes in range(2, 6)]
    return {
        "N-Quads": Task([QUERY], {STREAM: trades}, volume),
        "gzip": Task([QUERY], {STREAM: folder / "t.nq.gz"}, volume),
        "zstd": Task([QUERY], {STREAM: folder / "t.nq.zst"}, volume),
        "TriG": Task([QUERY], {STREAM: folder / "t.trig"}, volume),
        "four queries": Task(several, {STREAM: trades}, volume),
        "two streams": Task([TWO_STREAMS], {STREAM: trades, OTHER: trades}, volume),
    }


def elapsed(task: Callable[[], int], times: list[float]) -> int:
    started = perf_counter()
    result = task()
    times.append(perf_counter() - started)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--volume", type=int, default=900)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="names of inputs")
    given = parser.parse_args()
    names = ("reading", "with decompressor", "matching", "one thread", "several threads")
    print(
        f"{given.events:,} trades of 7 quads, volume above {given.volume}, seed {given.seed}, "
        f"median of {given.repeat}, load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors"
    )
    with tempfile.TemporaryDirectory() as folder:
        trades = Path(folder) / "wider.nq"
        widen(write("stock", given.events, given.seed, Path(folder))[0], trades, 7)
        for name, task in inputs(trades, given.volume).items():
            if given.only and name not in given.only:
                continue
            times: dict[str, list[float]] = {each: [] for each in names}
            main_cpu, other_cpu, alone_cpu = list[float](), list[float](), list[float]()
            for _ in range(given.repeat):
                elapsed(task.read, times["reading"])
                elapsed(task.read_decompressed, times["with decompressor"])
                elapsed(task.prepared(), times["matching"])
                begun = process_time()
                one = elapsed(lambda task=task: task.both(1), times["one thread"])
                alone_cpu.append(process_time() - begun)
                begun, main_begun = process_time(), thread_time()
                several = elapsed(lambda task=task: task.both(2), times["several threads"])
                main_cpu.append(thread_time() - main_begun)
                other_cpu.append(process_time() - begun - main_cpu[-1])
                assert one == several, (name, one, several)
            middle = {each: statistics.median(some) for each, some in times.items()}
            slower = max(middle["reading"], middle["matching"])
            print(f"\n{name}, {several:,} matches")
            for each, some in times.items():
                print(
                    f"  {each:18}{middle[each]:8.3f} s  ({min(some):.3f} to {max(some):.3f})"
                    f"{middle[each] / slower:8.2f} of the slower"
                )
            print(
                f"  processor time: one thread {statistics.median(alone_cpu):.3f} s; several: "
                f"matching {statistics.median(main_cpu):.3f} s, "
                f"others {statistics.median(other_cpu):.3f} s"
            )


if __name__ == "__main__":
    main()
