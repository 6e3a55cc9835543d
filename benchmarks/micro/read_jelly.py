"""Reading Jelly into encoded events, beside pyjelly and the N-Quads reader.

The events are those of `read_nquads.py`: a graph of seven quads and a timestamp in the default
graph. pyjelly writes them with one event per frame and with 256. The script measures, in turns, the
processor time of the compiled reader with all triples stored and with two of seven predicates; of
pyjelly's own parser; of the reader over pyjelly that `--events dataset` uses; and of the compiled
reader of N-Quads over the same statements. It prints the median and the spread of the repeats. All
must find the same events.

    python benchmarks/micro/read_jelly.py --events 50000
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import process_time

import pyoxigraph as ox
from pyjelly.integrations.generic.parse import parse_jelly_flat
from read_nquads import KEPT, PER_EVENT, write_stream

from spaseq.io import formats
from spaseq.io.read_options import Framing, ReadOptions
from spaseq.io.source import Source
from spaseq.rdf.native._terms import Dictionary, Relevance

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "unit" / "io"))
from jelly_writing import delimited, jelly_frames

PER_FRAME = (1, 256)


def events(path: Path, relevance: Relevance) -> int:
    """The number of events of a file."""
    options = ReadOptions(Framing("graph"))
    source = Source("http://example.org/trades", [str(path)], options, relevance=relevance)
    return sum(len(batch) for batch in source.batches())


@contextmanager
def without_compiled_reader() -> Iterator[None]:
    table = formats.STREAM_SYNTAXES
    known = table["jelly"]
    table["jelly"] = replace(known, steps=None)  # type: ignore[index]
    try:
        yield
    finally:
        table["jelly"] = known  # type: ignore[index]


def by_statements(path: Path, relevance: Relevance) -> int:
    with without_compiled_reader():
        return events(path, relevance)


def by_pyjelly(path: Path) -> int:
    """The number of events of pyjelly's statements."""
    with path.open("rb") as file:
        return sum(1 for _ in parse_jelly_flat(file)) // PER_EVENT


def timed(task: Callable[[], object]) -> float:
    begun = process_time()
    task()
    return process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "s.nq"
        write_stream(plain, given.events, 1)
        quads = list(ox.parse(path=str(plain)))
        everything = Relevance(Dictionary())
        some = Relevance(Dictionary(), KEPT)
        for per_frame in PER_FRAME:
            path = Path(folder) / f"s{per_frame}.jelly"
            size = per_frame * PER_EVENT
            joined = [quads[i : i + size] for i in range(0, len(quads), size)]
            path.write_bytes(delimited(jelly_frames(joined)))
            tasks: dict[str, Callable[[], int]] = {
                "N-Quads, all stored": lambda: events(plain, everything),
                "N-Quads, 2 of 7 stored": lambda: events(plain, some),
                "Jelly, all stored": lambda path=path: events(path, everything),
                "Jelly, 2 of 7 stored": lambda path=path: events(path, some),
                "Jelly by statements": lambda path=path: by_statements(path, everything),
                "pyjelly": lambda path=path: by_pyjelly(path),
            }
            assert {task() for task in tasks.values()} == {given.events}
            times: dict[str, list[float]] = {name: [] for name in tasks}
            for _ in range(given.repeats):
                for name, task in tasks.items():
                    times[name].append(timed(task))
            rates = {name: given.events / statistics.median(all) for name, all in times.items()}
            print(f"{given.events:,} events, {per_frame} in a frame, {path.stat().st_size:,} bytes")
            for name, rate in rates.items():
                least, most = given.events / max(times[name]), given.events / min(times[name])
                print(f"{name:24} {rate:12,.0f} events/s  ({least:,.0f} to {most:,.0f})")
            for what in ("all stored", "2 of 7 stored"):
                jelly = rates[f"Jelly, {what}"]
                print(
                    f"{what}: {jelly / rates['pyjelly']:.1f} x pyjelly, "
                    f"{jelly / rates[f'N-Quads, {what}']:.2f} x N-Quads"
                )


if __name__ == "__main__":
    main()
