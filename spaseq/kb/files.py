"""RDF files → quads, with errors that name file and line.

The parser tells where it is in its errors in syntax, but not in those of RDF/XML and not where it
cannot go on: such a file is handed to it line by line, and the line is the last one it asked for.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import pyoxigraph as ox

from spaseq.errors import KbError
from spaseq.rdf.formats import SYNTAXES, RdfSyntax, one_of, parser_format, syntax_of_extension
from spaseq.rdf.line_feed import LineFeed
from spaseq.rdf.syntax import LimitError, nesting, parser_failure, parser_message


class NumberedLines:
    """The lines of a binary file; `number` is that of the last one."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self.number = 0

    def readline(self) -> bytes:
        """The next line with its end; empty at the end of the file."""
        line = self._file.readline()
        self.number += bool(line)
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


class NeedsCareError(KbError):
    """The file has to be read again, line by line."""


def read_quads(path: Path, line_by_line: bool = False) -> Iterator[ox.Quad]:
    """The quads of a file, by its extension; `.gz` is unpacked on the way.

    `line_by_line` is slower. It reads strings that are longer than what the parser holds, and tells
    the line of every error.

    Raises:
        NeedsCareError: where only that can tell what is in the file, or what is wrong with it.
        KbError: for what cannot be read.
    """
    packed = path.suffix == ".gz"
    extension = (path.with_suffix("") if packed else path).suffix.removeprefix(".")
    syntax = syntax_of_extension(extension)
    if syntax is None:
        raise KbError(
            f"{path}: no RDF format has the extension {extension!r}; name the file "
            f"{one_of(SYNTAXES, '.')}, with .gz after it if it is packed"
        )
    lines: NumberedLines | None = None
    feed: LineFeed | None = None
    try:
        with _open(path, packed) as file:
            if line_by_line or syntax.line_feeding == "always":
                lines = NumberedLines(file)
                feed = LineFeed(lines, syntax.line_based)
            opened = cast(IO[bytes], feed or _Checked(file))
            base = path.resolve().as_uri()
            for quad in ox.parse(opened, format=parser_format(syntax), base_iri=base):
                if feed is None:
                    yield quad
                else:
                    feed.statement_ended()
                    yield feed.restored(quad)
    except SyntaxError as error:
        number = error.lineno or (lines.number if lines else 0)
        raise KbError(f"{_place(path, number)}: {_explained(error, syntax)}") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise KbError(f"{path}: cannot be read: {reason}") from None
    except LimitError as error:
        raise _failed(path, feed, syntax, str(error)) from None
    except BaseException as error:
        failure = parser_failure(error)
        if failure is None:
            raise
        raise _failed(path, feed, syntax, failure) from None


def _failed(path: Path, feed: LineFeed | None, syntax: RdfSyntax, reason: str) -> KbError:
    """The error for a parser that cannot go on."""
    if feed is None and syntax.line_feeding == "on failure":
        return NeedsCareError(f"{path}: {reason}")
    return KbError(f"{_place(path, feed.began if feed else 0)}: {reason}")


def _place(path: Path, number: int) -> str:
    return f"{path}:{number}" if number else str(path)


def _explained(error: SyntaxError, syntax: RdfSyntax) -> str:
    """The parser's message without its place, and what was being read."""
    said = parser_message(error)
    if "LoadDocumentCallback" in said:
        said = "its @context is elsewhere; write the context into the file"
    column = f", column {error.offset}" if error.offset else ""
    return f"not {syntax.title}{column}: {said}"


def _open(path: Path, packed: bool) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if packed else path.open("rb")
