"""Matching under a hierarchy of classes: events per second with and without entailment.

Generated readings of five triples: nine in ten have a class from a tree of `--classes` classes, the
others have none. A query of two steps matches readings of the root class. The same matches are
found in five ways:

* no entailment: the same file, matched with any class (`a ?kind`);
* entailed: the same file, matched with `a :Root`; the run has the tree and `entail="rdfs"`;
* explicit types: a file in which the readings have the class `:Root` itself;
* all types in the file: a file in which the readings have their class and all superclasses;
* materialised: the first file; pyoxigraph parses each event, a table adds the superclasses, and the
  event is pushed.

Files are read as `spaseq run` reads them. `ratio` is the rate relative to the run without
entailment, the median over the rounds. `start` is the time to close the knowledge base and derive
the rules, once per run.

    python benchmarks/kb/entailment.py --events 100000
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from time import process_time

import pyoxigraph as ox

import spaseq
from spaseq.io.source import Source
from spaseq.pipeline import matches

STREAM = "http://example.org/readings"
KB = "http://example.org/schema"
BRANCHES = 10
QUERY = """
PREFIX : <http://example.org/>
SELECT ?x ?v ?w
WITHIN 60 SECONDS
FROM STREAM readings <http://example.org/readings>
WHERE {
  SEQ(High ; Low)
  DEFINE GPM High ON readings { ?x a :Root ; :value ?v FILTER(?v > 990) }
  DEFINE GPM Low  ON readings { ?x a :Root ; :value ?w FILTER(?w < 100) }
}
"""
TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
SUBCLASS = ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#subClassOf")
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"

Types = Callable[[int], Sequence[str]]


def iri(name: str) -> ox.NamedNode:
    return ox.NamedNode(f"http://example.org/{name}")


def called(number: int) -> str:
    """The name of a class of the tree; the root has a name of its own."""
    return f"C{number}" if number else "Root"


def above(number: int) -> list[str]:
    """A class of the tree and its superclasses."""
    found = [called(number)]
    while number:
        number = (number - 1) // BRANCHES
        found.append(called(number))
    return found


def tree(classes: int) -> list[ox.Triple]:
    return [
        ox.Triple(iri(called(n)), SUBCLASS, iri(called((n - 1) // BRANCHES)))
        for n in range(1, classes)
    ]


def write(path: Path, events: int, classes: int, seed: int, types: Types) -> None:
    """The readings; `types` maps a class of the tree to the types of a reading."""
    chance = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for number in range(events):
            graph, subject = f"<http://example.org/e/{number}>", iri(f"x{chance.randrange(20)}")
            inside = chance.random() < 0.9
            kind = chance.randrange(classes)
            names = types(kind) if inside else ()
            file.write(f'{graph} {TIME} "{number}"^^<{INTEGER}> .\n')
            for name in names:
                file.write(f"{subject} {TYPE} {iri(name)} {graph} .\n")
            for name in ("value", "quality", "battery", "signal"):
                value = f'"{chance.randrange(1000)}"^^<{INTEGER}>'
                file.write(f"{subject} {iri(name)} {value} {graph} .\n")


def from_file(
    program: spaseq.Program, path: Path, schema: list[ox.Triple], regime: str | None
) -> tuple[float, float, int]:
    """Seconds to start, seconds for the events, and matches."""
    started = process_time()
    run = program.start(kb={KB: schema}, entail=regime)
    start = process_time() - started
    # The garbage of the start is no part of the rate of the events.
    gc.collect()
    started = process_time()
    found = sum(1 for _ in matches(run, Source(STREAM, [str(path)], relevance=run.relevance)))
    return start, process_time() - started, found


def by_hand(program: spaseq.Program, path: Path, classes: int) -> tuple[float, float, int]:
    """The same, with every event materialised before it is pushed."""
    started = process_time()
    table = {iri(called(n)): [iri(name) for name in above(n)] for n in range(classes)}
    run = program.start()
    ready, found = process_time(), 0
    for time, facts in materialised(path, table):
        found += len(run.push(STREAM, time, facts))
    return ready - started, process_time() - ready, found + len(run.finish())


def materialised(
    path: Path, table: dict[ox.NamedNode, list[ox.NamedNode]]
) -> Iterator[tuple[int, list[ox.Triple]]]:
    with path.open("rb") as file:
        time = 0
        quads = ox.parse(file, format=ox.RdfFormat.N_QUADS)
        for graph, some in groupby(quads, key=lambda quad: quad.graph_name):
            if isinstance(graph, ox.DefaultGraph):
                time = int(next(some).object.value)  # type: ignore[union-attr]
                continue
            facts = []
            for quad in some:
                facts.append(quad.triple)
                if quad.predicate == TYPE:
                    kinds = table.get(quad.object, ())  # type: ignore[arg-type]
                    facts += [ox.Triple(quad.subject, TYPE, kind) for kind in kinds]
            yield time, facts


def main() -> None:
    parser = argparse.ArgumentParser(description="Matching under a hierarchy of classes.")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    program = spaseq.compile(QUERY)
    classless = spaseq.compile(
        QUERY.replace(":Root", "?kind", 1).replace("x a :Root", "x a ?other", 1)
    )
    schema = tree(options.classes)
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"{name}.nq" for name in ("outright", "own", "all")}
        kinds: dict[str, Types] = {
            "outright": lambda n: ["Root"],
            "own": lambda n: [called(n)],
            "all": above,
        }
        for name, path in files.items():
            write(path, options.events, options.classes, options.seed, kinds[name])
        ways: dict[str, Callable[[], tuple[float, float, int]]] = {
            "no entailment": lambda: from_file(classless, files["own"], schema, None),
            "entailed": lambda: from_file(program, files["own"], schema, "rdfs"),
            "explicit types": lambda: from_file(program, files["outright"], schema, None),
            "all types in the file": lambda: from_file(program, files["all"], schema, None),
            "materialised by hand": lambda: by_hand(program, files["own"], options.classes),
        }
        rounds = [{name: way() for name, way in ways.items()} for _ in range(options.repeat)]
    print(
        f"{options.events:,} readings, {options.classes:,} classes below one, seed {options.seed}, "
        f"median of {options.repeat}"
    )
    print(f"{'':24}{'start s':>10}{'events/s':>12}{'min–max':>22}{'ratio':>8}{'matches':>10}")
    for name in ways:
        # Ratios within a round, since the load of the machine differs between rounds.
        ratio = statistics.median(one["no entailment"][1] / one[name][1] for one in rounds)
        report(name, [one[name] for one in rounds], options.events, ratio)
    if len({one[name][2] for one in rounds for name in ways}) != 1:
        raise SystemExit("the ways find different numbers of matches")


def report(name: str, runs: list[tuple[float, float, int]], events: int, ratio: float) -> None:
    start = statistics.median(run[0] for run in runs)
    seconds = [run[1] for run in runs]
    middle = statistics.median(seconds)
    spread = f"{events / max(seconds):,.0f}–{events / min(seconds):,.0f}"
    print(
        f"{name:24}{start:>10.2f}{events / middle:>12,.0f}{spread:>22}{ratio:>8.2f}"
        f"{runs[0][2]:>10,}"
    )


if __name__ == "__main__":
    main()
