"""Files and data frames → Arrow record batches, with only the requested columns.

CSV and TSV have a header; their columns are strings, and an empty cell is null unless it is quoted.
The cells of CSV are separated by semicolons if the header has semicolons and no comma.
The fields of JSON lines are columns, whenever they first occur; the first `JSON_HEAD` bytes only
show which names of a mapping are no fields. Texts are read in blocks, other files in their own
batches. Invariant: a row's number counts the rows of its file from 1, including malformed ones.
Memory: some blocks, or one batch.
"""

from __future__ import annotations

import csv
import io
import os
import sys
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from decimal import Decimal
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from spaseq.errors import InputError, InputUnit
from spaseq.io.lines import STDIN, shown_name
from spaseq.io.native._json_rows import JsonBlock, JsonRows
from spaseq.io.rows.columns import (
    Buffers,
    Column,
    array_at,
    buffers_of,
    check_row_groups,
    columns_of,
    repeated_columns,
    variable_of,
)
from spaseq.io.rows.formats import row_format_of

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 20
"""Bytes of a text that are parsed at once."""
JSON_HEAD = 1 << 22
"""Bytes of JSON lines that are searched for the fields that a mapping names."""
JSON_CELLS = 1 << 22
"""Cells that rows of JSON lines may have together: a line has at least two bytes, and a row as many
cells as there are columns."""
JSON_LEAST_BYTES = 1 << 12
"""Bytes of JSON lines that are parsed at once, however many columns there are."""
JSON_PIECE = 1 << 16
"""Bytes of JSON lines that are searched at once."""
MAX_LINE_BYTES = 1 << 26
"""The most bytes of a line of JSON."""
RELEASE_SECONDS = 0.2
"""How long the end of a file waits for the threads of pyarrow, in seconds."""
ROWS_AT_ONCE = 1 << 16
"""The most rows in a batch of a binary format."""

InvalidRow = Callable[[str, int], None]
"""Reports a malformed row: the message, and its number, or its line in a file of lines."""
Rows: TypeAlias = "pa.RecordBatch | JsonBlock"
"""Rows that are read together, with some columns."""


class Table(Protocol):
    """Rows in one place. `columns` is called before `batches`, and each of them once."""

    name: str
    unit: InputUnit
    """What messages about a row name: its number, or its line."""

    def columns(
        self, required: Set[str] | None = None, optional: Set[str] = frozenset()
    ) -> Sequence[Column] | None:
        """The columns; None: the table is empty, and its columns are not known.

        A table whose rows say which columns it has looks for the `required` variables only. Those
        that later rows may have are columns as well, as are the `optional` ones.
        """

    def batches(self, columns: Sequence[Column]) -> Iterator[tuple[int, Rows]]:
        """Batches with at least these columns, each with the number of its first row."""

    def position(self) -> int:
        """How many bytes of the file have been read."""

    def close(self) -> None: ...


def buffers_at(batch: Rows, index: int, column: Column, file: str, first: int) -> Buffers:
    """The values of the column `index` of a batch whose first row is `first`.

    Raises:
        InputError: if they cannot be read.
    """
    if isinstance(batch, JsonBlock):
        return batch.buffers(index)
    try:
        return buffers_of(array_at(batch, column.path))
    except (ValueError, NotImplementedError) as error:
        raise InputError(
            f"the column {column.name} cannot be read: {error}", file, first, "row"
        ) from error


def values_at(batch: Rows, index: int, column: Column, count: int) -> list[Any]:
    """The same for the first rows, as Python values."""
    if isinstance(batch, JsonBlock):
        return [None if text is None else _value(text) for text in batch.values(index)[:count]]
    return list(array_at(batch, column.path).slice(0, count).to_pylist())


def _value(text: str) -> str | int | float | Decimal | bool:
    """The value of a term of JSON."""
    lexical, _, datatype = text[1:].rpartition('"')
    match datatype.rpartition("#")[2]:
        case "integer>" if len(lexical) < sys.int_info.default_max_str_digits:
            return int(lexical)
        case "double>":
            return float(lexical)
        case "boolean>":
            return lexical == "true"
        case "":
            return lexical
        case _:
            return Decimal(lexical)


