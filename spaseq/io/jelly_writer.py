"""Matches as Jelly: one frame per match, with the quads of its named graph and its time.

pyjelly builds the lookup tables of the stream. Memory: one frame.
Source: Jelly-RDF specification 1.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

import pyoxigraph as ox
from pyjelly import jelly
from pyjelly.integrations.generic import generic_sink as generic
from pyjelly.integrations.generic.serialize import GenericSinkTermEncoder
from pyjelly.options import LookupPreset, StreamParameters
from pyjelly.serialize.ioutils import write_delimited
from pyjelly.serialize.streams import QuadStream, SerializerOptions

from spaseq.errors import SpaseqError
from spaseq.io.native._match_blocks import Names
from spaseq.io.rdf_writer import dataset
from spaseq.results import Match


class JellyFrames:
    """Quads in frames, each of which is one message for the readers."""

    def __init__(self, out: BinaryIO):
        self._out = out
        lookup = LookupPreset()
        self._stream = QuadStream(
            encoder=GenericSinkTermEncoder(lookup_preset=lookup),
            options=SerializerOptions(
                logical_type=jelly.LOGICAL_STREAM_TYPE_DATASETS,
                lookup_preset=lookup,
                params=StreamParameters(delimited=True, rdf_star=False),
            ),
        )
        self._stream.enroll()

    def write(self, quads: Iterable[ox.Quad]) -> None:
        """Write one frame.

        Raises:
            SpaseqError: for a literal with a base direction, which Jelly cannot hold.
        """
        for quad in quads:
            self._stream.quad(map(_term, quad))
        frame = self._stream.flow.to_stream_frame()
        if frame is not None:
            write_delimited(frame, self._out)

    def close(self) -> None:
        """Write the options of a stream without frames."""
        frame = self._stream.flow.to_stream_frame()
        if frame is not None:
            write_delimited(frame, self._out)


class Jelly:
    """One frame per match."""

    def __init__(self, out: BinaryIO):
        self._frames = JellyFrames(out)
        self._names = Names()

    def write(self, match: Match) -> None:
        self._frames.write(dataset(match, self._names))

    def close(self) -> None:
        """Nothing follows the last frame."""
        self._frames.close()


def _term(term: object) -> object:
    if isinstance(term, ox.NamedNode):
        return generic.IRI(term.value)
    if isinstance(term, ox.BlankNode):
        return generic.BlankNode(term.value)
    if isinstance(term, ox.Literal):
        if term.direction is not None:
            raise SpaseqError(f"Jelly cannot express the base direction of {term}; use messages")
        if term.language:
            return generic.Literal(term.value, term.language)
        return generic.Literal(term.value, None, term.datatype.value)
    if isinstance(term, ox.Triple):
        return generic.Triple(*map(_term, term))  # type: ignore[arg-type]
    return generic.DefaultGraph
