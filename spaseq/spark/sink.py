"""The data sink `rdf`: rows of quads to files of N-Quads (or N-Triples, of rows without `g`).

    df.write.format("rdf").mode("append").save(folder)
    df.writeStream.format("rdf").option("checkpointLocation", …).start(folder)

A file gets its name when its job or its batch is complete; those of a stream bear the batch's
number, so that a batch which is written again after a failure replaces what it left. Quads
stand in a file in the order of their partition's rows. `mode("overwrite")` removes every file
that an earlier write of this sink left in the folder, in whatever format and compression.
"""

from __future__ import annotations

import gzip
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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

_SUBJECT = re.compile(r"<[^<>\s]*>|_:\S+")
_PREDICATE = re.compile(r"<[^<>\s]*>")
_OBJECT = re.compile(r'<[^<>\s]*>|_:\S+|"[^\n\r]*"(?:@[\w-]+|\^\^<[^<>\s]*>)?')
_FORMATS = {"nquads": N_QUADS, "ntriples": N_TRIPLES}
_SUFFIXES = tuple(f".{syntax.name}{gz}" for syntax in _FORMATS.values() for gz in ("", ".gz"))
_KNOWN = ("path", "format", "compression", "checkpointLocation")


class RdfFiles(DataSource):
    """The data source."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "rdf"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """For `df.write`."""
        return FolderWriter(_target(self.options, schema), overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """For `df.writeStream`."""
        return BatchesWriter(_target(self.options, schema))


@dataclass(frozen=True, slots=True)
class Target:
    """Where files go, and what they are."""

    folder: str
    suffix: str
    columns: tuple[str, ...]

    def write(self, rows: Iterator[Row]) -> Written:
        """Some rows to a file that has no name yet."""
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(self.folder, f".{uuid.uuid4().hex}{self.suffix}")
        count = 0
        with cast(IO[bytes], (gzip.open if path.endswith(".gz") else open)(path, "wb")) as file:
            for row in rows:
                file.write(line([row[name] for name in self.columns]).encode())
                count += 1
        return Written(path, count)

    def move(self, messages: Sequence[WriterCommitMessage | None], stem: str) -> set[str]:
        """Give the files that hold something their names; these."""
        names = set()
        for number, message in enumerate(messages):
            if isinstance(message, Written) and message.count:
                name = f"{stem}-{number:05d}{self.suffix}"
                os.replace(message.path, os.path.join(self.folder, name))
                names.add(name)
        self.drop(messages)
        return names

    def drop(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Leave no file behind that got no name."""
        for message in messages:
            if isinstance(message, Written) and os.path.exists(message.path):
                os.remove(message.path)

    def others(self, stems: tuple[str, ...], kept: set[str]) -> None:
        """Remove the sink's files of some stems, of any format, that are not among those kept."""
        for name in os.listdir(self.folder):
            if name.startswith(stems) and name.endswith(_SUFFIXES) and name not in kept:
                os.remove(os.path.join(self.folder, name))


@dataclass
class Written(WriterCommitMessage):
    """A file without a name, and how many quads it holds."""

    path: str
    count: int


class FolderWriter(DataSourceWriter):
    """One job."""

    def __init__(self, target: Target, overwrite: bool):
        self._target = target
        self._overwrite = overwrite

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """The rows of one partition."""
        return self._target.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All partitions are written."""
        os.makedirs(self._target.folder, exist_ok=True)
        names = self._target.move(messages, f"part-{uuid.uuid4().hex}")
        if self._overwrite:
            self._target.others(("part-", "batch-"), names)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Some partition failed."""
        self._target.drop(messages)


class BatchesWriter(DataSourceStreamWriter):
    """The batches of a streaming query."""

    def __init__(self, target: Target):
        self._target = target

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """The rows of one partition of a batch."""
        return self._target.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """A batch is complete, maybe not for the first time."""
        os.makedirs(self._target.folder, exist_ok=True)
        stem = f"batch-{batchId:08d}"
        self._target.others((f"{stem}-",), self._target.move(messages, stem))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Some partition of a batch failed."""
        self._target.drop(messages)


def line(terms: Sequence[str | None]) -> str:
    """A row as a line of N-Quads.

    Raises:
        SpaseqError: for what is no term in N-Triples; a bare IRI is none.
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
    unknown = values.keys() - {name.lower() for name in _KNOWN}
    if unknown:
        raise SpaseqError(f"rdf has no option {sorted(unknown)[0]}; it has {', '.join(_KNOWN)}")
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
            "spaseq.spark.quads makes them of the matches of a CONSTRUCT"
        )
    has_graph = syntax.named_graphs and "g" in schema.names
    suffix = f".{syntax.name}" + (".gz" if compression == "gzip" else "")
    return Target(
        path.removeprefix("file:"), suffix, ("s", "p", "o", "g") if has_graph else ("s", "p", "o")
    )