def _names(columns: Sequence[Column]) -> list[str]:
    """The columns of the table that have some columns or fields, each once."""
    return list(dict.fromkeys(column.path[0] for column in columns))


def require_pyarrow() -> None:
    """Import pyarrow.

    Raises:
        InputError: if it is not installed.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"tables are read with the package pyarrow: pip install 'spaseq[arrow]' ({error})"
        ) from error


def open_table(content: Any, format_: str | None, invalid: InvalidRow) -> Table:
    """Open a file, given by its path, or a table in memory.

    Args:
        content: A path, `-` for standard input, or an object with the Arrow PyCapsule interface.
        format_: The format of a file; by default its extension and its first bytes decide.
        invalid: Takes the reports of rows that do not have the number of cells of the header.

    Raises:
        InputError: if it cannot be opened.
    """
    if not isinstance(content, str | os.PathLike):
        require_pyarrow()
        return _Frame(content)
    path = os.fspath(content)
    name = shown_name(path)
    with _failures(name):
        file = _opened(path)
        try:
            head = _peeked(file)
            if head.startswith(b"\x1f\x8b"):
                import gzip

                packed = gzip.GzipFile(fileobj=cast("IO[bytes]", file))
                file = _Packed(packed, file)
                head = _peeked(file)
            found = format_ or row_format_of(path) or _format_of(head)
            if found != "jsonl":
                require_pyarrow()
            return _TABLES[found](name, path, file, invalid)
        except BaseException:
            if path != STDIN:
                file.close()
            raise


@contextmanager
def _failures(name: str, row: Callable[[], int] | None = None) -> Iterator[None]:
    """Turn the failures of pyarrow and of the system into an `InputError`."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, NotImplementedError, OSError, EOFError, KeyError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error).strip()
        begun = row() if row is not None else 0
        where = f"cannot be read after row {begun - 1:,}: " if begun > 1 else "cannot be read: "
        raise InputError(where + reason, name) from error


def _opened(path: str) -> io.BufferedReader:
    if path != STDIN:
        return open(path, "rb")
    if sys.stdin is None:
        raise InputError("standard input is closed")
    return cast(io.BufferedReader, sys.stdin.buffer)


class _Packed(io.BufferedReader):
    """A decompressed file, which closes the file below it."""

    def __init__(self, packed: Any, raw: IO[bytes]):
        super().__init__(packed, BLOCK)
        self.below = raw

    def close(self) -> None:
        super().close()
        self.below.close()


def _peeked(file: io.BufferedReader) -> bytes:
    """The first bytes of a file, at least 16 unless it is shorter."""
    return file.peek(16)


