"""RDF/XML → statements, each with the number of the last line read.

pyoxigraph parses the lines as they are read. It accepts a file that ends before its root element is
closed; the scanner of spaseq/rdf/bounded.py, which reads the same lines, reports such a file. An
error ends the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, cast

import pyoxigraph as ox

from spaseq.io.statements import Statement, explained
from spaseq.rdf.bounded import CUT_OFF, Bounded
from spaseq.rdf.formats import RDF_XML, parser_format
from spaseq.rdf.syntax import LimitError, parser_failure

if TYPE_CHECKING:
    from spaseq.io.lines import Lines
    from spaseq.io.read_options import Troubles


class _Feed:
    """The lines as a binary file."""

    def __init__(self, lines: Lines):
        self._lines = lines

    def read(self, size: int = -1) -> bytes:
        """The next line, whatever its size."""
        return self._lines.readline()


def rdf_xml_statements(lines: Lines, troubles: Troubles) -> Iterator[Statement]:
    """The statements of a file."""
    file = Bounded(cast(IO[bytes], _Feed(lines)), RDF_XML)
    try:
        parser = ox.parse(
            cast(IO[bytes], file), format=parser_format(RDF_XML), base_iri=lines.base()
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
    if file.scanner.is_cut_off:
        troubles.report(f"not RDF/XML: {CUT_OFF}", lines.name, lines.number)
