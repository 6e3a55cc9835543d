"""RDF/XML → statements, each with the number of the last line read.

pyoxigraph parses the lines as they are read. It accepts a file that ends before its root element is
closed, so Python's XML parser reads the same lines and reports such a file. An error ends the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, cast
from xml.parsers import expat

import pyoxigraph as ox

from spaseq.io.lines import Lines
from spaseq.io.read_options import Troubles
from spaseq.io.statements import Statement, explained
from spaseq.rdf.bounded import Scanner
from spaseq.rdf.formats import RDF_XML, parser_format
from spaseq.rdf.syntax import LimitError, parser_failure

_CUT_OFF = frozenset(
    getattr(expat.errors, f"XML_ERROR_{name}")
    for name in ("NO_ELEMENTS", "UNCLOSED_TOKEN", "PARTIAL_CHAR", "UNCLOSED_CDATA_SECTION")
)


class _Feed:
    """The lines for both parsers."""

    def __init__(self, lines: Lines):
        self._lines = lines
        self._text = b""
        self._at = 0
        self._scanner = Scanner(RDF_XML)
        self._structure: expat.XMLParserType | None = expat.ParserCreate()

    def read(self, size: int = -1) -> bytes:
        if self._at == len(self._text):
            self._text, self._at = self._lines.readline(), 0
            self._scanner.read(self._text)
            if self._structure is not None:
                try:
                    self._structure.Parse(self._text, False)
                except expat.ExpatError:
                    self._structure = None  # pyoxigraph decides whether this is an error
        end = len(self._text) if size < 0 else min(self._at + size, len(self._text))
        part = self._text[self._at : end]
        self._at = end
        return part

    def cut_off(self) -> str:
        """Why the file is incomplete; empty if it is not."""
        if self._structure is not None:
            try:
                self._structure.Parse(b"", True)
            except expat.ExpatError as error:
                message = expat.ErrorString(error.code)
                return message if message in _CUT_OFF else ""
        return ""


def rdf_xml_statements(lines: Lines, troubles: Troubles) -> Iterator[Statement]:
    """The statements of a file."""
    feed = _Feed(lines)
    try:
        parser = ox.parse(
            cast(IO[bytes], feed), format=parser_format(RDF_XML), base_iri=lines.base()
        )
        for quad in parser:
            yield quad, lines.number
    except SyntaxError as error:
        troubles.report(explained(error, RDF_XML), lines.name, error.lineno or lines.number)
        return
    except LimitError as error:
        troubles.report(str(error), lines.name, lines.number)
        return
    except BaseException as error:
        failure = parser_failure(error)
        if failure is None:
            raise
        troubles.report(failure, lines.name, lines.number)
        return
    reason = feed.cut_off()
    if reason:
        troubles.report(
            f"not RDF/XML: the file ends before its root element is closed ({reason})",
            lines.name,
            lines.number,
        )
