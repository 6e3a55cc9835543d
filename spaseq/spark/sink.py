"""The data sink `rdf`: rows of quads → files of N-Quads (or N-Triples, without the column `g`).

    df.write.format("rdf").mode("append").save(folder)
    df.writeStream.format("rdf").option("checkpointLocation", …).start(folder)

The sink renames a file to its final name when its job or batch is complete. A streaming query's
names contain the number of the batch, so a batch that is repeated after a failure replaces its
files. A file holds the quads in the order of its partition's rows. `mode("overwrite")` removes all
files of earlier writes of this sink from the folder, of any format and compression.
"""

from __future__ import annotations

import gzip
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import IO, Any, cast

from pyspark.sql import Row
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from spaseq.errors import SpaseqError
from spaseq.rdf.formats import N_QUADS, N_TRIPLES, one_of
from spaseq.records import dataclass
from spaseq.spark.paths import Folder, given_path

_SUBJECT = re.compile(r"<[^<>\s]*>|_:\S+")
_PREDICATE = re.compile(r"<[^<>\s]*>")
_OBJECT = re.compile(r'<[^<>\s]*>|_:\S+|"[^\n\r]*"(?:@[\w-]+|\^\^<[^<>\s]*>)?')
_FORMATS = {"nquads": N_QUADS, "ntriples": N_TRIPLES}
_SUFFIXES = tuple(f".{syntax.name}{gz}" for syntax in _FORMATS.values() for gz in ("", ".gz"))
_OPTIONS = ("path", "format", "compression", "checkpointLocation")


class RdfFiles(DataSource):
    """The data source."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "rdf"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """The writer for `df.write`."""
        return FolderWriter(_target(self.options, schema), overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """The writer for `df.writeStream`."""
        return BatchesWriter(_target(self.options, schema))


@dataclass(frozen=True, slots=True)
class Target:
    """The folder, the suffix of its files, and the columns of a quad."""

    folder: Folder
    suffix: str
    columns: tuple[str, ...]

    def write(self, rows: Iterator[Row]) -> Written:
        """Write rows to a file with a temporary name."""
        self.folder.create()
        name = f".{uuid.uuid4().hex}{self.suffix}"
        count = 0
        with ExitStack() as stack:
            file = stack.enter_context(self.folder.open(name))
            if name.endswith(".gz"):
                packed = gzip.GzipFile("", "wb", fileobj=file)
                file = stack.enter_context(cast(IO[bytes], packed))
            for row in rows:
                file.write(line([row[name] for name in self.columns]).encode())
                count += 1
        return Written(name, count)

    def move(self, messages: Sequence[WriterCommitMessage | None], stem: str) -> set[str]:
        """Rename the files that are not empty, and remove the others; returns the names."""
        names = set()
        for number, message in enumerate(messages):
            if isinstance(message, Written) and message.count:
                name = f"{stem}-{number:05d}{self.suffix}"
                self.folder.rename(message.name, name)
                names.add(name)
            elif isinstance(message, Written):
                self.folder.remove(message.name)
        return names

    def discard(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove the files that still have temporary names."""
        for message in messages:
            if isinstance(message, Written):
                self.folder.remove(message.name)

    def remove_others(self, stems: tuple[str, ...], retained: set[str]) -> None:
        """Remove the sink's files with some stems, of any format, except `retained`."""
        for name in self.folder.names():
            if name.startswith(stems) and name.endswith(_SUFFIXES) and name not in retained:
                self.folder.remove(name)


@dataclass
class Written(WriterCommitMessage):
    """A file with a temporary name, and the number of its quads."""

    name: str
    count: int


class FolderWriter(DataSourceWriter):
    """Writes the files of one job."""

    def __init__(self, target: Target, overwrite: bool):
        self._target = target
        self._overwrite = overwrite

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Write the rows of one partition."""
        return self._target.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Rename the files after all partitions were written."""
        self._target.folder.create()
        names = self._target.move(messages, f"part-{uuid.uuid4().hex}")
        if self._overwrite:
            self._target.remove_others(("part-", "batch-"), names)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the files after a partition failed."""
        self._target.discard(messages)


class BatchesWriter(DataSourceStreamWriter):
    """Writes the files of the batches of a streaming query."""

    def __init__(self, target: Target):
        self._target = target

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Write the rows of one partition of a batch."""
        return self._target.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Rename the files of a complete batch, and remove those of an earlier attempt."""
        self._target.folder.create()
        stem = f"batch-{batchId:08d}"
        self._target.remove_others((f"{stem}-",), self._target.move(messages, stem))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Remove the files of a batch after a partition failed."""
        self._target.discard(messages)


def line(terms: Sequence[str | None]) -> str:
    """A row as a line of N-Quads.

    Raises:
        SpaseqError: if a term is not N-Triples, such as an IRI without angle brackets.
    """
    forms = (_SUBJECT, _PREDICATE, _OBJECT, _SUBJECT)
    for place, (term, form) in enumerate(zip(terms, forms, strict=False)):
        if (term is None and place < 3) or (term and form.fullmatch(term) is None):
            raise SpaseqError(
                f"rdf: {term!r} cannot be the {('subject', 'predicate', 'object', 'graph')[place]} "
                "of a quad; terms are written as in N-Quads"
            )
    return " ".join(term for term in terms if term) + " .\n"


def _target(options: Mapping[str, Any], schema: StructType) -> Target:
    values = {name.lower(): value for name, value in options.items()}
    unknown = values.keys() - {name.lower() for name in _OPTIONS}
    if unknown:
        raise SpaseqError(f"rdf has no option {sorted(unknown)[0]}; it has {', '.join(_OPTIONS)}")
    path = values.get("path")
    if not path:
        raise SpaseqError("rdf needs a folder to write to: .save(folder)")
    form = values.get("format", "nquads")
    if form not in _FORMATS:
        raise SpaseqError(f"rdf: format is {one_of(_FORMATS)}, not {form!r}")
    syntax = _FORMATS[form]
    compression = values.get("compression", "none")
    if compression not in ("none", "gzip"):
        raise SpaseqError(f"rdf: compression is none or gzip, not {compression!r}")
    absent = [name for name in ("s", "p", "o") if name not in schema.names]
    if absent:
        raise SpaseqError(
            f"rdf writes the columns s, p, o and g; there is no {absent[0]}. "
            "spaseq.spark.quads derives them from the matches of a CONSTRUCT query"
        )
    has_graph = syntax.named_graphs and "g" in schema.names
    suffix = f".{syntax.name}" + (".gz" if compression == "gzip" else "")
    columns = ("s", "p", "o", "g") if has_graph else ("s", "p", "o")
    return Target(Folder(given_path(path)), suffix, columns)
