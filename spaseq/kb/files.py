"""RDF files → quads, with errors that name file and line.

The parser tells where it is in its errors, but not in those of RDF/XML: such a file is
handed to it line by line, and the line is the last one it asked for.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import pyoxigraph as ox

from spaseq.errors import KbError
from spaseq.rdf.syntax import LimitError, nesting, parser_failure, parser_message


class LineFeed:
    """A binary file for the parser that hands out at most one line at a time, and counts."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._inside = False
        self.number = 0

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, never beyond the end of a line; empty at the end."""
        line = self._file.readline(size)
        if line and not self._inside:
            self.number += 1
        self._inside = bool(line) and not line.endswith(b"\n")
        return line


class _Checked:
    """A binary file for the parser, in which triple terms are not nested too deeply."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._opened = 0
        self._end = b""

    def read(self, size: int = -1) -> bytes:
        """As the file's own."""
        data = self._file.read(size)
        # A bracket that two reads share is seen with the second one.
        self._opened = nesting(self._end + data, self._opened)
        self._end = data[-2:] if data[-1:] in (b"<", b"(", b")", b">") else b""
        return data


def read_quads(path: Path) -> Iterator[ox.Quad]:
    """The quads of a file, by its extension; `.gz` is unpacked on the way."""
    packed = path.suffix == ".gz"
    extension = (path.with_suffix("") if packed else path).suffix.removeprefix(".")
    form = ox.RdfFormat.from_extension(extension)
    if form is None:
        raise KbError(
            f"{path}: no RDF format has the extension {extension!r}; name the file "
            ".ttl, .nt, .nq, .trig, .rdf, .jsonld or .n3, with .gz after it if it is packed"
        )
    line = 0
    try:
        with _open(path, packed) as file:
            feed = LineFeed(file) if form == ox.RdfFormat.RDF_XML else None
            try:
                opened = cast(IO[bytes], _Checked(file) if feed is None else feed)
                yield from ox.parse(opened, format=form, base_iri=path.resolve().as_uri())
            finally:
                line = 0 if feed is None else feed.number
    except SyntaxError as error:
        number = error.lineno or line
        where = f"{path}:{number}" if number else str(path)
        raise KbError(f"{where}: {_explained(error, form)}") from None
    except LimitError as error:
        raise KbError(f"{path}: {error}") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise KbError(f"{path}: cannot be read: {reason}") from None
    except BaseException as error:
        failure = parser_failure(error)
        if failure is None:
            raise
        raise KbError(f"{path}: {failure}") from None


def _explained(error: SyntaxError, form: ox.RdfFormat) -> str:
    """The parser's message without its place, and what was being read."""
    said = parser_message(error)
    if "LoadDocumentCallback" in said:
        said = "its @context is elsewhere; write the context into the file"
    column = f", column {error.offset}" if error.offset else ""
    return f"not {form.name}{column}: {said}"


def _open(path: Path, packed: bool) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if packed else path.open("rb")
