"""Memory over a long stream in which every event has a new key, and the slowest event.

The query is `A : B` of one key within a window; no two events share a key. Batches are encoded
while the stream runs, and freed after use. After each tenth of the stream the script prints the
groups of partial matches, the bytes of the core's nodes, the window's terms, and the memory of the
process. All must be constant; otherwise the script fails.

Then further events are processed one by one. The script prints the median of the processor time,
the 99.9th percentile and the maximum.

    python benchmarks/automaton/endurance.py --events 2000000
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import process_time

import psutil
from feeding import compiled, one_by_one
from streams import Happening, encoded
from workloads import query

import spaseq
from spaseq.rdf.limits import NO_LIMIT
from spaseq.rdf.native._terms import EventBatch

SAMPLES = 10
PART = 5000
"""The number of events of a batch."""
SLACK = 16.0
"""The tolerated change of the process's memory after the window is full, in megabytes."""


def resident() -> float:
    """The memory of this process in megabytes."""
    return float(psutil.Process().memory_info().rss) / 1e6


def ever_new(first: int, count: int) -> list[Happening]:
    """Two A and one B in turn, each with a new key."""
    return [("AAB"[number % 3], number, number) for number in range(first, first + count)]


class Stream:
    """A run over a prefix of the stream."""

    def __init__(self, window: int) -> None:
        patterns = {"A": "?k :A ?x", "B": "?k :B ?y"}
        self.run = spaseq.compile(query("A : B", patterns, window)).start()
        self.native = compiled(self.run)
        self.events = 0
        self.matches = 0

    def take(self, batch: EventBatch) -> None:
        """The events of a batch."""
        after, matches, _ = self.native.tally(batch, self.events, NO_LIMIT)
        assert after == len(batch)
        self.matches += matches
        self.events += after

    def go(self, count: int) -> float:
        """Process further events; returns the processor seconds without encoding."""
        seconds = 0.0
        end = self.events + count
        while self.events < end:
            some = ever_new(self.events, min(PART, end - self.events))
            for batch in encoded(self.run, some, first=self.events):
                started = process_time()
                self.take(batch)
                seconds += process_time() - started
        return seconds

    @property
    def groups(self) -> int:
        return sum(1 for _ in self.native.parts.groups(over=False))


def checked(held: Sequence[tuple[int, int, int, float]], window: int) -> None:
    """Exit with an error if a figure grows; half of the samples have a full window."""
    later = held[SAMPLES // 2 :]
    groups, _, terms, _ = map(max, zip(*later, strict=True))
    if groups > 2 * window + 512:
        raise SystemExit(f"{groups:,} groups are held in a window of {window:,} events")
    if terms > 6 * window + 512:
        raise SystemExit(f"{terms:,} terms are held in a window of {window:,} events")
    for column, slack in ((1, 1 << 20), (3, SLACK)):
        if max(row[column] for row in later) - later[0][column] > slack:
            raise SystemExit(f"memory grows: {[row[column] for row in held]}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory over ever-new keys; the slowest event.")
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--window", type=int, default=10_000, help="in events")
    parser.add_argument("--single", type=int, default=100_000, help="events taken one by one")
    options = parser.parse_args()
    stream = Stream(options.window)
    held, seconds = [], 0.0
    print(f"{options.events:,} events, each of a new key, a window of {options.window:,}")
    print(f"{'events':>12}{'groups':>10}{'KB of nodes':>13}{'terms':>10}{'MB resident':>13}")
    for _ in range(SAMPLES):
        seconds += stream.go(options.events // SAMPLES)
        core = stream.native.core
        held.append(
            (stream.groups, core.tecs.bytes, stream.run.rows.matchers.window.live, resident())
        )
        groups, nodes, terms, memory = held[-1]
        print(f"{stream.events:>12,}{groups:>10,}{nodes / 1e3:>13,.0f}{terms:>10,}{memory:>13.1f}")
    print(f"{stream.events / seconds:,.0f} events/s, {stream.matches} matches")
    checked(held, options.window)
    some = ever_new(stream.events, options.single)
    spent = sorted(one_by_one(stream.run, some, stream.events)[0])
    middle, late = spent[len(spent) // 2], spent[len(spent) * 999 // 1000]
    print(
        f"{len(spent):,} events one by one: median {middle / 1e3:.1f} µs, "
        f"99.9 % within {late / 1e3:.1f} µs, the slowest {spent[-1] / 1e3:.1f} µs"
    )


if __name__ == "__main__":
    main()
