"""Adding and removing queries while many run: processor time of the change and of the next batch.

The queries are those of `queries.py` that differ in a constant, or in a predicate. The first change
of a run also adds the patterns of all queries to the table that lets new queries share them.

    python benchmarks/many/changes.py --queries 1000 --repeat 6
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Iterator
from time import process_time

from queries import BATCH, of_sensor, query, readings, sequences

import spaseq


def of_own_sensor(number: int) -> str:
    """The query of a sensor that no other query has."""
    return of_sensor(number, 50_000)


def timed(work: Callable[[], object]) -> float:
    """The milliseconds of some work."""
    started = process_time()
    work()
    return 1000 * (process_time() - started)


def matches(run: spaseq.Run, batches: Iterator[object]) -> int:
    return sum(1 for _ in run.push_batch(next(batches)))  # type: ignore[arg-type]


def measure(title: str, make: Callable[[int], str], count: int, repeat: int) -> None:
    program = spaseq.compile([make(n) for n in range(count)])
    starting = timed(program.start)
    run = program.start(prune=False)
    kinds = 1 if make is of_own_sensor else count
    events = readings((4 * repeat + 21) * BATCH, kinds, ("s",), 1, count + repeat, 100_000)
    batches = iter(sequences(run, events, ("s",)))
    for _ in range(20):
        matches(run, batches)
    plain = timed(lambda: matches(run, batches))
    times: dict[str, list[float]] = {"add": [], "add, next": [], "remove": [], "remove, next": []}
    for number in range(repeat):
        added = spaseq.compile(make(count + number))
        name = f"new{number}"
        times["add"].append(timed(lambda: run.add(name, added)))  # noqa: B023
        times["add, next"].append(timed(lambda: matches(run, batches)))
        matches(run, batches)
        times["remove"].append(timed(lambda: run.remove(name)))  # noqa: B023
        times["remove, next"].append(timed(lambda: matches(run, batches)))
        matches(run, batches)
    print(f"{title}: start {starting:.0f} ms, {BATCH} events {plain:.2f} ms")
    for what, some in times.items():
        first, *rest = some
        print(
            f"  {what:13} first {first:7.1f} ms, then {statistics.median(rest):6.1f} ms"
            f" ({min(rest):.1f}–{max(rest):.1f})"
        )
    print(f"  {sum(1 for _ in run.finish()) + run.stats['matches']} matches")


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Changes of the queries of a run.")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=6)
    options = parser.parse_args(None if arguments is None else list(arguments))
    measure("a sensor each", of_own_sensor, options.queries, options.repeat)
    measure("a predicate each", query, options.queries, options.repeat)


if __name__ == "__main__":
    main()
