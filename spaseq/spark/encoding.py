"""Tables of events → encoded batches for one run, as the readers of files produce them.

The compiled reader of N-Triples reads the text of a graph (spaseq/spark/native/_arrow.pyx) and
passes lines that it does not recognise to pyoxigraph. It drops triples that no query of the run can
use. The label of a blank node contains the number of earlier events of the run. So two events of a
run never share a blank node, even if the run was saved and resumed. Cost: linear in the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox

from spaseq.errors import EventError
from spaseq.io.time_column import stamp_of
from spaseq.rdf.native._framing import IN_EVENT, EventReader, Minter
from spaseq.rdf.native._nquads import LineReader
from spaseq.rdf.native._terms import EventBatch, Relevance
from spaseq.rdf.syntax import LimitError, nesting, parser_message
from spaseq.rdf.time_text import date_time_text
from spaseq.records import dataclass
from spaseq.spark.chunks import Numbers
from spaseq.spark.native._arrow import ColumnReader

EVENTS_AT_ONCE = 1024
"""The number of events in a batch; the batch fits in the processor's cache."""
_ANY_SIZE = 2**32 - 1


@dataclass(frozen=True, slots=True)
class EventColumns:
    """The columns of a table of `chunks.EVENTS`, laid out for compiled code.

    `graphs` is a concatenation; graph i is `graphs[ends[i]:ends[i + 1]]`. `names` likewise: IRIs
    and blank nodes in N-Triples, the empty text for no name.
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
        """The columns of a table."""
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

    def shown(self, place: int) -> str:
        """An event in a sentence: its name and its time."""
        name = "without a name"
        if self.names is not None and self.name_ends is not None:
            start, end = self.name_ends[place : place + 2].tolist()
            name = self.names[start:end].decode() or name
        stamp = None if self.stamps is None else self.stamps[place]
        time = date_time_text(self.micros[place].item()) if stamp is None else stamp.value
        return f"the event {name} at {time}"


def _names(column: pa.ChunkedArray) -> tuple[bytes | None, Any]:
    if column.null_count == len(column):
        return None, None
    bracketed = pc.binary_join_element_wise("<", column, ">", "")
    named = pc.if_else(pc.starts_with(column, "_:"), column, bracketed)
    return _texts(pc.fill_null(named, ""))


def _texts(column: pa.ChunkedArray) -> tuple[bytes, Any]:
    """The concatenated texts of a column, and its offsets: one more than there are texts."""
    array = pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)
    if not len(array):
        return b"", np.zeros(1, np.int32)
    _, ends, texts = array.buffers()
    ends = np.frombuffer(ends, np.int32)[array.offset : array.offset + len(array) + 1]
    first, behind = int(ends[0]), int(ends[-1])
    text = b"" if texts is None else texts.slice(first, behind - first).to_pybytes()
    return text, ends - first if first else ends


class _FramingErrors:
    """The callbacks of the compiled reader. Rows delimit the events, so each callback reports an
    error.
    """

    def known_domain(self) -> int:
        return -1

    def among_triples(self, what: str, line: int) -> None:
        raise EventError(f"its graph must be N-Triples, but contains {what}")


def _parsed(text: bytes) -> Iterator[ox.Quad]:
    try:
        nesting(text)
        yield from ox.parse(text, format=ox.RdfFormat.N_TRIPLES)
    except LimitError as error:
        raise EventError(f"its graph: {error}") from None
    except SyntaxError as error:
        raise EventError(f"its graph is not N-Triples: {parser_message(error)}") from error


class GraphEncoder:
    """Encodes events of one stream into batches; `number` identifies the encoder within a run."""

    def __init__(self, relevance: Relevance, stream: str, number: int):
        self._relevance = relevance
        self._stream = stream
        minter = Minter(number % IN_EVENT)
        reader = EventReader(relevance, _FramingErrors(), stream, minter, 1)
        reader.start_file("", "triples", _ANY_SIZE, (), False, False)
        self._reader = ColumnReader(reader, LineReader(reader, False), _parsed)

    def batch(self, columns: EventColumns, places: Numbers) -> EventBatch:
        """The events at the indexes `places`, in that order.

        Raises:
            EventError: if a graph is not N-Triples or a name is not an IRI; names the event.
        """
        try:
            return self.read(columns, places)
        except EventError as error:
            raise self._named(columns, places, error) from error

    def _named(self, columns: EventColumns, places: Numbers, error: EventError) -> EventError:
        """The error about the first of some events that cannot be read."""
        for place in places.tolist():
            alone = GraphEncoder(self._relevance, self._stream, 0)
            try:
                alone.read(columns, np.array([place]))
            except EventError as own:
                return EventError(f"{columns.shown(place)} of the stream {self._stream}: {own}")
        return error

    def read(self, columns: EventColumns, places: Numbers) -> EventBatch:
        """The events as `batch` reads them; an error does not name the event."""
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
