"""The cost of deadlines and bounds: a query with one, beside the same query without it.

There is an event every 100 ms: an A, a B, an N or something else, about one of some keys. Events
are read beforehand. The script measures the processor time of matching, for the two queries in
turns. `ratio` is the time without the deadline or bound divided by the time with it: the median,
minimum and maximum of the repeats. `waiting` is the maximum number of groups of partial matches
after a batch, which the deadline, the bound and the window limit.

    python benchmarks/query/deadlines.py --events 200000 --repeat 5
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import spaseq
from spaseq.io.source import Source

STREAM = "http://example.org/S"
HEAD = f"PREFIX : <http://example.org/> SELECT * WITHIN 60 SECONDS FROM STREAM S <{STREAM}>"
PAIRS = {
    "in the middle": ("A ; B", "A ; !N WITHIN 5 SECONDS ; B"),
    "beside a negation": ("A ; !N ; B", "A ; !N WITHIN 5 SECONDS ; B"),
    "of a unit": ("A ; !(N ; N) ; B", "A ; !(N ; N) WITHIN 5 SECONDS ; B"),
    "at the end": ("A ; !N", "A ; !N WITHIN 5 SECONDS"),
    "bound of a step": ("A ; B", "A ; B WITHIN 5 SECONDS"),
    "bound of a sequence": ("A ; (B ; N)", "A ; (B ; N) WITHIN 5 SECONDS"),
    "bound around an iteration": ("A ; (B{1,3})", "A ; (B{1,3}) WITHIN 5 SECONDS"),
    "bound of an operand": ("A ; (B | N)", "A ; ((B WITHIN 5 SECONDS) | N)"),
    "inside a negation": ("A ; !(N ; N) ; B", "A ; !(N ; !N WITHIN 5 SECONDS) ; B"),
}


def query(sequence: str) -> str:
    """A query whose steps have the same key."""
    defines = " ".join(
        f"DEFINE GPM {name} ON S {{ ?k :{name.lower()} ?{name.lower()} }}"
        for name in "ABN"
        if name in sequence.replace("WITHIN", "").replace("SECONDS", "")
    )
    return f"{HEAD} WHERE {{ SEQ({sequence}) {defines} }}"


def events(count: int, keys: int, chance: random.Random) -> Iterator[str]:
    """The events as N-Quads: a statement and its time."""
    for number in range(count):
        (kind,) = chance.choices("abnx", (4, 4, 1, 3))
        graph, key = f"<http://example.org/g{number}>", chance.randrange(keys)
        yield (
            f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> "
            f'"{number / 10:.1f}"^^<http://www.w3.org/2001/XMLSchema#decimal> .\n'
            f"<http://example.org/k{key}> <http://example.org/{kind}> "
            f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer> {graph} .\n'
        )


def matched(program: spaseq.Program, path: Path) -> tuple[float, int, int]:
    """(processor time of matching, matches, greatest number of waiting groups)."""
    run = program.start()
    batches = list(Source(STREAM, [str(path)], relevance=run.relevance).batches())
    spent, found, waiting = 0.0, 0, 0
    for batch in batches:
        before = process_time()
        found += sum(1 for _ in run.push_batch(batch))
        spent += process_time() - before
        counters = [query.counters() for query in run.queries]
        waiting = max(waiting, sum(place.groups for one in counters for place in one.places))
    before = process_time()
    found += len(run.finish())
    return spent + process_time() - before, found, waiting


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of deadlines and bounds.")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.nq"
        chance = random.Random(options.seed)
        path.write_text("".join(events(options.events, options.keys, chance)), encoding="utf-8")
        for name, sequences in PAIRS.items():
            programs = [spaseq.compile(query(sequence)) for sequence in sequences]
            ratios, results = [], [(0.0, 0, 0), (0.0, 0, 0)]
            for _ in range(options.repeat):
                results = [matched(program, path) for program in programs]
                ratios.append(results[0][0] / results[1][0])
            print(
                f"{name}: ratio {statistics.median(ratios):.2f} "
                f"({min(ratios):.2f} to {max(ratios):.2f})"
            )
            for sequence, (spent, found, waiting) in zip(sequences, results, strict=True):
                rate = options.events / spent / 1e6
                print(
                    f"  {sequence:<36} {rate:5.2f} M events/s  {found:,} matches  "
                    f"{waiting:,} groups waiting"
                )


if __name__ == "__main__":
    main()
