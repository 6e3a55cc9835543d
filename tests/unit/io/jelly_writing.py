"""Quads of pyoxigraph to Jelly, written by pyjelly, in frames of the test's choice."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

import pyoxigraph as ox
from pyjelly import jelly
from pyjelly.integrations.generic import generic_sink as generic
from pyjelly.integrations.generic.serialize import GenericSinkTermEncoder
from pyjelly.options import LookupPreset, StreamParameters
from pyjelly.serialize.ioutils import write_delimited
from pyjelly.serialize.streams import (
    GraphStream,
    QuadStream,
    SerializerOptions,
    Stream,
    TripleStream,
)

STREAMS: dict[str, type[Stream]] = {
    "triples": TripleStream,
    "quads": QuadStream,
    "graphs": GraphStream,
}


def parsed(text: str) -> list[ox.Quad]:
    """The quads of an N-Quads text."""
    return list(ox.parse(text.encode(), format=ox.RdfFormat.N_QUADS))


def term(given: object) -> object:
    """A term of pyoxigraph as one of pyjelly; others are left as they are."""
    if isinstance(given, ox.NamedNode):
        return generic.IRI(given.value)
    if isinstance(given, ox.BlankNode):
        return generic.BlankNode(given.value)
    if isinstance(given, ox.Literal):
        if given.language:
            return generic.Literal(given.value, given.language)
        return generic.Literal(given.value, None, given.datatype.value)
    if isinstance(given, ox.Triple | generic.Triple):
        return generic.Triple(*map(term, given))
    return generic.DefaultGraph if isinstance(given, ox.DefaultGraph) else given


def jelly_frames(
    frames: Iterable[Sequence[Iterable[object]]],
    physical: str = "quads",
    *,
    namespaces: dict[str, str] | None = None,
    logical: int = jelly.LOGICAL_STREAM_TYPE_UNSPECIFIED,
    lookup: LookupPreset | None = None,
    metadata: dict[str, bytes] | None = None,
) -> list[jelly.RdfStreamFrame]:
    """One message per frame; `frames` hold quads, or tuples of four terms."""
    lookup = lookup or LookupPreset.small()
    stream = STREAMS[physical](
        encoder=GenericSinkTermEncoder(lookup_preset=lookup),
        options=SerializerOptions(
            logical_type=logical,
            lookup_preset=lookup,
            params=StreamParameters(
                delimited=False, namespace_declarations=bool(namespaces), rdf_star=True
            ),
        ),
    )
    stream.enroll()
    for name, iri in (namespaces or {}).items():
        stream.namespace_declaration(name, iri)
    written = []
    for statements in frames:
        _write(stream, [[term(part) for part in statement] for statement in statements])
        frame = stream.flow.to_stream_frame() or jelly.RdfStreamFrame()
        for key, value in (metadata or {}).items():
            frame.metadata[key] = value
        written.append(frame)
    return written


def _write(stream: Stream, statements: list[list[object]]) -> None:
    if isinstance(stream, GraphStream):
        at = 0
        while at < len(statements):
            name = statements[at][3]
            end = at
            while end < len(statements) and statements[end][3] == name:
                end += 1
            list(stream.graph(name, [parts[:3] for parts in statements[at:end]]))
            at = end
        return
    for parts in statements:
        if isinstance(stream, QuadStream):
            stream.quad(parts)
        else:
            assert isinstance(stream, TripleStream)
            stream.triple(parts[:3])


def delimited(frames: Iterable[jelly.RdfStreamFrame]) -> bytes:
    """The bytes of a file of these frames."""
    out = io.BytesIO()
    for frame in frames:
        write_delimited(frame, out)
    return out.getvalue()


def written(frames: Iterable[Sequence[Iterable[object]]], physical: str = "quads") -> bytes:
    return delimited(jelly_frames(frames, physical))
