"""Streams of readings and a remote knowledge base, for tests of how the two meet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyoxigraph as ox

import spaseq
from spaseq.io.source import Source
from spaseq.rdf.native._terms import EventBatch
from spaseq.results import Match

EX = "http://example.org/"
STREAM = EX + "S"
ONE_STEP = (
    f"PREFIX : <{EX}> SELECT ?s ?r WITHIN 1 MINUTE FROM STREAM S :S "
    "WHERE { SEQ(A) DEFINE GPM A ON S { ?s :v ?v GRAPH :kb { ?s :in ?r } } }"
)
TWO_STEPS = (
    f"PREFIX : <{EX}> SELECT ?s ?t ?r WITHIN 1 MINUTE FROM STREAM S :S WHERE {{ SEQ(A ; B) "
    "DEFINE GPM A ON S { ?s :v ?v GRAPH :kb { ?s :in ?r } FILTER(?v > 0) } "
    "DEFINE GPM B ON S { ?t :v ?w GRAPH :kb { ?t :in ?r } FILTER(?t != ?s) } }"
)
STRICT = TWO_STEPS.replace("A ; B", "A , B")


def rooms(count: int, offset: int = 0, each: int = 2) -> str:
    """Turtle: sensor n is in room n // each."""
    return "".join(f"<{EX}s{n}> <{EX}in> <{EX}r{n // each + offset}> .\n" for n in range(count))


def readings(path: Path, sensors: Sequence[int]) -> Path:
    """A file of one event a second, each of one sensor."""
    lines = []
    for time, n in enumerate(sensors):
        graph = f"<{EX}e{time}>"
        lines.append(f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{time}"^^<{INTEGER}> .')
        lines.append(f'<{EX}s{n}> <{EX}v> "{n}"^^<{INTEGER}> {graph} .')
    path.write_text("\n".join(lines) + "\n")
    return path


INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def read(run: spaseq.Run, path: Path) -> list[Match]:
    """All matches of a file, read in encoded batches."""
    source = Source(STREAM, [str(path)], relevance=run.relevance)
    found = [match for batch in source.batches() for match in run.push_batch(batch)]
    return found + run.finish()


def batch_of(run: spaseq.Run, sensors: Sequence[int], first: int = 0) -> EventBatch:
    """One batch of such events from a time on, as a reader hands it over."""
    batch = EventBatch(run.rows.matchers.dictionary, stream=STREAM)
    for time, n in enumerate(sensors, first):
        fact = ox.NamedNode(f"{EX}s{n}"), ox.NamedNode(EX + "v"), ox.Literal(n)
        batch.add([fact], time * 1_000_000)
    return batch


def one(run: spaseq.Run, time: int, sensor: int) -> list[Match]:
    """One event, pushed."""
    triple = f'<{EX}s{sensor}> <{EX}v> "{sensor}"^^<{INTEGER}> .'
    return run.push(STREAM, time, triple.encode())


def shown(matches: Sequence[Match]) -> list[str]:
    """What each match binds, in short."""
    return [
        " ".join(f"{name}={term.value.removeprefix(EX)}" for name, term in m.bindings.items())
        for m in matches
    ]
