"""RDF files → quads, with errors that name file and line.

The parser reports the line of syntax errors, but not for RDF/XML and not when it aborts. Such a
file is read line by line, and the error is attributed to the last line that the parser requested.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import pyoxigraph as ox

from spaseq.errors import KbError
from spaseq.rdf.bounded import CUT_OFF, Bounded
from spaseq.rdf.formats import (
    SYNTAXES,
    RdfSyntax,
    one_of,
    parser_format,
    syntax_of_extension,
)
from spaseq.rdf.line_feed import MAX_STRING_BYTES, LineFeed
from spaseq.rdf.syntax import LimitError, parser_failure, parser_message


class NumberedLines:
    """The lines of a binary file; `number` is the number of the last line read, from 1."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self.number = 0

    def readline(self) -> bytes:
        """The next line with its end; empty at the end of the file."""
        line = self._file.readline(MAX_STRING_BYTES + 1)
        self.number += bool(line)
        if len(line) > MAX_STRING_BYTES:
            raise LimitError(f"a line of more than {MAX_STRING_BYTES >> 20} MiB")
        return line


class NeedsCareError(KbError):
    """The file must be read again, line by line."""


def syntax_of(path: Path) -> tuple[RdfSyntax, bool]:
    """The syntax of a file by its extension, and whether the file is compressed.

    Raises:
        KbError: for an unknown extension.
    """
    packed = path.suffix == ".gz"
    extension = (path.with_suffix("") if packed else path).suffix.removeprefix(".")
    syntax = syntax_of_extension(extension)
    if syntax is None:
        raise KbError(
            f"{path}: no RDF format has the extension {extension!r}; the extensions are "
            f"{one_of(SYNTAXES, '.')}, followed by .gz if compressed"
        )
    return syntax, packed


def read_quads(path: Path, line_by_line: bool = False) -> Iterator[ox.Quad]:
    """The quads of a file, whose extension determines the format; `.gz` is decompressed.

    `line_by_line` is slower, but reads strings that exceed the parser's buffer, and reports the
    line of every error.

    Raises:
        NeedsCareError: if the parser aborts and `line_by_line` may succeed or locate the error.
        KbError: if the file cannot be read.
    """
    syntax, packed = syntax_of(path)
    lines: NumberedLines | None = None
    feed: LineFeed | None = None
    try:
        with _open(path, packed) as file:
            if line_by_line or syntax.line_feeding == "always":
                lines = NumberedLines(file)
                feed = LineFeed(lines, syntax.line_based)
            opened = Bounded(cast(IO[bytes], feed or file), syntax)
            base = path.resolve().as_uri()
            for quad in ox.parse(
                cast(IO[bytes], opened), format=parser_format(syntax), base_iri=base
            ):
                opened.expansion.count(quad)
                if feed is None:
                    yield quad
                else:
                    feed.statement_ended()
                    yield feed.restored(quad)
            if opened.scanner.is_cut_off:
                place = _place(path, lines.number if lines else 0)
                raise KbError(f"{place}: not RDF/XML: {CUT_OFF}")
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
    """The error for a parser that aborted."""
    if feed is None and syntax.line_feeding == "on failure":
        return NeedsCareError(f"{path}: {reason}")
    return KbError(f"{_place(path, feed.began if feed else 0)}: {reason}")


def _place(path: Path, number: int) -> str:
    return f"{path}:{number}" if number else str(path)


def _explained(error: SyntaxError, syntax: RdfSyntax) -> str:
    """The format and the parser's message, without the position."""
    said = parser_message(error)
    if "LoadDocumentCallback" in said:
        said = "its @context is remote; write the context into the file"
    column = f", column {error.offset}" if error.offset else ""
    return f"not {syntax.title}{column}: {said}"


def _open(path: Path, packed: bool) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if packed else path.open("rb")