def _format_of(head: bytes) -> str:
    """The format of a file without a known extension, from its first bytes."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return "jsonl"
    header = head.partition(b"\n")[0]
    return "tsv" if header.count(b"\t") > header.count(b",") else "csv"


def _place(file: IO[bytes]) -> int:
    try:
        return int(getattr(file, "below", file).tell())
    except (OSError, ValueError):
        return 0


# ------------------------------------------------------------------ texts


class _Joined(io.RawIOBase):
    """Bytes that were read ahead, and then the rest of a file."""

    def __init__(self, head: bytes, file: IO[bytes]):
        self._head = head
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            head, self._head = self._head, b""
            return head + self._file.read()
        if self._head:
            head, self._head = self._head[:size], self._head[size:]
            return head
        return self._file.read(size)


class _Text:
    """A table in a text file."""

    unit: InputUnit = "row"

    def __init__(self, name: str, path: str, file: IO[bytes]):
        self.name = name
        self._path = path
        self._file = file
        self._row = 1

    def position(self) -> int:
        return _place(self._file)

    def close(self) -> None:
        if self._path != STDIN:
            self._file.close()

    def _head(self, size: int) -> bytes:
        """The first bytes of the file, fewer only at its end."""
        parts = []
        while size > 0 and (part := self._file.read(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _read(self, reader: Any) -> Iterator[pa.RecordBatch]:
        while True:
            with _failures(self.name, lambda: self._row):
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
            yield batch

    def _batches(
        self, head: bytes, opened: Callable[[Any], tuple[Any, Sequence[Any]]]
    ) -> Iterator[pa.RecordBatch]:
        """The batches of a reader of pyarrow.

        Args:
            head: The bytes that have been read already.
            opened: Makes the reader of a file; it also returns the other Python objects that the
            reader holds.
        """
        file = _Joined(head, self._file)
        with _failures(self.name):
            reader, held = opened(file)
        released = [weakref.ref(each) for each in (file, *held)]
        del file, held
        try:
            yield from self._read(reader)
        finally:
            del reader
            _wait_for(released)


def _wait_for(released: Sequence[weakref.ref[Any]]) -> None:
    """Wait until no thread of pyarrow has a reference to the objects.

    pyarrow reads in a separate thread, which may drop the last reference after the last batch. If
    the interpreter ends meanwhile, the thread cannot acquire the GIL, and the process is aborted.
    """
    ends = time.monotonic() + RELEASE_SECONDS
    while any(each() is not None for each in released) and time.monotonic() < ends:
        time.sleep(0.0002)


class _Csv(_Text):
    """CSV or TSV with a header."""

    def __init__(
        self, name: str, path: str, file: IO[bytes], invalid: InvalidRow, delimiter: str = ","
    ):
        import pyarrow as pa

        super().__init__(name, path, file)
        self._invalid = invalid
        self._ahead = self._head(BLOCK)
        first = self._ahead.lstrip(b"\r\n").partition(b"\n")[0]
        if delimiter == "," and b"," not in first:
            delimiter = next((sign for sign in ";\t|" if sign.encode() in first), delimiter)
        self.delimiter = delimiter
        """The separator of cells: a tab or a comma; if the header of a CSV file has no comma, the
        first of `;`, a tab and `|` that it has."""
        names = self._header()
        self._schema = None if names is None else [pa.field(each, pa.string()) for each in names]

    def columns(
        self, required: Set[str] | None = None, optional: Set[str] = frozenset()
    ) -> Sequence[Column] | None:
        return None if self._schema is None else columns_of(self._schema)

    def _header(self) -> list[str] | None:
        text = self._ahead.decode("utf-8-sig", "surrogateescape")
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter)
        for cells in lines:
            if any("\udc80" <= letter <= "\udcff" for cell in cells for letter in cell):
                raise InputError(
                    "the header is not UTF-8: convert the file, as in iconv -f latin1 -t utf-8",
                    self.name,
                )
            if cells:
                return cells
        return None

    def batches(self, columns: Sequence[Column]) -> Iterator[tuple[int, Rows]]:
        import pyarrow as pa
        import pyarrow.csv as pc

        malformed: list[tuple[int, str]] = []

        names = {field.name: pa.string() for field in self._schema or ()}

        def opened(file: Any) -> tuple[Any, Sequence[Any]]:
            def skip(row: Any) -> str:
                found = f"{row.actual_columns} cells instead of {row.expected_columns}"
                malformed.append((row.number - 1, found))  # the header is a row as well
                return "skip"

            reader = pc.open_csv(
                file,
                pc.ReadOptions(use_threads=False, block_size=BLOCK),
                pc.ParseOptions(
                    delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=skip
                ),
                pc.ConvertOptions(
                    column_types=names,
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    include_columns=_names(columns) or list(names)[:1],
                ),
            )
            return reader, (skip,)

        head, self._ahead = self._ahead, b""
        for batch in self._batches(head, opened):
            yield from self._around(batch, malformed)
        while malformed:
            self._report(malformed)

    def _around(
        self, batch: pa.RecordBatch, malformed: list[tuple[int, str]]
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The parts of a batch between malformed rows, which are reported in order."""
        start, count = 0, batch.num_rows
        while malformed and (good := malformed[0][0] - self._row) < count - start:
            if good > 0:
                yield self._row, batch.slice(start, good)
                start += good
            self._report(malformed)
        if start < count:
            yield self._row, batch.slice(start)
            self._row += count - start

    def _report(self, malformed: list[tuple[int, str]]) -> None:
        number, message = malformed.pop(0)
        self._row = number + 1
        self._invalid(message, number)


def _tsv(name: str, path: str, file: IO[bytes], invalid: InvalidRow) -> _Csv:
    return _Csv(name, path, file, invalid, "\t")


