"""The cost of a query with a local knowledge base, by the size of the knowledge base.

The input is trades or payments of the bundled generators, and the first step of their query. The
knowledge base is padded with companies or cards that no event mentions, to 10,000 triples and more.
The same run measures two baselines: the query without its `GRAPH`, and a SPARQL query by pyoxigraph
for each event. The script prints processor times of reading and matching together, and of the first
pattern alone over events that were read before. The ratios between knowledge bases refer to the
former, the ratio to pyoxigraph, which reads no file, to the latter. All ways must return the same
rows.

    python benchmarks/kb/local.py --events 100000 --triples 10000 100000 1000000
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyoxigraph as ox

import spaseq
from spaseq.generate import write
from spaseq.io.source import Source

ROOT = "http://example.org/"


@dataclass(frozen=True)
class Workload:
    """A generated stream, the pattern over its events, and the pattern over the knowledge base."""

    dataset: str
    stream: str
    file: str
    event: str
    graph: str
    rest: str
    padding: str
    """The Turtle of a padding entity, which no event mentions; {n} is its number."""

    @property
    def kb(self) -> str:
        return f"{ROOT}{self.dataset}/kb"

    def query(self, known: bool) -> str:
        """The query, with or without its `GRAPH` part."""
        pattern = f"GRAPH <{self.kb}> {{ {self.graph} }}" if known else ""
        return f"""
        PREFIX schema: <https://schema.org/>
        PREFIX stock: <http://w3id.org/spaseq/stock#>
        PREFIX cards: <http://w3id.org/spaseq/cards#>
        SELECT * WITHIN 5 MINUTES FROM STREAM s <{self.stream}>
        WHERE {{ SEQ(First ; Then)
          DEFINE GPM First ON s {{ {self.event} {pattern} {self.rest} }}
          DEFINE GPM Then ON s {{ {self.event} FILTER(1 = 2) }} }}
        """


STOCK = Workload(
    "stock",
    f"{ROOT}stock/trades",
    "trades.nq",
    "?company stock:price ?price .",
    "?company schema:name ?name ; stock:sector ?sector",
    "FILTER(?price > 5)",
    "<{root}stock/company/x{n}> <https://schema.org/name> "
    '"x{n}" ; <http://w3id.org/spaseq/stock#sector> "Retail" .\n',
)
CARDS = Workload(
    "cards",
    f"{ROOT}cards/payments",
    "payments.nq",
    "?p cards:card ?card ; cards:amount ?amount .",
    "?card cards:account ?account",
    "FILTER(?amount > 5)",
    "<{root}cards/card/x{n}> <http://w3id.org/spaseq/cards#account> "
    "<{root}cards/account/x{n}> ; <http://w3id.org/spaseq/cards#issued> {n} .\n",
)


def padded(workload: Workload, path: Path, triples: int) -> list[ox.Triple]:
    """The generated knowledge base, padded to a number of triples."""
    found = [quad.triple for quad in ox.parse(path=str(path))]
    more = "".join(
        workload.padding.format(n=n, root=ROOT) for n in range((triples - len(found)) // 2 + 1)
    )
    return found + [quad.triple for quad in ox.parse(more, format=ox.RdfFormat.TURTLE)]


class Engine:
    """One query over the file of the stream, with a new run for each pass."""

    def __init__(self, workload: Workload, path: Path, kb: list[ox.Triple] | None):
        self._program = spaseq.compile(workload.query(kb is not None))
        self._workload, self._path, self._kb = workload, path, kb
        self._opened = spaseq.kb.open_kb({} if kb is None else {workload.kb: kb})

    def once(self) -> tuple[float, float, int, int]:
        """Seconds of reading and matching, of the first pattern alone, events, and rows of that.

        Starting is not counted. The file is read once before, so that memory is there.
        """
        run = self._program.start(kb=self._opened)
        for _ in self._source(run).batches():
            pass
        events = 0
        began = time.process_time()
        for batch in self._source(run).batches():
            events += len(batch)
            for _ in run.push_batch(batch):
                raise AssertionError("the second step is never true")
        ended = time.process_time()
        rows, batches = run.rows.matchers.row_count(0), list(self._source(run).batches())
        again = time.process_time()
        for batch in batches:
            run.rows.matchers.count(batch, 0)
        return ended - began, time.process_time() - again, events, rows

    def _source(self, run: spaseq.Run) -> Source:
        return Source(self._workload.stream, [str(self._path)], relevance=run.relevance)


def by_pyoxigraph(workload: Workload, path: Path, kb: list[ox.Triple], sample: int) -> float:
    """Events per second of pyoxigraph: each event is added to a store with the knowledge base."""
    store = ox.Store()
    store.bulk_extend(ox.Quad(*triple, ox.NamedNode(workload.kb)) for triple in kb)
    text = (
        "PREFIX schema: <https://schema.org/> PREFIX stock: <http://w3id.org/spaseq/stock#> "
        "PREFIX cards: <http://w3id.org/spaseq/cards#> "
        f"SELECT * {{ {workload.event} GRAPH <{workload.kb}> {{ {workload.graph} }} "
        f"{workload.rest} }}"
    )
    events = [event.facts for event in islice(Source(workload.stream, [str(path)]), sample)]
    started = time.process_time()
    for facts in events:
        quads = [ox.Quad(*fact) for fact in facts]
        for quad in quads:
            store.add(quad)
        for _ in store.query(text):
            pass
        for quad in quads:
            store.remove(quad)
    return len(events) / (time.process_time() - started)


def measured(
    workload: Workload, folder: Path, options: argparse.Namespace
) -> tuple[dict[str, list[tuple[float, float]]], dict[str, int], float]:
    """Events per second, in all and of the pattern alone, and rows; pyoxigraph's rate.

    The first is without a knowledge base.
    """
    write(workload.dataset, options.events, options.seed, folder)
    path = folder / workload.file
    kbs = [padded(workload, folder / "kb.ttl", n) for n in options.triples]
    engines = {"without KB": Engine(workload, path, None)}
    engines |= {f"{len(kb):,} triples": Engine(workload, path, kb) for kb in kbs}
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
    rows: dict[str, int] = {}
    for _ in range(options.repeat):
        for name, engine in engines.items():
            both, alone, events, rows[name] = engine.once()
            rates[name].append((events / both, events / alone))
    return rates, rows, by_pyoxigraph(workload, path, kbs[0], options.sample)


def main() -> None:
    parser = argparse.ArgumentParser(description="A query with a local knowledge base.")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--triples", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--dataset", choices=("stock", "cards"), nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=500, help="events for pyoxigraph")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    titles = ("events/s", "min–max", "x without", "x smallest", "pattern/s", "rows")
    for workload in (STOCK, CARDS):
        if options.dataset and workload.dataset not in options.dataset:
            continue
        print(f"{workload.dataset}: {options.events:,} events, median of {options.repeat}")
        print("{:18}{:>11}{:>20}{:>11}{:>12}{:>13}{:>10}".format("", *titles))
        with tempfile.TemporaryDirectory() as folder:
            rates, rows, peer = measured(workload, Path(folder), options)
        both = {name: statistics.median(b for b, _ in some) for name, some in rates.items()}
        alone = {name: statistics.median(m for _, m in some) for name, some in rates.items()}
        names = list(both)
        for name, some in rates.items():
            spread = f"{min(b for b, _ in some):,.0f}–{max(b for b, _ in some):,.0f}"
            print(
                f"{name:18}{both[name]:>11,.0f}{spread:>20}{both[name] / both[names[0]]:>11.2f}"
                f"{both[name] / both[names[1]]:>12.2f}{alone[name]:>13,.0f}{rows[name]:>10,}"
            )
        times = alone[names[1]] / peer
        print(f"pyoxigraph, a query per event: {peer:,.0f} events/s; pattern/s is {times:,.0f} x")


if __name__ == "__main__":
    main()
