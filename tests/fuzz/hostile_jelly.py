"""Drawn and damaged Jelly streams, read by the compiled reader and by pyjelly.

A stream is drawn (terms of all kinds, small lookup tables, frames of any size, namespaces), written
by pyjelly, and then damaged: bytes are changed, removed or doubled, or fields of a frame are
reordered. Both readers must find the same events and report the same number of errors, and neither
may crash. If a message of Protocol Buffers has a field twice, the compiled reader refuses a part
that pyjelly merges; for such streams, only the events before the error are compared.

    python tests/fuzz/hostile_jelly.py 0 99999
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyoxigraph as ox

sys.path.insert(0, str(Path(__file__).parent.parent / "unit" / "io"))

from jelly_writing import delimited, jelly_frames
from pyjelly import jelly
from pyjelly.options import LookupPreset

from spaseq.errors import InputError
from spaseq.io import formats
from spaseq.io.lines import Lines
from spaseq.io.read_options import Framing, ReadOptions
from spaseq.io.source import Source

XSD = "http://www.w3.org/2001/XMLSchema#"
TIMES = ("http://www.w3.org/ns/prov#generatedAtTime", "http://www.w3.org/ns/sosa/resultTime")


def drawn_stream(draw: random.Random) -> list[jelly.RdfStreamFrame]:
    """Frames of a valid stream, with some statements that are not valid RDF."""
    from pyjelly.integrations.generic import generic_sink as generic

    def iri() -> ox.NamedNode:
        front = draw.choice(["e:", "http://e.org/", "http://e.org/a#", "urn:x:"])
        return ox.NamedNode(f"{front}{draw.choice('abcdé')}{draw.randrange(draw.choice([3, 60]))}")

    def value(depth: int = 0) -> object:
        kind = draw.randrange(14)
        if kind < 4:
            return iri()
        if kind < 6:
            return ox.BlankNode(draw.choice(["b", "x1", "jelly-61", "a.b"]))
        if kind < 8:
            return ox.Literal(
                draw.choice(["", "x", 'q"\\\n', "é€"]), language=draw.choice(["en", "de-at"])
            )
        if kind < 12:
            name = draw.choice(["integer", "decimal", "string", "dateTime"])
            return ox.Literal(str(draw.randrange(99)), datatype=ox.NamedNode(XSD + name))
        if kind == 12 and depth < 3 and draw.random() < 0.2:
            return generic.Triple(iri(), iri(), value(depth + 1))
        if draw.random() < 0.1:
            return draw.choice(
                [generic.IRI("no iri"), generic.Literal("x", "e_n"), generic.BlankNode("a b")]
            )
        return ox.Literal(draw.choice(["plain", "x" * 300]))

    physical = draw.choice(["triples", "quads", "graphs"])
    lookup = LookupPreset(draw.choice([8, 9, 128]), draw.choice([0, 1, 8]), draw.choice([1, 3, 32]))
    frames = []
    second = 0
    for _ in range(draw.randrange(1, 8)):
        statements = []
        graph = draw.choice([iri(), ox.BlankNode("g"), ox.DefaultGraph()])
        for _ in range(draw.randrange(6)):
            subject = draw.choice([iri(), iri(), ox.BlankNode("s"), graph])
            if isinstance(subject, ox.DefaultGraph):
                subject = iri()
            statements.append((subject, iri(), value(), graph))
        if draw.random() < 0.9:
            second += draw.randrange(2)
            stamp = ox.Literal(str(second), datatype=ox.NamedNode(XSD + "integer"))
            about = graph if isinstance(graph, ox.NamedNode) else iri()
            where = draw.choice([graph, ox.DefaultGraph()])
            statements.append((about, ox.NamedNode(draw.choice(TIMES)), stamp, where))
        frames.append(statements)
    names = {"ex": "http://e.org/a#"} if draw.random() < 0.3 else None
    return jelly_frames(frames, physical, namespaces=names, lookup=lookup)


def damaged(draw: random.Random, data: bytes) -> bytes:
    """The bytes with some changes."""
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 5])):
        if not changed:
            break
        at = draw.randrange(len(changed))
        kind = draw.randrange(5)
        if kind == 0:
            changed[at] = draw.randrange(256)
        elif kind == 1:
            changed[at] ^= 1 << draw.randrange(8)
        elif kind == 2:
            del changed[at : at + draw.randrange(1, 9)]
        elif kind == 3:
            changed[at:at] = changed[at : at + draw.randrange(1, 30)]
        else:
            changed[at : at + 4] = b"\xff\xff\xff\xff"
    return bytes(changed)


@contextmanager
def by_pyjelly() -> Iterator[None]:
    """Read Jelly statement by statement within this context."""
    table = formats.STREAM_SYNTAXES
    known = table["jelly"]
    table["jelly"] = replace(known, steps=None)  # type: ignore[index]
    try:
        yield
    finally:
        table["jelly"] = known  # type: ignore[index]


def outcome(data: bytes, events: str, on_error: str) -> tuple[list[object], list[str]]:
    """The events of a file, and the errors."""
    import io

    said: list[str] = []
    options = ReadOptions(Framing.parse(events), on_error=on_error, syntax="jelly")  # type: ignore[arg-type]
    source = Source("urn:s", ["s.jelly"], options, log=said.append)
    source.open_lines = lambda path: Lines(path, io.BytesIO(data))
    found: list[object] = []
    try:
        for event in source:
            name = event.name
            found.append((event.time, event.ordinal, name, event.facts, event.origin))
    except InputError as error:
        said.append(str(error))
    return found, said


def compare(seed: int) -> str:
    """The differences between the two readers; empty if there are none."""
    draw = random.Random(seed)
    frames = drawn_stream(draw)
    data = delimited(frames)
    if len(frames) == 1 and draw.random() < 0.5:
        data = frames[0].SerializeToString()
    is_damaged = draw.random() < 0.8
    if is_damaged:
        data = damaged(draw, data)
    events, on_error = draw.choice(["message", "graph"]), draw.choice(["stop", "skip"])
    own, own_said = outcome(data, events, on_error)
    with by_pyjelly():
        reference, said = outcome(data, events, on_error)
    if any("in two parts" in text for text in own_said):
        same = own == reference[: len(own)] or on_error == "skip"
        return "" if same else f"{own}\n{reference}"
    if own != reference:
        return f"{own} {own_said}\n{reference} {said}"
    if len(own_said) != len(said):
        return f"{own_said}\n{said}"
    for mine, theirs in zip(own_said, said, strict=True):
        if mine != theirs and not ("not Jelly" in mine and "not Jelly" in theirs):
            return f"{mine}\n{theirs}"
    return ""


def main() -> int:
    first, last = int(sys.argv[1]), int(sys.argv[2])
    differences = 0
    for seed in range(first, last + 1):
        found = compare(seed)
        if found:
            differences += 1
            print(f"seed {seed}:\n{found}")
    print(f"{last - first + 1} streams")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
