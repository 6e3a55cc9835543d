"""Events → files that are streams again: `spaseq convert`.

N-Quads, TriG and JSON-LD have one named graph per event, after its time in the default graph (the
framing `graph`). N-Triples, Turtle and `messages` (N-Quads) have one RDF Message per event, and
Jelly one frame per event: their time is one of the event's triples, and is added if it is not.
Times are written independently of the reader's unit, and so that `AT` binds what it bound: a number
in seconds as it was written. An event without a name gets one if the syntax
needs it. Memory: one event.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, BinaryIO

import pyoxigraph as ox

from spaseq.errors import EventError, SpaseqError
from spaseq.io.native._events import event_lines
from spaseq.io.rdf_writer import GENERATED_AT, PREFIXES, json_ld_graph, short, statements
from spaseq.io.time_path import MESSAGE_TIMES
from spaseq.rdf.event import Term, Timestamp
from spaseq.rdf.native._terms import EventBatch
from spaseq.rdf.time import canonical_literal, from_literal

if TYPE_CHECKING:
    from spaseq.io.formats import EventWriter

_RANKS = {ox.NamedNode(iri): rank for rank, iri in enumerate(MESSAGE_TIMES)}
_TIMES = [f"<{iri}>".encode() for iri in MESSAGE_TIMES]
_VERSION = b'VERSION "1.1-messages"\n'


class _Named:
    """Names of events, for writers over a file of bytes."""

    def __init__(self, out: BinaryIO):
        self._out = out
        self._events = 0

    def name(self, batch: EventBatch, index: int) -> ox.NamedNode | ox.BlankNode:
        """The name of an event, or a name made from its number."""
        self._events += 1
        return batch.name(index) or ox.NamedNode(f"urn:spaseq:event:{self._events}")

    def close(self) -> None:
        """Nothing follows the last event."""


class GraphLines(_Named):
    """N-Quads: the time of the event, then its quads."""

    def write(self, batch: EventBatch, index: int) -> None:
        name = self.name(batch, index)
        stamp = stamp_of(batch.time(index))
        self._out.write(f"{name} {GENERATED_AT} {stamp} .\n".encode())
        self._out.write(event_lines(batch, index, f" {name} .\n".encode()))


class GraphBlocks(_Named):
    """TriG: the time of the event, then the block of its graph."""

    def __init__(self, out: BinaryIO):
        super().__init__(out)
        out.write(PREFIXES.encode())

    def write(self, batch: EventBatch, index: int) -> None:
        name = self.name(batch, index)
        stamp = short(stamp_of(batch.time(index)))
        lines = statements(batch.facts(index), "    ")
        block = f"{lines} .\n" if lines else ""
        self._out.write(f"\n{name} prov:generatedAtTime {stamp} .\n{name} {{\n{block}}}\n".encode())


class GraphArray(_Named):
    """JSON-LD: an array of named graphs with their times."""

    def __init__(self, out: BinaryIO):
        super().__init__(out)
        out.write(b"[")

    def write(self, batch: EventBatch, index: int) -> None:
        graph = json_ld_graph(
            self.name(batch, index), stamp_of(batch.time(index)), batch.facts(index)
        )
        text = json.dumps(graph, ensure_ascii=False)
        self._out.write(f"{',' if self._events > 1 else ''}\n{text}".encode())

    def close(self) -> None:
        """End the array."""
        self._out.write(b"\n]\n")


class MessageQuads(_Named):
    """RDF Messages in N-Quads, with the names of the events."""

    names_graphs = True

    def __init__(self, out: BinaryIO):
        super().__init__(out)
        out.write(_VERSION)

    def write(self, batch: EventBatch, index: int) -> None:
        name = self.name(batch, index)
        tail = f" {name} .\n".encode() if self.names_graphs else b" .\n"
        lines = event_lines(batch, index, tail)
        if not any(time in lines for time in _TIMES) or needs_time(batch, index):
            stamp = stamp_of(batch.time(index))
            lines = f"{name} {GENERATED_AT} {stamp} .\n".encode() + lines
        self._out.write(lines + b"MESSAGE\n")


class MessageTriples(MessageQuads):
    """The same in N-Triples."""

    names_graphs = False


class MessageDocuments(_Named):
    """RDF Messages in Turtle."""

    def __init__(self, out: BinaryIO):
        super().__init__(out)
        out.write(_VERSION + PREFIXES.encode())

    def write(self, batch: EventBatch, index: int) -> None:
        name, facts = self.name(batch, index), batch.facts(index)
        if needs_time(batch, index):
            facts = [(name, GENERATED_AT, stamp_of(batch.time(index))), *facts]
        self._out.write(f"{statements(facts, '')} .\nMESSAGE\n".encode())


class Frames(_Named):
    """Jelly: one frame per event."""

    def __init__(self, out: BinaryIO):
        super().__init__(out)
        from spaseq.io.jelly_writer import JellyFrames

        self._frames = JellyFrames(out)

    def write(self, batch: EventBatch, index: int) -> None:
        name = self.name(batch, index)
        quads = [ox.Quad(*fact, name) for fact in batch.facts(index)]  # type: ignore[arg-type]
        if needs_time(batch, index):
            quads.insert(0, ox.Quad(name, GENERATED_AT, stamp_of(batch.time(index))))
        self._frames.write(quads)

    def close(self) -> None:
        self._frames.close()


def stamp_of(time: Timestamp) -> ox.Literal:
    """The literal of a time: the number as it was written if that counts seconds."""
    if time.written is not None and _says(time.written, time):
        return time.written
    return canonical_literal(time)


def needs_time(batch: EventBatch, index: int) -> bool:
    """Whether the time of an event must be added to its triples for a reader of messages.

    Raises:
        SpaseqError: if the reader would find another time, which it prefers to all others.
    """
    time = batch.time(index)
    ranked = [fact for fact in batch.facts(index) if fact[1] in _RANKS]
    if not ranked:
        return True
    best = min(_RANKS[fact[1]] for fact in ranked)  # type: ignore[index]
    if all(_says(fact[2], time) for fact in ranked if _RANKS[fact[1]] == best):  # type: ignore[index]
        return False
    if best:
        return True
    shown = canonical_literal(time).value
    raise SpaseqError(
        f"{batch.file}:{batch.line(index)}: the event of {shown} cannot be a message: its graph "
        f"has another {GENERATED_AT}; convert it to N-Quads, TriG or JSON-LD"
    )


def _says(term: Term, time: Timestamp) -> bool:
    """Whether a term is a literal of a time, where numbers count seconds."""
    if not isinstance(term, ox.Literal):
        return False
    try:
        return from_literal(term) == time
    except EventError:
        return False


def write_events(
    batches: Iterable[EventBatch], writer: EventWriter, out: BinaryIO, live: bool
) -> int:
    """Write the events of batches, flushed after each batch if `live`; returns their number.

    If reading fails, the events before the error are written.
    """
    count = 0
    for batch in batches:
        for index in range(len(batch)):
            writer.write(batch, index)
        count += len(batch)
        if live:
            out.flush()
    return count
