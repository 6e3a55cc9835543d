"""Tables of events → encoded batches for one run, as its readers make them.

The text of a graph goes through the compiled reader of N-Triples (spaseq/spark/_arrow.pyx);
lines it is not sure of are judged by pyoxigraph. What no query of the run can use is left
out. Blank nodes are named by the events the run had before, so no two events of a run share
one, also in a run that was saved and taken up again. Cost: linear in the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox

from spaseq.errors import EventError
from spaseq.io.native._framing import EventReader, Minter
from spaseq.io.native._nquads import LineReader
from spaseq.io.time_column import stamp_of
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._relevance import Relevance
from spaseq.rdf.syntax import parser_message
from spaseq.spark._arrow import ColumnReader
from spaseq.spark.chunks import Numbers

EVENTS_AT_ONCE = 1024
"""In a batch: as many as the processor's cache holds."""
_ANY_NUMBER = 2**32 - 1


@dataclass(frozen=True, slots=True)
class EventColumns:
    """The columns of a table of `chunks.EVENTS`, as compiled code reads them.

    Texts lie one behind the other, the i-th from `ends[i]` to `ends[i + 1]`; names are as in
    N-Triples, and empty where there is none.
    """

    micros: Numbers
    ordinals: Numbers
    streams: np.ndarray[Any, np.dtype[np.int16]]
    dated: np.ndarray[Any, np.dtype[np.uint8]]
    stamps: Sequence[ox.Literal | None] | None
    names: bytes | None
    name_ends: np.ndarray[Any, np.dtype[np.int32]] | None
    graphs: bytes
    ends: np.ndarray[Any, np.dtype[np.int32]]

    @staticmethod
    def of(table: pa.Table) -> EventColumns:
        """Those of a table."""
        stamps = table.column("stamp")
        known = None
        if stamps.null_count < len(stamps):
            texts = stamps.to_pylist()
            known = [None if text is None else stamp_of(text) for text in texts]
        return EventColumns(
            table.column("micros").to_numpy(),
            table.column("ordinal").to_numpy(),
            table.column("stream").to_numpy(),
            table.column("dated").to_numpy().astype(np.uint8),
            known,
            *_names(table.column("name")),
            *_texts(table.column("graph")),
        )

    def __len__(self) -> int:
        return len(self.micros)


def _names(column: pa.ChunkedArray) -> tuple[bytes | None, Any]:
    if column.null_count == len(column):
        return None, None
    bracketed = pc.binary_join_element_wise("<", column, ">", "")
    named = pc.if_else(pc.starts_with(column, "_:"), column, bracketed)
    return _texts(pc.fill_null(named, ""))


def _texts(column: pa.ChunkedArray) -> tuple[bytes, Any]:
    """The texts of a column, and where each begins and the last one ends."""
    array = pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)
    if not len(array):
        return b"", np.zeros(1, np.int32)
    _, ends, texts = array.buffers()
    ends = np.frombuffer(ends, np.int32)[array.offset : array.offset + len(array) + 1]
    first, behind = int(ends[0]), int(ends[-1])
    text = b"" if texts is None else texts.slice(first, behind - first).to_pybytes()
    return text, ends - first if first else ends


class _Questions:
    """What the compiled reader asks: of events told from outside, only what is wrong."""

    def known_domain(self) -> int:
        return -1

    def among_triples(self, what: str, line: int) -> None:
        raise EventError(f"the graph of an event is N-Triples, and {what} is in it")

    def is_usable(self, domain: int, is_strange: bool, line: int) -> bool:
        raise EventError("triple terms (RDF 1.2) in an event are not supported by this version")


def _judged(text: bytes) -> Iterator[ox.Quad]:
    try:
        yield from ox.parse(text, format=ox.RdfFormat.N_TRIPLES)
    except SyntaxError as error:
        raise EventError(
            f"the graph of an event is not N-Triples: {parser_message(error)}"
        ) from error


class GraphEncoder:
    """Makes batches of events of one stream; `number` tells the encoders of a run apart."""

    def __init__(self, relevance: Relevance, stream: str, number: int):
        minter = Minter(number % _ANY_NUMBER)
        reader = EventReader(relevance, _Questions(), stream, minter, 1)
        reader.start_file("", "triples", _ANY_NUMBER, (), False, False)
        self._reader = ColumnReader(reader, LineReader(reader, False), _judged)

    def batch(self, columns: EventColumns, places: Numbers) -> EventBatch:
        """The events at some places, in that order.

        Raises:
            EventError: for text that is not N-Triples, and a name that is no IRI.
        """
        try:
            return self._reader.read(
                columns.graphs,
                columns.ends,
                places,
                columns.micros,
                columns.ordinals,
                columns.dated,
                columns.names,
                columns.name_ends,
                columns.stamps,
            )
        except ValueError as error:
            raise EventError(str(error)) from error
