"""Matches as Arrow or Parquet, in the columns of spaseq/io/arrow_columns.py.

Where a run has one query whose matches the core makes one by one, its rows are made without objects
(spaseq/io/native/columns/rows.pxi). Times are timestamps, or decimal numbers of seconds; the
first match says which. Memory: one batch of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import pyarrow as pa

from spaseq.engine.instants import QueryRun
from spaseq.io.arrow_columns import columns_of_shapes
from spaseq.io.arrow_rows import CompiledRows, Rows
from spaseq.io.identity import TimeKind
from spaseq.io.native._columns import RowMaker
from spaseq.rdf.event import DATE_TIME
from spaseq.results import Match

if TYPE_CHECKING:
    from spaseq.io.formats import Shape

ROW_GROUP = 1 << 17
"""The minimum number of rows of a row group of Parquet."""


class File(Protocol):
    """A file of record batches, which all have the schema of the first one."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch, or store it until there are enough rows."""

    def close(self, schema: pa.Schema) -> None:
        """Complete the file; `schema` is that of a file without batches."""


class ArrowFile:
    """Arrow's IPC format: a file if the output is seekable, otherwise a stream."""

    def __init__(self, out: BinaryIO):
        self._open = pa.ipc.new_file if out.seekable() else pa.ipc.new_stream
        self._out = out
        self._writer: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = self._open(self._out, batch.schema)
        self._writer.write_batch(batch)

    def close(self, schema: pa.Schema) -> None:
        if self._writer is None:
            self._writer = self._open(self._out, schema)
        self._writer.close()


class ParquetFile:
    """One Parquet file; row groups are written as they fill."""

    def __init__(self, out: BinaryIO):
        self._out = out
        self._writer: Any = None
        self._batches: list[pa.RecordBatch] = []
        self._count = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._count += batch.num_rows
        if self._count >= ROW_GROUP:
            self._write_group()

    def close(self, schema: pa.Schema) -> None:
        if self._batches:
            self._write_group()
        self._begin(schema)
        self._writer.close()

    def _begin(self, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        if self._writer is None:
            self._writer = pq.ParquetWriter(self._out, schema)

    def _write_group(self) -> None:
        self._begin(self._batches[0].schema)
        self._writer.write_table(pa.Table.from_batches(self._batches))
        self._batches.clear()
        self._count = 0


class Table:
    """The writer of matches as rows of a file."""

    def __init__(self, file: File, shapes: Sequence[Shape]):
        self._file = file
        self._columns = columns_of_shapes(shapes, "timestamp")
        self._rows: Rows | CompiledRows | None = None
        self._query: QueryRun | None = None

    def attach(self, queries: Sequence[QueryRun]) -> bool:
        """Let the core make the rows of a run that has not begun, if it can."""
        if len(queries) != 1:
            return False
        native = queries[0].native
        maker = native.made_by(RowMaker)
        if maker is None:
            return False
        maker.whole()
        native.matches = maker
        self._query = queries[0]
        self._rows = CompiledRows(self._columns, maker)
        return True

    def write(self, match: Match) -> None:
        if not isinstance(self._rows, Rows):
            self.write_rows(True)
            self._set_kind(match.end.domain)
            self._rows = Rows(self._columns)
        self._rows.add(match)
        if self._rows.full:
            self._file.write(self._rows.batch())

    def flush(self) -> None:
        """Write the rows so far."""
        if isinstance(self._rows, Rows) and len(self._rows):
            self._file.write(self._rows.batch())

    def write_rows(self, whole: bool) -> int:
        """Write the rows that the core has made, if there are many or if `whole` is set.

        Returns:
            The number of rows written.
        """
        rows = self._rows
        if not isinstance(rows, CompiledRows) or not len(rows) or not (whole or rows.full):
            return 0
        assert self._query is not None
        self._set_kind(self._query.domain)
        rows.set_columns(self._columns)
        batch = rows.batch()
        self._file.write(batch)
        return int(batch.num_rows)

    def close(self) -> None:
        """Write the last rows and complete the document."""
        self.flush()
        self._file.close(self._columns.schema())

    def _set_kind(self, domain: str) -> None:
        kind: TimeKind = "timestamp" if domain == DATE_TIME else "decimal"
        self._columns = replace(self._columns, kind=kind)
