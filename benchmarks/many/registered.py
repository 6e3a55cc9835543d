"""A query that registers a stream and a query that reads it, compared with the first one alone.

The registering query matches two trades of a company with a price above a bound. Its matches become
events. The reader matches two of these events of a company (`both`), or one of them and then a
trade of the company below a second bound (`mixed`), so that it also reads the input stream. The
bound determines how many events complete a match. `alone` is the registering query without
`REGISTER` and without a reader. Passes are interleaved; times are processor times without reading.
Each variant also runs with every event processed in Python (`without the loop`), and must then find
the same matches.

    python benchmarks/many/registered.py --events 100000 --repeat 3
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time

import spaseq
from spaseq.engine.evaluation import Evaluation
from spaseq.io.source import Source
from spaseq.rdf.native._terms import EventBatch

sys.path.insert(0, str(Path(__file__).parents[1] / "micro"))

from read_nquads import STOCK, write_stream

STREAM = "http://example.org/trades"
PREFIX = f"PREFIX : <{STOCK}>"
BODY = f"""
WITHIN 2 MINUTES FROM STREAM trades <{STREAM}> WHERE {{
  SEQ(A ; B)
  DEFINE GPM A ON trades {{ ?a :company ?company ; :price ?p FILTER(?p > BOUND) }}
  DEFINE GPM B ON trades {{ ?b :company ?company ; :price ?q FILTER(?q > BOUND) }} }}
"""
ALONE = f"{PREFIX} SELECT ?company ?q {BODY}"
WRITER = f"{PREFIX} REGISTER STREAM :high AS CONSTRUCT {{ ?company :high ?q }} {BODY}"
READER = f"""{PREFIX}
SELECT ?company WITHIN 5 MINUTES FROM STREAM high :high WHERE {{
  SEQ(C ; D)
  DEFINE GPM C ON high {{ ?company :high ?p }}
  DEFINE GPM D ON high {{ ?company :high ?q }} }}
"""

MIXED = f"""{PREFIX}
SELECT ?company ?q WITHIN 5 MINUTES FROM STREAM high :high FROM STREAM trades <{STREAM}> WHERE {{
  SEQ(C ; D)
  DEFINE GPM C ON high {{ ?company :high ?p }}
  DEFINE GPM D ON trades {{ ?d :company ?company ; :price ?q FILTER(?q < 50) }} }}
"""


def timed(queries: Sequence[str], path: Path) -> tuple[float, int, int]:
    """Processor seconds of matching; the matches of the first query, and of all others."""
    run = spaseq.compile(list(queries)).start()
    batches: list[EventBatch] = list(Source(STREAM, [str(path)], relevance=run.relevance).batches())
    begun = process_time()
    found = [match.query for batch in batches for match in run.push_batch(batch)]
    found += [match.query for match in run.finish()]
    seconds = process_time() - begun
    first = sum(name == "query1" for name in found)
    return seconds, first, len(found) - first


def in_python(task: Callable[[], tuple[float, int, int]]) -> tuple[float, int, int]:
    """The same with the loop of several queries switched off."""
    multi = Evaluation.multi
    Evaluation.multi = lambda self: None  # type: ignore[method-assign]
    try:
        return task()
    finally:
        Evaluation.multi = multi  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--bounds", type=float, nargs="+", default=[99.0, 97.0, 90.0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    print(
        f"{given.events:,} trades, seed {given.seed}, processor time, median of {given.repeat}, "
        f"load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trades.nq"
        write_stream(path, given.events, given.seed)
        for bound in given.bounds:
            alone, writer = (text.replace("BOUND", str(bound)) for text in (ALONE, WRITER))
            both, mixed = [writer, READER], [writer, MIXED]
            ways: dict[str, Callable[[], tuple[float, int, int]]] = {
                "alone": lambda alone=alone: timed([alone], path),
                "both": lambda both=both: timed(both, path),
                "both without the loop": lambda both=both: in_python(lambda: timed(both, path)),
                "mixed": lambda mixed=mixed: timed(mixed, path),
                "mixed without the loop": lambda mixed=mixed: in_python(lambda: timed(mixed, path)),
            }
            times: dict[str, list[float]] = {name: [] for name in ways}
            found: dict[str, tuple[int, int]] = {}
            for _ in range(given.repeat):
                for name, task in ways.items():
                    seconds, *counts = task()
                    times[name].append(seconds)
                    found[name] = (counts[0], counts[1])
            for name in ("both", "mixed"):
                assert found[name] == found[f"{name} without the loop"], found
                assert sum(found["alone"]) == found[name][0], found
            base = statistics.median(times["alone"])
            print(
                f"\nabove {bound}: {found['both'][0]:,} registered; matches of the reader: "
                f"{found['both'][1]:,}, mixed {found['mixed'][1]:,}"
            )
            for name, some in times.items():
                middle = statistics.median(some)
                print(
                    f"  {name:24}{middle * 1e3:9.1f} ms ({min(some) * 1e3:.1f} to "
                    f"{max(some) * 1e3:.1f}){given.events / middle:13,.0f} events/s"
                    f"{middle / base:8.2f} of alone"
                )


if __name__ == "__main__":
    main()
