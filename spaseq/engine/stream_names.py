"""The names of streams in queries → their IRIs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyoxigraph as ox

from spaseq.engine.compiled import CompiledQueries
from spaseq.errors import ArgumentError, SpaseqError
from spaseq.parser import ast
from spaseq.plan.wording import did_you_mean


def stream_iri(program: CompiledQueries, name: str) -> str:
    """The IRI of an input stream, given by its IRI or by its name in the queries.

    Raises:
        SpaseqError: if no query reads the stream, or queries use the name for several streams.
    """
    if name in program.streams:
        return name
    named = {s.iri.value for query in program.sources for s in query.streams if s.name == name}
    iris = [iri for iri in program.streams if iri in named]
    if len(iris) > 1:
        shown = " and ".join(f"<{iri}>" for iri in iris)
        raise SpaseqError(f"the queries use the name {name} for both {shown}; use the IRI")
    if not iris:
        question = did_you_mean(name, [*program.streams, *program.stream_names])
        hint = f" ({question})" if question else ""
        raise SpaseqError(f"no query reads the stream {name}{hint}; {shown_streams(program)}")
    return iris[0]


def iris_of(sources: Iterable[ast.Query], streams: Sequence[str]) -> dict[str, str]:
    """The IRI of each input stream, by its IRI and by its unambiguous names in some queries."""
    named: dict[str, set[str]] = {}
    for query in sources:
        for stream in query.streams:
            named.setdefault(stream.name, set()).add(stream.iri.value)
    only = {name: iri for name, iris in named.items() if len(iris) == 1 for iri in iris}
    known = {name: iri for name, iri in only.items() if iri in streams}
    return known | {iri: iri for iri in streams}


def text_of_stream(name: object) -> str:
    """The name or IRI of a stream as text; it may be an IRI of pyoxigraph.

    Raises:
        ArgumentError: for anything else.
    """
    if isinstance(name, str):
        return str(name)
    if isinstance(name, ox.NamedNode):
        return name.value
    raise ArgumentError(f"a stream is named by a str or an IRI, not by {name!r}")


def shown_streams(program: CompiledQueries) -> str:
    """The input streams with their names in the queries, for messages."""
    names: dict[str, dict[str, None]] = {iri: {} for iri in program.streams}
    for query in program.sources:
        for stream in query.streams:
            names.get(stream.iri.value, {})[stream.name] = None
    shown = ", ".join(f"<{iri}> ({', '.join(known)})" for iri, known in names.items())
    return f"the streams read are {shown}" if shown else "no stream is read"