class _JsonLines(_Text):
    """One JSON object per line."""

    unit: InputUnit = "line"

    def __init__(self, name: str, path: str, file: IO[bytes], invalid: InvalidRow):
        super().__init__(name, path, file)
        self._invalid = invalid
        self._head_parts: list[bytes] = []
        """What has been read before the rows are."""

    def columns(
        self, required: Set[str] | None = None, optional: Set[str] = frozenset()
    ) -> Sequence[Column] | None:
        listing, looked, rows = JsonRows(None), 0, 0
        columns: list[Column] = []
        missing = required
        for data in self._looked_at():
            looked += 1
            at = 0
            while at < len(data):
                block = listing.read(data, at, len(data))
                at = block.taken
                rows += block.num_rows
                if required is None and block.problem and not rows:
                    raise InputError(block.problem, self.name, block.line)
            columns = list(_columns_of_fields(listing.fields(), required or frozenset()))
            if required is not None:
                missing = required - {c.variable for c in columns if not c.unsupported}
                if rows and not missing:
                    break
        head = sum(map(len, self._head_parts))
        if not looked and head < JSON_HEAD:
            return None
        known = {column.variable for column in columns}
        # Without a row there is no telling which fields there are.
        later = optional if rows or missing is None else optional | missing
        return columns + [Column((each,), each, None) for each in sorted(later - known)]

    def batches(self, columns: Sequence[Column]) -> Iterator[tuple[int, Rows]]:
        rows = JsonRows([column.variable for column in columns])
        # A row has a cell for each column, however short its line is.
        most = max(JSON_CELLS // max(len(columns), 1), JSON_LEAST_BYTES)
        for data in self._lines():
            at = 0
            while at < len(data):
                end = data.find(b"\n", at + most) + 1 or len(data)
                block = rows.read(data, at, end)
                at = block.taken
                if block.num_rows or block.misfits:
                    yield block.first, block
                if block.problem:
                    self._invalid(block.problem, block.line)

    def _piece(self, size: int) -> bytes:
        """The next bytes, as soon as there are some; none at the end."""
        with _failures(self.name):
            return cast(io.BufferedReader, self._file).read1(size)

    def _looked_at(self) -> Iterator[bytes]:
        """Whole lines of the first bytes of the file, the last one perhaps without a line feed."""
        rest, size = list[bytes](), 0
        while size < JSON_HEAD and (piece := self._piece(JSON_PIECE)):
            self._head_parts.append(piece)
            size += len(piece)
            whole = piece.rfind(b"\n") + 1
            if whole:
                yield b"".join((*rest, piece[:whole]))
                rest = []
            rest.append(piece[whole:])
        if size < JSON_HEAD and any(map(bytes.strip, rest)):
            yield b"".join(rest)

    def _lines(self) -> Iterator[bytes]:
        """The lines of the file, in blocks; the last one may lack its line feed."""
        parts, size, count = list[bytes](), 0, 0
        head, self._head_parts = b"".join(self._head_parts), []
        pieces = chain([head], iter(lambda: self._piece(BLOCK), b""))
        for piece in pieces:
            whole = piece.rfind(b"\n") + 1
            if whole:
                data = b"".join((*parts, piece[:whole]))
                yield data
                count += data.count(b"\n")
                parts, size = [], 0
            parts.append(piece[whole:])
            size += len(piece) - whole
            if size > MAX_LINE_BYTES:
                raise InputError(
                    f"a line of more than {MAX_LINE_BYTES >> 20} MiB", self.name, count + 1
                )
        if size:
            yield b"".join(parts)


def _columns_of_fields(
    fields: Sequence[tuple[tuple[str, ...], Set[str]]], required: Set[str]
) -> Iterator[Column]:
    """The columns of some fields with the shapes of their values.

    A field without a value so far may later have one of any shape, with the required fields.
    """
    for path, shapes in fields:
        variable = variable_of(path)
        found = shapes - {"null"}
        if not found:
            yield Column(path, variable, None)
            for name in sorted(required):
                if name.startswith(variable + "_"):
                    yield Column((*path, name.removeprefix(variable + "_")), name, None)
        elif found - {"object", "list"}:
            yield Column(path, variable, None)
        elif found == {"list"}:
            yield Column(path, variable, None, "lists")


# ------------------------------------------------------------------ binary formats


class _Binary:
    """A table in a file of a binary format, or in memory."""

    unit: InputUnit = "row"
    _schema: Sequence[pa.Field]

    def __init__(self, name: str, file: IO[bytes] | None = None):
        self.name = name
        self._file = file
        self._row = 1

    def columns(
        self, required: Set[str] | None = None, optional: Set[str] = frozenset()
    ) -> Sequence[Column] | None:
        return columns_of(self._schema)

    def position(self) -> int:
        return 0 if self._file is None else _place(self._file)

    def close(self) -> None:
        if self._file is not None and self._file is not getattr(sys.stdin, "buffer", None):
            self._file.close()

    def _numbered(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
        while True:
            with _failures(self.name, lambda: self._row):
                batch = next(batches, None)
            if batch is None:
                return
            for start in range(0, batch.num_rows, ROWS_AT_ONCE):
                part = batch.slice(start, ROWS_AT_ONCE)
                yield self._row, part
                self._row += part.num_rows


def _seekable(path: str, file: IO[bytes]) -> IO[bytes]:
    """The file itself, or the whole content of a pipe."""
    return file if path != STDIN and file.seekable() else io.BytesIO(file.read())


class _Parquet(_Binary):
    def __init__(self, name: str, path: str, file: IO[bytes], invalid: InvalidRow):
        import pyarrow.parquet as pq

        super().__init__(name, file)
        self._source = _seekable(path, file)
        self._parquet = pq.ParquetFile(self._source)
        self._schema = list(self._parquet.schema_arrow)

    def batches(self, columns: Sequence[Column]) -> Iterator[tuple[int, Rows]]:
        import pyarrow.parquet as pq

        names = _names(columns)
        metadata = self._parquet.metadata
        with _failures(self.name):
            check_row_groups(metadata, set(names))
        repeated = repeated_columns(metadata, self._schema)
        if repeated:
            self._parquet = pq.ParquetFile(
                self._source, metadata=metadata, read_dictionary=repeated
            )
        read = self._parquet.iter_batches(ROWS_AT_ONCE, columns=names, use_threads=False)
        return self._numbered(read)


class _Arrow(_Binary):
    """Arrow IPC: a file (such as Feather), or a stream."""

    def __init__(self, name: str, path: str, file: IO[bytes], invalid: InvalidRow):
        import pyarrow as pa

        super().__init__(name, file)
        self._is_file = cast(io.BufferedReader, file).peek(6).startswith(b"ARROW1")
        source = _seekable(path, file) if self._is_file else file
        self._open = pa.ipc.open_file if self._is_file else pa.ipc.open_stream
        self._source: Any = source
        self._reader = self._open(source)
        self._schema = list(self._reader.schema)

    def batches(self, columns: Sequence[Column]) -> Iterator[tuple[int, Rows]]:
        import pyarrow as pa

        if not self._is_file:
            return self._numbered(iter(self._reader))
        wanted = [i for i, field in enumerate(self._schema) if field.name in set(_names(columns))]
        if wanted:
            options = pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)
            self._reader = self._open(self._source, options=options)
        reader = self._reader
        return self._numbered(reader.get_batch(i) for i in range(reader.num_record_batches))


class _Frame(_Binary):
    """A table in memory: of pyarrow, pandas, polars, or any other with Arrow's interface."""

    def __init__(self, content: Any):
        import pyarrow as pa

        super().__init__(f"<{type(content).__name__}>")
        with _failures(self.name):
            if isinstance(content, pa.Table):
                self._reader = content.to_reader()
            elif isinstance(content, pa.RecordBatchReader):
                self._reader = content
            elif hasattr(content, "__arrow_c_stream__"):
                self._reader = pa.RecordBatchReader.from_stream(content)
            else:
                batch = pa.record_batch(content)
                self._reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
        self._schema = list(self._reader.schema)

    def batches(self, columns: Sequence[Column]) -> Iterator[tuple[int, Rows]]:
        return self._numbered(iter(self._reader))


_TABLES: dict[str, Callable[[str, str, Any, InvalidRow], Table]] = {
    "csv": _Csv,
    "tsv": _tsv,
    "jsonl": _JsonLines,
    "parquet": _Parquet,
    "arrow": _Arrow,
}
