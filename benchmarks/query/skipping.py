"""The cost of AFTER MATCH SKIP TO, beside KEEP ALL and SKIP PAST LAST EVENT.

Each event has one triple: an A, a B or something else. A match is an A and a later B inside a
window of 100 events, or an iteration. Events are read beforehand. The script measures the processor
time of matching, for the modes in turns. `ratio` is the time of KEEP ALL divided by that of the
mode: the median, minimum and maximum of the repeats.

    python benchmarks/query/skipping.py --events 50000 --repeat 5
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
SEQUENCES = {
    "two steps": "A : B", "an iteration": "A ; B{1,3}", "a shared key": "A : B",
    "partitions": "A : B",
}  # fmt: skip
MODES = ("KEEP ALL", "SKIP PAST LAST EVENT", "SKIP TO NEXT", "SKIP TO FIRST B", "SKIP TO LAST B")


def query(name: str, mode: str) -> str:
    subject = "?k" if name in ("a shared key", "partitions") else "[]"
    partition = "PARTITION BY ?k " * (name == "partitions")
    return (
        f"PREFIX : <http://example.org/> SELECT ?a ?b WITHIN 100 EVENTS {partition}"
        f"FROM STREAM S <{STREAM}> AFTER MATCH {mode} WHERE {{ SEQ({SEQUENCES[name]}) "
        f"DEFINE GPM A ON S {{ {subject} :a ?a }} DEFINE GPM B ON S {{ {subject} :b ?b }} }}"
    )


def events(count: int, keys: int, chance: random.Random) -> Iterator[str]:
    """The events as N-Quads: a statement and its time."""
    for number in range(count):
        (kind,) = chance.choices("abx", (1, 1, 2))
        graph, key = f"<http://example.org/g{number}>", chance.randrange(keys)
        yield (
            f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> "
            f'"{number}"^^<http://www.w3.org/2001/XMLSchema#decimal> .\n'
            f"<http://example.org/k{key}> <http://example.org/{kind}> "
            f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer> {graph} .\n'
        )


def matched(program: spaseq.Program, path: Path) -> tuple[float, int]:
    """(processor time of matching, matches)."""
    run = program.start()
    batches = list(Source(STREAM, [str(path)], relevance=run.relevance).batches())
    before = process_time()
    found = sum(1 for batch in batches for _ in run.push_batch(batch)) + len(run.finish())
    return process_time() - before, found


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of AFTER MATCH SKIP TO.")
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--keys", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.nq"
        chance = random.Random(options.seed)
        path.write_text("".join(events(options.events, options.keys, chance)), encoding="utf-8")
        for name in SEQUENCES:
            programs = [spaseq.compile(query(name, mode)) for mode in MODES]
            times: list[list[float]] = [[] for _ in MODES]
            counts = [0] * len(MODES)
            for _ in range(options.repeat):
                for number, program in enumerate(programs):
                    spent, counts[number] = matched(program, path)
                    times[number].append(spent)
            print(f"{name}:")
            for number, mode in enumerate(MODES):
                pairs = zip(times[0], times[number], strict=True)
                ratios = [kept / skipped for kept, skipped in pairs]
                print(
                    f"  {mode:<21} ratio {statistics.median(ratios):.2f} "
                    f"({min(ratios):.2f} to {max(ratios):.2f})  {counts[number]:,} matches"
                )


if __name__ == "__main__":
    main()
