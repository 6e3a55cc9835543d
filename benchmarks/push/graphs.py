"""`Run.push` by the form of the graph: events per second.

Each event is an observation of five triples, of which a query of two steps reads three. The same
events are pushed as pyoxigraph triples, as N-Triples and N-Quads bytes, and as rdflib graphs, all
created before the measurement. All forms must give the same matches. Two lines are baselines:
parsing the bytes with pyoxigraph, and iterating over the rdflib graphs, without any event.

    python benchmarks/push/graphs.py --events 20000 --repeat 7
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pyoxigraph as ox
import rdflib

import spaseq

STREAM = "http://example.org/s"
SENSORS = 20
VALUES = Random(1).choices(range(101), k=5003)
QUERY = f"""
PREFIX : <http://example.org/>
SELECT ?sensor ?low ?high WITHIN 60 SECONDS FROM STREAM s <{STREAM}>
WHERE {{ SEQ(A ; B)
  DEFINE GPM A ON s {{ ?o :sensor ?sensor ; :value ?low ; a :Observation FILTER(?low < 3) }}
  DEFINE GPM B ON s {{ ?p :sensor ?sensor ; :value ?high FILTER(?high > 97) }} }}
"""


def text_of(number: int, graph: str = "") -> str:
    """An observation as N-Triples, or as N-Quads of a graph."""
    example = "http://example.org/"
    subject, end = f"<{example}observation/{number}>", f"{graph} .\n"
    value = f'"{VALUES[number % len(VALUES)]}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    stamp = f'"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"'
    return (
        f"{subject} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{example}Observation>{end}"
        f"{subject} <{example}sensor> <{example}sensor/{number * 31 % SENSORS}>{end}"
        f"{subject} <{example}value> {value}{end}"
        f'{subject} <{example}unit> "°C"{end}'
        f"{subject} <{example}at> {stamp}^^<http://www.w3.org/2001/XMLSchema#dateTime>{end}"
    )


def rdflib_graph(text: str) -> rdflib.Graph:
    """The graph of an N-Triples text."""
    return rdflib.Graph().parse(data=text, format="nt")


def pushed(program: spaseq.Program, graphs: list[Any]) -> int:
    """The number of matches of a run that gets the events one by one."""
    run = program.start()
    found = 0
    for number, graph in enumerate(graphs):
        found += len(run.push(STREAM, number, graph))
    return found + len(list(run.finish()))


def main() -> None:
    parser = argparse.ArgumentParser(description="Pushed events by the form of their graph.")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    program = spaseq.compile(QUERY)
    texts = [text_of(n) for n in range(options.events)]
    graphs: dict[str, list[Any]] = {
        "pyoxigraph triples": [list(ox.parse(t, format=ox.RdfFormat.N_TRIPLES)) for t in texts],
        "N-Triples bytes": [text.encode() for text in texts],
        "N-Quads bytes": [text_of(n, f" <{STREAM}/{n}>").encode() for n in range(options.events)],
        "rdflib graphs": [rdflib_graph(text) for text in texts],
    }
    ways: dict[str, Callable[[], int]] = {
        name: partial(pushed, program, some) for name, some in graphs.items()
    }
    parse = partial(ox.parse, format=ox.RdfFormat.N_TRIPLES)
    ways["bytes, parsed only"] = lambda: sum(
        len(list(parse(text))) for text in graphs["N-Triples bytes"]
    )
    ways["rdflib, read only"] = lambda: sum(len(list(graph)) for graph in graphs["rdflib graphs"])
    rates: dict[str, list[float]] = {name: [] for name in ways}
    found: dict[str, int] = {}
    for _ in range(options.repeat):
        for name, way in ways.items():
            began = time.process_time()
            found[name] = way()
            rates[name].append(options.events / (time.process_time() - began))
    assert len({found[name] for name in graphs}) == 1, found
    print(f"{options.events:,} events, median of {options.repeat}")
    print("{:20}{:>10}{:>20}{:>14}{:>9}".format("", "events/s", "min–max", "x triples", "matches"))
    for name, some in rates.items():
        ratio = statistics.median(
            a / b for a, b in zip(some, rates["pyoxigraph triples"], strict=True)
        )
        spread = f"{min(some):,.0f}–{max(some):,.0f}"
        matches = f"{found[name]:,}" if name in graphs else ""
        print(f"{name:20}{statistics.median(some):>10,.0f}{spread:>20}{ratio:>14.2f}{matches:>9}")


if __name__ == "__main__":
    main()
