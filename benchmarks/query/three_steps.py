"""A three-step query over generated trades: events per second, matches, and memory over time.

The query matches a trade of many shares, then a higher price of the same company, then a price
below the first, within five minutes. A trade has seven quads, or `--quads`, besides its time; the
query uses price and volume. Events are read as `spaseq run` reads them: in encoded batches, without
the triples that the query cannot use.

The baseline is the time of reading alone in the same run: once without pruning, and once with the
pruning of this query. The cost of the query is printed as a multiple of the former, which depends
less on other load than a rate. All times are processor times. `--volume` sets the minimum of the
first trade's shares, and so the number of matches; each match becomes a Python object, which costs
more than many events. Memory is that of the process after each tenth of the events. It must not
grow, since the window is constant.

    python benchmarks/query/three_steps.py --events 200000
    python benchmarks/query/three_steps.py --events 200000 --volume 990
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import process_time

import psutil

import spaseq
from spaseq.generate import write
from spaseq.io.source import Source
from spaseq.pipeline import Progress, matches
from spaseq.rdf.native._terms import Dictionary, Relevance

STREAM = "http://example.org/stock/trades"
QUERY = """
PREFIX stock: <http://w3id.org/spaseq/stock#>
SELECT ?company ?p1 ?p2 ?p3
WITHIN 5 MINUTES
FROM STREAM trades <http://example.org/stock/trades>
WHERE {
  SEQ(Big ; Higher ; Lower)
  DEFINE GPM Big    ON trades { ?company stock:price ?p1 ; stock:volume ?n FILTER(?n > ?many) }
  DEFINE GPM Higher ON trades { ?company stock:price ?p2 FILTER(?p2 > ?p1) }
  DEFINE GPM Lower  ON trades { ?company stock:price ?p3 FILTER(?p3 < ?p1) }
}
"""
SAMPLES = 10
FURTHER = (
    "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://w3id.org/spaseq/stock#Trade>",
    "<http://w3id.org/spaseq/stock#exchange> <http://example.org/stock/exchange/{0}>",
    '<http://w3id.org/spaseq/stock#number> "{1}"^^<http://www.w3.org/2001/XMLSchema#integer>',
    "<http://w3id.org/spaseq/stock#currency> <http://example.org/stock/currency/euro>",
    '<http://w3id.org/spaseq/stock#note> "the trade that was number {1}"',
)


def resident() -> float:
    """The memory of this process in megabytes."""
    return float(psutil.Process().memory_info().rss) / 1e6


def widen(trades: Path, wider: Path, quads: int) -> None:
    """Pad trades, which have two quads and a time, to a number of quads."""
    with trades.open(encoding="utf-8") as lines, wider.open("w", encoding="utf-8") as out:
        for number, (time, price, volume) in enumerate(batched(lines, 3)):
            trade = time.split(" ", 1)[0]
            out.write(time)
            for said in FURTHER[: quads - 2]:
                out.write(f"{trade} {said.format(number % 5, number)} {trade} .\n")
            out.writelines((price, volume))


def batched(lines: Iterable[str], size: int) -> Iterator[tuple[str, ...]]:
    """The lines of a file in chunks."""
    return zip(*[iter(lines)] * size, strict=True)


def read(source: Source) -> int:
    """Read the events of a file and drop them."""
    return sum(len(batch) for batch in source.batches())


def match(path: Path, program: spaseq.Program, events: int) -> tuple[int, list[float]]:
    """The number of matches in a file, and the memory after each tenth of its events."""
    memory: list[float] = []
    every = max(1, events // SAMPLES)

    def observe(progress: Progress) -> None:
        while (len(memory) + 1) * every <= progress.events and len(memory) < SAMPLES:
            memory.append(resident())

    run = program.start()
    source = Source(STREAM, [str(path)], relevance=run.relevance)
    found = sum(1 for _ in matches(run, source, observe=observe))
    return found, memory


def main() -> None:
    parser = argparse.ArgumentParser(description="A three-step query over generated trades.")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quads", type=int, default=7, choices=range(2, 8))
    parser.add_argument("--volume", type=int, default=500)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    program = spaseq.compile(QUERY).bind({"many": options.volume})
    reading, pruned, matching = list[float](), list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        trades = Path(folder) / "wider.nq"
        generated = write("stock", options.events, options.seed, Path(folder))[0]
        widen(generated, trades, options.quads)
        for _ in range(options.repeat):
            everything, used = Relevance(Dictionary()), program.start().relevance
            for relevance, times in ((everything, reading), (used, pruned)):
                started = process_time()
                events = read(Source(STREAM, [str(trades)], relevance=relevance))
                times.append(process_time() - started)
            started = process_time()
            found, memory = match(trades, program, events)
            matching.append(process_time() - started)
    print(
        f"{events:,} trades of {options.quads} quads, SEQ(Big ; Higher ; Lower) within 5 minutes, "
        f"volume above {options.volume}, seed {options.seed}, median of {options.repeat}"
    )
    print(f"{'':22}{'seconds':>9}{'min–max':>13}{'events/s':>11}{'x reading':>11}{'matches':>10}")
    yardstick = statistics.median(reading)
    for name, seconds, number in (
        ("reading alone", reading, ""),
        ("reading what it uses", pruned, ""),
        ("reading and matching", matching, f"{found:,}"),
    ):
        middle = statistics.median(seconds)
        spread = f"{min(seconds):.2f}–{max(seconds):.2f}"
        rate, ratio = f"{events / middle:,.0f}", f"{middle / yardstick:.2f}"
        line = f"{name:22}{middle:>9.2f}{spread:>13}{rate:>11}{ratio:>11}{number:>10}"
        print(line.rstrip())
    print("memory in MB after each tenth: " + " ".join(f"{size:.0f}" for size in memory))


if __name__ == "__main__":
    main()
