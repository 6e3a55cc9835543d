"""Adding and removing queries while many run: processor time of the change and of the next batch.

The queries are those of `queries.py` that differ in a constant, or in a predicate. The first change
of a run also adds the patterns of all queries to the table that lets new queries share them.

The second part starts with one query and adds all others one by one: to a run without an event, to
a run whose partial matches hold many of their constants, and to the server. The third part removes
and replaces as many queries one by one, after some batches of events; the server removes them too.
Both compare the medians of the first and the last tenth of the changes, without the compilation of
the queries.

    python benchmarks/many/changes.py --queries 1000 --repeat 6
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from time import process_time

from queries import BATCH, of_sensor, query, readings, sequences

import spaseq
from spaseq.io.read_options import ReadOptions
from spaseq.server.machine import Machine
from spaseq.server.run_options import RunSettings
from spaseq.server.standing import Definition


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


def identical(number: int) -> str:
    """The query of a predicate that all have."""
    return query(0)


def added(make: Callable[[int], str], count: int, events: int) -> tuple[list[float], float]:
    """The milliseconds of each addition to a run, and of the batch after the last one."""
    run = spaseq.compile(make(count)).start(prune=False)
    kinds = count if make is query else 1
    some = readings(events + BATCH, kinds, ("s",), 1, count, 100_000)
    batches = iter(sequences(run, some, ("s",)))
    for _ in range(events // BATCH):
        matches(run, batches)
    programs = [spaseq.compile(make(number)) for number in range(count)]
    times = [
        timed(lambda: run.add(f"n{number}", program))  # noqa: B023
        for number, program in enumerate(programs)
    ]
    return times, timed(lambda: matches(run, batches))


def registered(make: Callable[[int], str], count: int) -> list[float]:
    """The milliseconds of each registration in the server, without HTTP and the journal."""
    settings = RunSettings(ReadOptions(), None, {}, {})
    definitions = [Definition(f"n{number}", make(number)) for number in range(count)]
    programs = [definition.compile() for definition in definitions]
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(settings, Path(folder), lambda match, identifier: None)
        times = [
            timed(lambda: machine.put_query(definition, program, "fresh", number))  # noqa: B023
            for number, (definition, program) in enumerate(zip(definitions, programs, strict=True))
        ]
        machine.close()
    return times


def changed(
    make: Callable[[int], str], count: int, events: int, what: str
) -> tuple[list[float], float]:
    """The milliseconds of each removal or replacement, and of the batch after the last one."""
    run = spaseq.compile(make(count)).start(prune=False)
    for number in range(count):
        run.add(f"n{number}", spaseq.compile(make(number)))
    kinds = count if make is query else 1
    some = readings(events + BATCH, kinds, ("s",), 1, count, 100_000)
    batches = iter(sequences(run, some, ("s",)))
    for _ in range(events // BATCH):
        matches(run, batches)
    names = [f"n{number}" for number in range(count)]
    programs = [spaseq.compile(make(number), names=[names[number]]) for number in range(count)]

    def change(name: str, program: spaseq.Program) -> None:
        if what in ("remove", "remove, drain"):
            run.remove(name, drain=what != "remove")
        else:
            run.replace(name, program, what)  # type: ignore[arg-type]

    times = [
        timed(lambda: change(name, program))  # noqa: B023
        for name, program in zip(names, programs, strict=True)
    ]
    return times, timed(lambda: matches(run, batches))


def taken_out(make: Callable[[int], str], count: int) -> list[float]:
    """The milliseconds of each removal in the server, without HTTP and the journal."""
    settings = RunSettings(ReadOptions(), None, {}, {})
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(settings, Path(folder), lambda match, identifier: None)
        for number in range(count + 1):
            definition = Definition(f"n{number}", make(number))
            machine.put_query(definition, definition.compile(), "fresh", number)
        times = [
            timed(lambda: machine.remove_query(f"n{number}", False, count + number))  # noqa: B023
            for number in range(count)
        ]
        machine.close()
    return times


def print_times(title: str, times: Sequence[float], more: str = "") -> None:
    tenth = max(1, len(times) // 10)
    first, last = statistics.median(times[:tenth]), statistics.median(times[-tenth:])
    print(
        f"  {title:32} first {first:5.2f} ms, last {last:5.2f} ms, ratio {last / first:4.2f},"
        f" all {sum(times) / 1000:5.2f} s{more}"
    )


def measure_growth(count: int, events: int) -> None:
    print(f"{count} queries added one by one")
    for title, make in (
        ("a predicate each", query), ("a sensor each", of_own_sensor), ("identical", identical)
    ):  # fmt: skip
        for some in (0, events):
            times, after = added(make, count, some)
            print_times(f"{title}, {some} events", times, f", next {BATCH} events {after:.0f} ms")
        print_times(f"{title}, in the server", registered(make, count))


def measure_shrinking(count: int, events: int) -> None:
    print(f"{count} queries removed or replaced one by one")
    for title, make in (("a predicate each", query), ("a sensor each", of_own_sensor)):
        for what in ("remove", "remove, drain", "fresh", "keep", "drain"):
            times, after = changed(make, count, events, what)
            print_times(f"{title}, {what}", times, f", next {BATCH} events {after:.0f} ms")
    print_times("a predicate each, in the server", taken_out(query, count))


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Changes of the queries of a run.")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=6)
    options = parser.parse_args(None if arguments is None else list(arguments))
    measure("a sensor each", of_own_sensor, options.queries, options.repeat)
    measure("a predicate each", query, options.queries, options.repeat)
    measure_growth(options.queries, 16 * BATCH)
    measure_shrinking(options.queries, 16 * BATCH)


if __name__ == "__main__":
    main()
