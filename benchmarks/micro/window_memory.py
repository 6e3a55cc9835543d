"""Memory of the window's terms over a stream in which every event has new terms.

An event is a tenth of a second of the readings of several sensors, each under a new IRI. Events are
read from N-Quads in batches and matched, and the terms of their rows are retained for a window of
one minute, as a run does. After each tenth of the stream the script prints the window's terms, the
bytes of their texts, and the memory of the process. All must be constant, since a term is freed
when it has left the window; otherwise the script fails.

    python benchmarks/micro/window_memory.py --iris 5000000
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import psutil

from spaseq.gpm.matchers import Matchers
from spaseq.gpm.pattern import compile_pattern
from spaseq.gpm.program import compile_gpm
from spaseq.io.source import Source
from spaseq.parser import parse_pattern
from spaseq.rdf.encoded import encoded_events

EX = "http://example.org/"
WINDOW = 60
PER_SECOND = 10
PATTERN = "{ ?reading :value ?value }"
SAMPLES = 10
PART = 500_000
"""The IRIs of a file; the stream is written file by file, each after the last one was read."""
SLACK = 24.0
"""The tolerated change of the process's memory after the window is full, in megabytes."""


def resident() -> float:
    """The memory of this process in megabytes."""
    return float(psutil.Process().memory_info().rss) / 1e6


def write_part(path: Path, first: int, events: int, size: int) -> None:
    """Events numbered from `first`, of `size` readings each."""
    with path.open("w", encoding="ascii") as out:
        for event in range(first, first + events):
            graph = f"<{EX}graph/{event}>"
            seconds, tenth = divmod(event, PER_SECOND)
            time = f'"{seconds}.{tenth}"^^<http://www.w3.org/2001/XMLSchema#decimal>'
            out.write(f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n")
            behind = f'> <{EX}value> "{event % 97}" {graph} .\n'
            out.writelines(
                f"<{EX}reading/{number}{behind}"
                for number in range(event * size, (event + 1) * size)
            )


def parts(events: int, size: int) -> Iterator[Path]:
    """The files of the stream, one after the other."""
    at_once = max(1, PART // size)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "readings.nq")
        for first in range(0, events, at_once):
            write_part(path, first, min(at_once, events - first), size)
            yield path


class Window:
    """The window's terms of the rows of a stream, and the cost of retaining them."""

    def __init__(self) -> None:
        program = compile_gpm(parse_pattern(PATTERN, {"": EX}), None, None)
        self.matchers = Matchers([compile_pattern(program)], None, horizon=WINDOW * 1_000_000)
        self.events = 0
        self.rows = 0
        self.seconds = 0.0
        self.most = 0

    def read(self, path: Path, sample: int) -> Iterator[None]:
        """Process a file; yields after each `sample` events."""
        matchers = self.matchers
        started = perf_counter()
        for batch in Source(EX + "readings", [str(path)], relevance=matchers.relevance).batches():
            for event in encoded_events(batch):
                matchers.advance(event.time.micros)
                self.rows += len(matchers.rows(event, 0)[0])
                self.events += 1
                if self.events % sample == 0:
                    self.most = max(self.most, matchers.window.live)
                    self.seconds += perf_counter() - started
                    yield
                    started = perf_counter()
        self.seconds += perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory of a window over ever-new terms.")
    parser.add_argument("--iris", type=int, default=50_000_000)
    parser.add_argument("--per-event", type=int, default=20)
    options = parser.parse_args()
    size = options.per_event
    events = max(SAMPLES, options.iris // size)
    window = Window()
    sizes: list[tuple[int, float]] = []
    print(f"{events * size:,} IRIs in {events:,} events, a window of {WINDOW * PER_SECOND} of them")
    print(f"{'events':>12}{'terms':>10}{'MB of texts':>13}{'MB resident':>13}")
    for path in parts(events, size):
        for _ in window.read(path, events // SAMPLES):
            terms = window.matchers.window
            sizes.append((terms.live, resident()))
            print(
                f"{window.events:>12,}{terms.live:>10,}{terms.bytes / 1e6:>13.2f}"
                f"{resident():>13.1f}",
                flush=True,
            )
    entered = window.matchers.window.entered
    print(f"{window.rows:,} rows, {entered:,} terms entered, {window.rows / window.seconds:,.0f}/s")
    assert window.rows == events * size
    # The terms of one and a half windows, and of the epoch that has just begun.
    bound = 2 * WINDOW * PER_SECOND * (size + 1) + size
    live, held = zip(*sizes, strict=True)
    if max(live) > bound:
        raise SystemExit(f"{max(live):,} terms are held where {bound:,} are the most")
    if max(held[1:]) - held[1] > SLACK:
        raise SystemExit(f"memory grows: {held[1]:.0f} MB, then {max(held[1:]):.0f} MB")


if __name__ == "__main__":
    main()
