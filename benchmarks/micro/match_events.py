"""Matching one graph pattern against encoded events: events per second.

There are two workloads: generated trades of seven triples with a star of two patterns and a filter;
and published weather observations of 115 triples with a star and a path of six patterns
(`rdf-streams/assist-iot-weather.nq.gz` in the folder that SPASEQ_DATA names; omitted if that is
unset). Three matchers process each event: the native matcher, over encoded batches; pyoxigraph,
with a store created for the event from parsed quads, and a query; and rdflib, with a graph created
beforehand and a prepared query. The last two process a sample of `--sample` events and must find
the same number of solutions in it.

    python benchmarks/micro/match_events.py --events 100000
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import statistics
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from time import perf_counter

import pyoxigraph as ox
import rdflib
from rdflib.plugins.sparql import prepareQuery

from spaseq.gpm.matchers import Matchers
from spaseq.gpm.pattern import compile_pattern
from spaseq.gpm.program import compile_gpm
from spaseq.parser import parse
from spaseq.rdf.event import Fact
from spaseq.rdf.native._terms import EventBatch

TRADES = """PREFIX : <http://example.org/>
SELECT * WHERE { ?c :price ?p . ?c :volume ?v FILTER(?p > 20) }"""
WEATHER = """PREFIX sosa: <http://www.w3.org/ns/sosa/>
PREFIX om: <http://www.ontology-of-units-of-measure.org/resource/om-2/>
SELECT * WHERE {
  ?observation sosa:resultTime ?time ; sosa:observedProperty ?property ; sosa:madeBySensor ?sensor .
  ?result sosa:isResultOf ?observation ; om:hasNumericalValue ?value ; om:hasUnit ?unit
}"""
BATCH = 512

Events = Sequence[Sequence[Fact]]


def trades(count: int, seed: int) -> Events:
    """Generated events of seven triples."""
    chance = random.Random(seed)
    decimal = ox.NamedNode("http://www.w3.org/2001/XMLSchema#decimal")
    names = ("type", "price", "volume", "currency", "venue", "broker", "note")
    predicates = [ox.NamedNode(f"http://example.org/{name}") for name in names]
    events = []
    for number in range(count):
        subject = ox.NamedNode(f"http://example.org/trade/{number}")
        values = (
            ox.NamedNode("http://example.org/Trade"),
            ox.Literal(f"{chance.uniform(10, 60):.2f}", datatype=decimal),
            ox.Literal(chance.randrange(1, 2000)),
            ox.Literal("EUR"),
            ox.NamedNode(f"http://example.org/venue/{chance.randrange(20)}"),
            ox.NamedNode(f"http://example.org/broker/{chance.randrange(500)}"),
            ox.Literal(f"order {number}", language="en"),
        )
        events.append([(subject, p, o) for p, o in zip(predicates, values, strict=True)])
    return events


def weather(folder: str) -> Events:
    """The published observations, one list of facts for each graph."""
    path = Path(folder) / "rdf-streams" / "assist-iot-weather.nq.gz"
    with gzip.open(path) as file:
        quads = ox.parse(file, format=ox.RdfFormat.N_QUADS)
        grouped = groupby(quads, key=lambda quad: quad.graph_name)
        return [[(q.subject, q.predicate, q.object) for q in graph] for _, graph in grouped]


def native(query: str, events: Events, repeat: int) -> tuple[list[float], int]:
    """Seconds per pass of the native matcher over encoded batches, and the solutions."""
    text = query.replace(
        "WHERE {", "WITHIN 1 SECOND FROM STREAM s <urn:s> WHERE { SEQ(A) DEFINE GPM A ON s {", 1
    )
    gpm = parse(text + " }").defines[0]
    matchers = Matchers([compile_pattern(compile_gpm(gpm.pattern, None, None))], None)
    batches = []
    for first in range(0, len(events), BATCH):
        batch = EventBatch(matchers.dictionary)
        for facts in events[first : first + BATCH]:
            batch.add(facts)
        batches.append(batch)
    return timed(lambda: sum(matchers.count(batch, 0) for batch in batches), repeat)


def by_pyoxigraph(query: str, events: Events, repeat: int) -> tuple[list[float], int]:
    """Seconds and solutions of pyoxigraph, with a store and a query per event."""
    quads = [[ox.Quad(*fact) for fact in facts] for facts in events]

    def once() -> int:
        found = 0
        for some in quads:
            store = ox.Store()
            store.extend(some)
            solutions = store.query(query)
            assert isinstance(solutions, ox.QuerySolutions)
            found += sum(1 for _ in solutions)
        return found

    return timed(once, repeat)


def by_rdflib(query: str, events: Events, repeat: int) -> tuple[list[float], int]:
    """Seconds and solutions of rdflib, with a prepared query over graphs created beforehand."""
    prepared = prepareQuery(query)
    graphs = []
    for facts in events:
        graph = rdflib.Graph()
        text = "".join(f"{s} {p} {o} .\n" for s, p, o in facts)
        graph.parse(data=text, format="nt")
        graphs.append(graph)
    return timed(lambda: sum(len(graph.query(prepared)) for graph in graphs), repeat)


def timed(work: Callable[[], int], repeat: int) -> tuple[list[float], int]:
    """The seconds of several passes, and their count."""
    seconds, found = [], 0
    for _ in range(repeat):
        started = perf_counter()
        found = work()
        seconds.append(perf_counter() - started)
    return seconds, found


def report(name: str, query: str, events: Events, sample: int, repeat: int) -> None:
    some = events[:sample]
    seconds, found = native(query, events, repeat)
    _, in_sample = native(query, some, 1)
    size = len(events[0])
    print(f"{name}: {len(events):,} events of {size} triples, {found:,} solutions")
    print(f"{'':28}{'events/s':>14}{'min–max':>24}{'native is':>12}{'solutions':>12}")
    rate = len(events) / statistics.median(seconds)
    row("native, encoded batches", len(events), seconds, rate, found)
    for title, peer in (("pyoxigraph, store per event", by_pyoxigraph), ("rdflib", by_rdflib)):
        seconds, found = peer(query, some, max(1, repeat // 2))
        row(title, len(some), seconds, rate, found)
        if found != in_sample:
            raise SystemExit(f"{title} finds {found} solutions where {in_sample} are expected")


def row(title: str, count: int, seconds: Sequence[float], rate: float, found: int) -> None:
    own = count / statistics.median(seconds)
    spread = f"{count / max(seconds):,.0f}–{count / min(seconds):,.0f}"
    print(f"{title:28}{own:>14,.0f}{spread:>24}{rate / own:>11,.0f}x{found:>12,}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Matching graph patterns against read events.")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--sample", type=int, default=2_000, help="events that the peers match")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    generated = trades(options.events, options.seed)
    report("trades", TRADES, generated, options.sample, options.repeat)
    folder = os.environ.get("SPASEQ_DATA")
    if folder is None:
        print("weather: left out, SPASEQ_DATA is not set")
    else:
        published = weather(folder)[: options.events]
        report("weather", WEATHER, published, options.sample // 10, options.repeat)


if __name__ == "__main__":
    main()
