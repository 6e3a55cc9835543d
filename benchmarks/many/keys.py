"""One query divided by key among threads: elapsed and processor time, beside one thread.

Trades of many companies, each with a price and a volume, are matched by a query whose steps share
the company: an ascent of prices, within a window in which each company has many trades. Three ways
are timed in turns: one thread that reads and matches; one that reads ahead and one that matches;
and threads that divide the events by company. The matches must be equal.

Elapsed times are distorted by other load; `load` is printed. The processor time of each thread is
printed as well. On a machine with two idle processors the elapsed time is at least the greater of
the longest thread and half of the sum, which is printed as `bound`.

    python benchmarks/many/keys.py --events 200000 --repeat 5
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time, thread_time

import spaseq
from spaseq import keyed_runs
from spaseq.rdf import ahead

STREAM = "http://example.org/trades"
QUERY = f"""
PREFIX : <http://example.org/>
SELECT ?company ?p1 ?p4 WITHIN 30 MINUTES PARTITION BY ?company FROM STREAM trades <{STREAM}>
WHERE {{
  SEQ(Big : Higher : Most)
  DEFINE GPM Big    ON trades {{ [] :company ?company ; :price ?p1 ; :volume ?v FILTER(?v > MANY) }}
  DEFINE GPM Higher ON trades {{ [] :company ?company ; :price ?p2 FILTER(?p2 > ?p1) }}
  DEFINE GPM Most   ON trades {{ [] :company ?company ; :price ?p4 FILTER(?p4 > ?p2 + 94) }}
}}
"""
WAYS = {"one thread": (1, False), "reading ahead": (2, False), "two by key": (2, True)}


def trades(count: int, companies: int, chance: random.Random) -> Iterator[str]:
    """The events as N-Quads: a time and three statements each."""
    for number in range(count):
        graph, trade = f"<http://example.org/g{number}>", f"<http://example.org/t{number}>"
        company = chance.randrange(companies)
        price, volume = chance.randint(1, 100), chance.randrange(1000)
        yield (
            f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{number}"'
            f"^^<http://www.w3.org/2001/XMLSchema#decimal> .\n"
            f"{trade} <http://example.org/company> <http://example.org/c{company}> {graph} .\n"
            f'{trade} <http://example.org/price> "{price}"'
            f"^^<http://www.w3.org/2001/XMLSchema#integer> {graph} .\n"
            f'{trade} <http://example.org/volume> "{volume}"'
            f"^^<http://www.w3.org/2001/XMLSchema#integer> {graph} .\n"
        )


class Spent:
    """The processor time of each thread of a run, by name."""

    def __init__(self) -> None:
        self.by_thread: dict[str, float] = {}

    def noting(self, work):  # type: ignore[no-untyped-def]
        def noted(*given: object) -> None:
            before = thread_time()
            try:
                work(*given)
            finally:
                self.by_thread[threading.current_thread().name] = thread_time() - before

        return noted


def matched(program: spaseq.Program, path: Path, way: str, spent: Spent) -> tuple[float, list[int]]:
    """(elapsed time, the times of the matches) of one way; its threads are noted."""
    workers, by_key = WAYS[way]
    spent.by_thread.clear()
    keyed_runs.LEAST_BYTES = 0 if by_key else 1 << 62
    begun, own = perf_counter(), thread_time()
    found = [m.end.micros for m in spaseq.run(program, {STREAM: str(path)}, workers=workers)]
    spent.by_thread["main"] = thread_time() - own
    return perf_counter() - begun, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--companies", type=int, default=50)
    parser.add_argument("--volume", type=int, default=500)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    program = spaseq.compile(QUERY.replace("MANY", str(given.volume)))
    spent = Spent()
    ahead.Lane.fill = spent.noting(ahead.Lane.fill)  # type: ignore[method-assign]
    keyed_runs._Worker._work = spent.noting(keyed_runs._Worker._work)  # type: ignore[method-assign]
    elapsed: dict[str, list[float]] = {way: [] for way in WAYS}
    processor: dict[str, list[float]] = {way: [] for way in WAYS}
    bounds: dict[str, list[float]] = {way: [] for way in WAYS}
    threads: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trades.nq"
        chance = random.Random(given.seed)
        path.write_text("".join(trades(given.events, given.companies, chance)), encoding="utf-8")
        size, first = path.stat().st_size, None
        for _ in range(given.repeat):
            for way in WAYS:
                before = process_time()
                seconds, found = matched(program, path, way, spent)
                processor[way].append(process_time() - before)
                elapsed[way].append(seconds)
                some = list(spent.by_thread.values())
                bounds[way].append(max(*some, sum(some) / 2) if len(some) > 1 else some[0])
                threads[way] = dict(spent.by_thread)
                first = first or found
                assert found == first, way
    print(
        f"{given.events:,} trades of {given.companies} companies, {size >> 20} MB, {len(found):,} "
        f"matches, volume above {given.volume}, seed {given.seed}, median of {given.repeat}, load "
        f"{os.getloadavg()[0]:.1f}, {os.cpu_count()} processors"
    )
    base, least = (statistics.median(some["one thread"]) for some in (elapsed, bounds))
    for way in WAYS:
        middle, bound = statistics.median(elapsed[way]), statistics.median(bounds[way])
        spread = f"{min(elapsed[way]):.3f} to {max(elapsed[way]):.3f}"
        each = ", ".join(f"{name} {seconds:.3f}" for name, seconds in sorted(threads[way].items()))
        print(
            f"{way:14} {middle:.3f} s ({spread}), {base / middle:.2f} x; processor time "
            f"{statistics.median(processor[way]):.3f} s; bound {bound:.3f} s, "
            f"{least / bound:.2f} x ({each})"
        )


if __name__ == "__main__":
    main()
