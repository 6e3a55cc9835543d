"""Jelly, RDF in frames of Protocol Buffers → statements, with a mark after each frame.

The framings `subject`, `dataset` and `member` read statements; the others read frames straight into
events (spaseq/io/native/_jelly.pyx), with the same results and messages. pyjelly resolves the
abbreviations of Jelly: lookup tables, and terms repeated from the previous statement. This module
cuts a stream into frames and makes each row a quad of pyoxigraph, under the rules that pyoxigraph
enforces for every other syntax.

Invariant: a frame that cannot be decoded has no statements and ends the file, because later frames
refer to its tables. Only a decoded statement that is not RDF (an IRI with a space, a literal as a
subject) is skipped, since the tables are still valid. Memory: one frame. The statements of a
frame are yielded before the next frame is read.

Source: Jelly-RDF specification 1.1, https://w3id.org/jelly/dev/specification/serialization
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, cast

import pyoxigraph as ox
from google.protobuf.message import DecodeError
from pyjelly import jelly
from pyjelly.errors import JellyConformanceError
from pyjelly.parse.decode import Adapter, Decoder, ParserOptions, options_from_frame
from pyjelly.parse.ioutils import delimited_jelly_hint

from spaseq.io.statements import RawTerm, Statement
from spaseq.rdf.syntax import (
    SHORT_TERM_BYTES,
    TABLE_IRI_MAX_BYTES,
    TOO_LONG_ENTRIES,
    Expansion,
    LimitError,
)
from spaseq.records import dataclass

if TYPE_CHECKING:
    from spaseq.io.lines import Lines
    from spaseq.io.read_options import Troubles

_VERSIONS = (1, 2)
_TRIPLES = jelly.PHYSICAL_STREAM_TYPE_TRIPLES
_QUADS = jelly.PHYSICAL_STREAM_TYPE_QUADS
_GRAPHS = jelly.PHYSICAL_STREAM_TYPE_GRAPHS
_STATEMENTS = {_TRIPLES: ("triple",), _QUADS: ("quad",), _GRAPHS: ("triple",)}
_STREAMS = {_TRIPLES: "triples", _QUADS: "quads", _GRAPHS: "graphs"}
_MOST_BYTES = 2**31 - 1  # the limit of Protocol Buffers for a message
_READ_AT_ONCE = 1 << 20
_MINTED = "jelly-"
_TAGGED = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
_DIRECTED = "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString"
# What pyjelly raises for a row that it cannot decode.
_PYJELLY_ERRORS = (
    AssertionError,
    JellyConformanceError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)


class _Broken(Exception):
    """A frame that cannot be decoded, so that later frames cannot be decoded either."""


@dataclass(frozen=True, slots=True)
class _Fault:
    """Replaces a decoded term or statement that is not valid RDF."""

    reason: str


_Term: TypeAlias = RawTerm | _Fault
_Graph: TypeAlias = _Term | ox.DefaultGraph


def jelly_statements(file: Lines, troubles: Troubles, marked: bool) -> Iterator[Statement]:
    """The statements of a file with the number of their frame.

    `marked`: `(None, frame)` follows the statements of each frame.
    """
    frames = _Frames()
    source = _messages(file)
    while True:
        try:
            data = next(source, None)
            statements = [] if data is None else frames.statements(data)
        except _Broken as error:
            text = f"not Jelly: {error}; nothing can be read from here on"
            troubles.report(text, file.name, file.number)
            return
        if data is None:
            return
        for statement in statements:
            if isinstance(statement, _Fault):
                troubles.report(statement.reason, file.name, file.number)
            else:
                yield statement, file.number
        if marked:
            yield None, file.number


def _messages(file: Lines) -> Iterator[bytes]:
    """The bytes of each frame; `file.number` is the number of the last frame begun."""
    ahead = file.read(3)
    if not ahead:
        return
    if len(ahead) == 3 and not delimited_jelly_hint(ahead):
        file.number = 1
        parts = [ahead]
        while data := file.read(_READ_AT_ONCE):
            parts.append(data)
        yield b"".join(parts)
        return
    while True:
        size, ahead = _length(file, ahead)
        if size is None:
            return
        body, ahead = ahead[:size], ahead[size:]
        parts, missing = [body], size - len(body)
        while missing:
            data = file.read(min(missing, _READ_AT_ONCE))
            if not data:
                raise _Broken(f"the file ends {missing} bytes before the frame's {size} do")
            parts.append(data)
            missing -= len(data)
        yield b"".join(parts)


def _length(file: Lines, ahead: bytes) -> tuple[int | None, bytes]:
    """The size of the next frame, a varint, and the rest of `ahead`; None at the end."""
    size = shift = 0
    while True:
        byte, ahead = (ahead[:1], ahead[1:]) if ahead else (file.read(1), b"")
        if not byte and shift == 0:
            return None, b""
        if shift == 0:
            file.number += 1
        if not byte:
            raise _Broken("the file ends in the length of the frame")
        size |= (byte[0] & 0x7F) << shift
        if size > _MOST_BYTES or shift > 63:
            raise _Broken(f"the frame's length is more than {_MOST_BYTES} bytes")
        if byte[0] < 0x80:
            return size, ahead
        shift += 7


class _Frames:
    """The state that frames share: options, lookup tables, terms to repeat."""

    def __init__(self) -> None:
        self._options: jelly.RdfStreamOptions | None = None
        self._decoder: Decoder | None = None
        self._expansion = Expansion(0, 4 * SHORT_TERM_BYTES, TOO_LONG_ENTRIES)

    def statements(self, data: bytes) -> list[ox.Quad | _Fault]:
        """The statements of the next frame."""
        try:
            frame = jelly.RdfStreamFrame.FromString(data)
        except (DecodeError, UnicodeDecodeError) as error:  # the latter where protobuf is Python
            raise _Broken("the frame is not a valid protobuf message") from error
        if not frame.rows:
            return []
        self._expansion.size += len(data)
        try:
            if self._decoder is None:
                self._begin(frame)
            return list(self._rows(frame))
        except (LimitError, *_PYJELLY_ERRORS) as error:
            raise _Broken(_reason(error)) from error

    def _begin(self, frame: jelly.RdfStreamFrame) -> None:
        row = frame.rows[0]
        if row.WhichOneof("row") != "options":
            raise _Broken("the first row does not give the options of the stream")
        self._options = row.options
        if row.options.version not in _VERSIONS:
            raise _Broken(f"version {row.options.version} is not supported (1 and 2 are)")
        if row.options.physical_type not in _STATEMENTS:
            raise _Broken("the stream does not say whether it is of triples, quads or graphs")
        options = options_from_frame(frame, delimited=True)
        self._decoder = Decoder(adapter=_Terms(options))

    def _rows(self, frame: jelly.RdfStreamFrame) -> Iterator[ox.Quad | _Fault]:
        decoder, options = self._decoder, self._options
        assert decoder is not None
        assert options is not None
        kinds = _STATEMENTS[options.physical_type]
        for row in frame.rows:
            kind = row.WhichOneof("row")
            if kind == "options":
                if row.options != options:
                    raise _Broken("the options of the stream change")
            elif kind == "namespace":
                # The prefix is not used, but its IRI is an entry of the lookup tables.
                self._expansion.count(decoder.decode_iri(row.namespace.value))
            elif kind == "graph_start" and row.graph_start.WhichOneof("graph") is None:
                raise _Broken("a graph without a name")
            elif kind in kinds:
                made = cast(ox.Quad | _Fault, decoder.decode_row(getattr(row, kind)))
                self._expansion.count(made)
                yield made
            elif kind is None or kind in ("triple", "quad"):
                shown = "a row of an unknown kind" if kind is None else f"a {kind}"
                raise _Broken(f"{shown} in a stream of {_STREAMS[options.physical_type]}")
            else:
                self._expansion.count(decoder.decode_row(getattr(row, kind)))


class _Terms(Adapter):
    """Converts the terms that pyjelly has resolved to terms and quads of pyoxigraph."""

    def __init__(self, options: ParserOptions) -> None:
        super().__init__(options=options)
        self._is_in_graphs = options.stream_types.physical_type == _GRAPHS
        self._graph: _Graph | None = None if self._is_in_graphs else ox.DefaultGraph()

    def iri(self, iri: str) -> _Term:
        return _named(iri)

    def bnode(self, bnode: str) -> ox.BlankNode:
        return _blank(bnode)

    def default_graph(self) -> ox.DefaultGraph:
        return ox.DefaultGraph()

    def literal(self, lex: str, language: str | None = None, datatype: str | None = None) -> _Term:
        if language:
            try:
                return ox.Literal(lex, language=language)
            except ValueError:
                return _Fault(f"{language!r} is not a language tag")
        if datatype is None:
            return ox.Literal(lex)
        if datatype in (_TAGGED, _DIRECTED):
            return _Fault(f"a literal of datatype <{datatype}> without a language")
        named = _named(datatype)
        return named if isinstance(named, _Fault) else ox.Literal(lex, datatype=named)

    def triple(self, terms: Iterable[_Term]) -> ox.Quad | _Fault:
        if self._graph is None:
            raise _Broken("a triple outside of graphs")
        return _quad(*terms, self._graph)

    def quad(self, terms: Iterable[_Graph]) -> ox.Quad | _Fault:
        return _quad(*terms)

    def quoted_triple(self, terms: Iterable[_Term]) -> _Term:
        quad = _quad(*terms, ox.DefaultGraph())
        return quad if isinstance(quad, _Fault) else quad.triple

    def graph_start(self, graph_id: _Graph) -> None:
        if not self._is_in_graphs:
            raise _Broken("a graph begins in a stream that is not of graphs")
        self._graph = graph_id

    def graph_end(self) -> None:
        if not self._is_in_graphs or self._graph is None:
            raise _Broken("a graph ends that has not begun")
        self._graph = None


def _quad(*terms: _Graph) -> ox.Quad | _Fault:
    """The quad of four terms, or the fault in them."""
    for term in terms:
        if isinstance(term, _Fault):
            return term
    subject, predicate, value, graph = terms
    if not isinstance(subject, ox.NamedNode | ox.BlankNode):
        return _Fault(f"the subject of a triple must be an IRI or a blank node, not {subject}")
    if not isinstance(predicate, ox.NamedNode):
        return _Fault(f"the predicate of a triple must be an IRI, not {predicate}")
    if not isinstance(graph, ox.NamedNode | ox.BlankNode | ox.DefaultGraph):
        return _Fault(f"the name of a graph must be an IRI or a blank node, not {graph}")
    return ox.Quad(subject, predicate, cast(RawTerm, value), graph)


@lru_cache(4096)
def _named(iri: str) -> ox.NamedNode | _Fault:
    if len(iri.encode(errors="replace")) > TABLE_IRI_MAX_BYTES:
        raise LimitError(f"an IRI of more than {TABLE_IRI_MAX_BYTES:,} bytes")
    try:
        return ox.NamedNode(iri)
    except ValueError as error:
        return _Fault(f"{iri!r} is not an IRI: {error}")


def _blank(label: str) -> ox.BlankNode:
    """The node of a label. Jelly allows any string, so some labels become hexadecimal."""
    if not label.startswith(_MINTED):
        try:
            return ox.BlankNode(label)
        except ValueError:
            pass
    return ox.BlankNode(_MINTED + label.encode().hex())


def _reason(error: Exception) -> str:
    """The error of pyjelly as a message about the stream."""
    if isinstance(error, KeyError):
        return (
            f"a statement repeats the {error.args[0]} of the statement before it, and there is none"
        )
    if isinstance(error, IndexError):
        return "a term refers to an entry of a table that is not there"
    return str(error) or type(error).__name__
