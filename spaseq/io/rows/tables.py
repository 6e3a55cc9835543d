"""Files and data frames → Arrow record batches, with only the requested columns.

CSV and TSV have a header; their columns are strings, and an empty cell is null unless it is quoted.
The cells of CSV are separated by semicolons if the header has semicolons and no comma.
The columns of JSON lines have the types of the first `JSON_HEAD` bytes of the file. Texts are read
in blocks, other files in their own batches. Invariant: a row's number counts the rows of its file
from 1, including malformed ones. Memory: some blocks, or one batch.
"""

from __future__ import annotations

import csv
import io
import os
import sys
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from spaseq.errors import InputError
from spaseq.io.lines import STDIN, shown_name
from spaseq.io.rows.formats import row_format_of

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 20
"""Bytes of a text that are parsed at once."""
JSON_HEAD = 1 << 22
"""Bytes of JSON lines that decide the types of the columns."""
RELEASE_SECONDS = 0.2
"""How long the end of a file waits for the threads of pyarrow, in seconds."""
ROWS_AT_ONCE = 1 << 16
"""The most rows in a batch of a binary format."""

InvalidRow = Callable[[str, int], None]
"""Reports a malformed row: the message, and the number of the row."""


class Table(Protocol):
    """Rows in one place. `batches` may be iterated once."""

    name: str

    @property
    def schema(self) -> Sequence[pa.Field] | None:
        """The columns; None: the table is empty, and its columns are not known."""

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches with at least these columns, each with the number of its first row."""

    def position(self) -> int:
        """How many bytes of the file have been read."""

    def close(self) -> None: ...


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
    require_pyarrow()
    if not isinstance(content, str | os.PathLike):
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
            return _TABLES[found](name, path, file, invalid)
        except BaseException:
            if path != STDIN:
                file.close()
            raise


@contextmanager
def _failures(name: str, row: Callable[[], int] | None = None, hint: str = "") -> Iterator[None]:
    """Turn the failures of pyarrow and of the system into an `InputError`."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, NotImplementedError, OSError, EOFError, KeyError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error).strip()
        begun = row() if row is not None else 0
        where = f"cannot be read after row {begun - 1:,}: " if begun > 1 else "cannot be read: "
        raise InputError(where + reason + hint, name) from error


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
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
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

    hint = ""
    """The end of the message about an error in the middle of the file."""

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
            with _failures(self.name, lambda: self._row, self.hint):
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
        self.schema = None if names is None else [pa.field(each, pa.string()) for each in names]

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

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        import pyarrow as pa
        import pyarrow.csv as pc

        malformed: list[tuple[int, str]] = []

        names = {field.name: pa.string() for field in self.schema or ()}

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
                    include_columns=list(columns) or list(names)[:1],
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

    hint = f" (the types of the columns are those of the first {JSON_HEAD >> 20} MiB)"

    def __init__(self, name: str, path: str, file: IO[bytes], invalid: InvalidRow):
        import pyarrow.json as pj

        super().__init__(name, path, file)
        self._ahead = self._head(JSON_HEAD)
        whole = self._ahead
        if len(whole) == JSON_HEAD:
            whole = whole[: whole.rfind(b"\n") + 1]
        self.schema = None
        if whole.strip():
            options = pj.ReadOptions(use_threads=False, block_size=JSON_HEAD)
            self.schema = [
                _without_times(f) for f in pj.read_json(io.BytesIO(whole), options).schema
            ]

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        import pyarrow as pa
        import pyarrow.json as pj

        fields = [field for field in self.schema or () if field.name in set(columns)]

        def opened(file: Any) -> tuple[Any, Sequence[Any]]:
            reader = pj.open_json(
                file,
                pj.ReadOptions(use_threads=False, block_size=JSON_HEAD),
                pj.ParseOptions(
                    explicit_schema=pa.schema(fields or list(self.schema or ())[:1]),
                    unexpected_field_behavior="ignore",
                ),
            )
            return reader, ()

        head, self._ahead = self._ahead, b""
        for batch in self._batches(head, opened):
            yield self._row, batch
            self._row += batch.num_rows


def _without_times(field: pa.Field) -> pa.Field:
    """A field of JSON, whose strings remain strings even if they look like times."""
    import pyarrow as pa

    def changed(held: pa.DataType) -> pa.DataType:
        if pa.types.is_timestamp(held):
            return pa.string()
        if pa.types.is_struct(held):
            return pa.struct([_without_times(held.field(i)) for i in range(held.num_fields)])
        if pa.types.is_list(held):
            return pa.list_(changed(held.value_type))
        return held

    return field.with_type(changed(field.type))


# ------------------------------------------------------------------ binary formats


class _Binary:
    """A table in a file of a binary format, or in memory."""

    def __init__(self, name: str, file: IO[bytes] | None = None):
        self.name = name
        self._file = file
        self._row = 1

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
        self._parquet = pq.ParquetFile(_seekable(path, file))
        self.schema = list(self._parquet.schema_arrow)

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        read = self._parquet.iter_batches(ROWS_AT_ONCE, columns=list(columns), use_threads=False)
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
        self.schema = list(self._reader.schema)

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        import pyarrow as pa

        if not self._is_file:
            return self._numbered(iter(self._reader))
        wanted = [i for i, field in enumerate(self.schema) if field.name in set(columns)]
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
        self.schema = list(self._reader.schema)

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        return self._numbered(iter(self._reader))


_TABLES: dict[str, Callable[[str, str, Any, InvalidRow], Table]] = {
    "csv": _Csv,
    "tsv": _tsv,
    "jsonl": _JsonLines,
    "parquet": _Parquet,
    "arrow": _Arrow,
}
