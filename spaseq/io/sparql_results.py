"""Solutions of a SELECT as tables: SPARQL 1.1 results in CSV, TSV, JSON and XML, row by row.

A row is just the solution, without times and witnesses. The header is written when the writer is
made, so a document without matches is also well-formed.

Source: W3C, *SPARQL 1.1 Query Results CSV and TSV Formats*, *… JSON Format*, *SPARQL
Query Results XML Format*.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TextIO

import pyoxigraph as ox

from spaseq.errors import SpaseqError
from spaseq.io.identity import plain
from spaseq.io.native._match_blocks import CsvMaker, ResultsJsonMaker, TsvMaker
from spaseq.rdf.event import Term, n_triples
from spaseq.rdf.time import canonical_literal
from spaseq.results import Match, solution_to_json
from spaseq.results.data import XSD_STRING
from spaseq.sparql.builtins import XSD

_RESULTS = "http://www.w3.org/2005/sparql-results#"
_ITS = "http://www.w3.org/2005/11/its"
_REFERENCES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#xD;"}
_REFERENCES |= {"\t": "&#x9;", "\n": "&#xA;"}
_XML_MARKUP = re.compile('[&<>"\r]')
# The forms of numbers without quotes in Turtle.
_NUMBERS = {
    XSD + "integer": re.compile("[+-]?[0-9]+"),
    XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD + "double": re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+"),
}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Csv:
    """Plain values: this format does not record the kinds of terms.

    Columns of the match are not among the W3C's, so compiled code does not write them.
    """

    def __init__(self, out: TextIO, columns: Sequence[str], leading: Sequence[str] = ()):
        self._out = out
        self._columns = columns
        self._leading = leading
        self.maker = None if leading else CsvMaker
        out.write(",".join([*leading, *columns]) + "\r\n")

    def write(self, match: Match) -> None:
        cells = [_csv_cell(match_term(match, name)) for name in self._leading]
        cells += [_csv_cell(match.bindings.get(name)) for name in self._columns]
        self._out.write(",".join(cells) + "\r\n")

    def close(self) -> None:
        """Nothing follows the last row."""


class Tsv:
    """Terms in the syntax of Turtle; integers, decimals and doubles as plain numbers."""

    def __init__(self, out: TextIO, columns: Sequence[str], leading: Sequence[str] = ()):
        self._out = out
        self._columns = columns
        self._leading = leading
        self.maker = None if leading else TsvMaker
        out.write("\t".join(f"?{name}" for name in (*leading, *columns)) + "\n")

    def write(self, match: Match) -> None:
        cells = [_tsv_cell(match_term(match, name)) for name in self._leading]
        cells += [_tsv_cell(match.bindings.get(name)) for name in self._columns]
        self._out.write("\t".join(cells) + "\n")

    def close(self) -> None:
        """Nothing follows the last row."""


class ResultsJson:
    """One JSON document: the solutions of a SELECT, or whether an ASK had a match."""

    maker = ResultsJsonMaker

    def __init__(self, out: TextIO, columns: Sequence[str], ask: bool):
        self._out = out
        self._ask = ask
        self._rows = 0
        if not ask:
            head = json.dumps({"vars": list(columns)}, ensure_ascii=False)
            out.write(f'{{"head": {head}, "results": {{"bindings": [')

    def write(self, match: Match) -> None:
        if not self._ask:
            row = json.dumps(solution_to_json(match.bindings), ensure_ascii=False)
            self._out.write(",\n" + row if self._rows else "\n" + row)
        self._rows += 1

    def joined(self, block: memoryview, rows: int) -> memoryview:
        """A block of rows, each after a comma; the first row of a document has none."""
        first = self._rows == 0
        self._rows += rows
        return block[1:] if first else block

    def close(self) -> None:
        """Complete the document."""
        if self._ask:
            self._out.write(json.dumps({"head": {}, "boolean": self._rows > 0}) + "\n")
        else:
            self._out.write("\n]}}\n")


class ResultsXml:
    """One XML document: the solutions of a SELECT, or whether an ASK had a match."""

    def __init__(self, out: TextIO, columns: Sequence[str], ask: bool):
        self._out = out
        self._ask = ask
        self._rows = 0
        out.write(f'<?xml version="1.0"?>\n<sparql xmlns="{_RESULTS}">\n')
        names = "".join(f'<variable name="{name}"/>' for name in columns)
        out.write(f"<head>{names}</head>\n" + ("" if ask else "<results>\n"))

    def write(self, match: Match) -> None:
        self._rows += 1
        if not self._ask:
            cells = [
                f'<binding name="{name}">{_xml_term(term)}</binding>'
                for name, term in match.bindings.items()
            ]
            self._out.write(f"<result>{''.join(cells)}</result>\n")

    def close(self) -> None:
        """Complete the document."""
        if self._ask:
            self._out.write(f"<boolean>{'true' if self._rows else 'false'}</boolean>\n</sparql>\n")
        else:
            self._out.write("</results>\n</sparql>\n")


def _xml_term(term: Term) -> str:
    if isinstance(term, ox.NamedNode):
        return f"<uri>{_xml_text(term.value)}</uri>"
    if isinstance(term, ox.BlankNode):
        return f"<bnode>{term.value}</bnode>"
    if isinstance(term, ox.Triple):
        names = ("subject", "predicate", "object")
        parts = [
            f"<{name}>{_xml_term(part)}</{name}>" for name, part in zip(names, term, strict=True)
        ]
        return f"<triple>{''.join(parts)}</triple>"
    kind = ""
    if term.language:
        kind = f' xml:lang="{term.language}"'
        if term.direction is not None:
            kind += f' xmlns:its="{_ITS}" its:version="2.0" its:dir="{term.direction.value}"'
    elif term.datatype.value != XSD_STRING:
        kind = f' datatype="{_xml_text(term.datatype.value)}"'
    return f"<literal{kind}>{_xml_text(term.value)}</literal>"


def _xml_text(text: str) -> str:
    """The text with references for markup, and for white space that parsers change.

    Raises:
        SpaseqError: for a character that XML 1.0 cannot hold.
    """
    if (bad := _NOT_XML.search(text)) is not None:
        raise SpaseqError(
            f"srx cannot contain U+{ord(bad[0]):04X}, a control character, in {text[:40]!r}; "
            "use --format srj"
        )
    return _XML_MARKUP.sub(lambda found: _REFERENCES[found[0]], text)


def _csv_cell(term: Term | None) -> str:
    if term is None:
        return ""
    text = plain(term)
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _tsv_cell(term: Term | None) -> str:
    if term is None:
        return ""
    if isinstance(term, ox.Literal):
        number = _NUMBERS.get(term.datatype.value)
        if number is not None and number.fullmatch(term.value):
            return term.value
    return n_triples(term)


def match_term(match: Match, name: str) -> Term:
    """The value of a column of `spaseq.io.formats.MATCH_COLUMNS`."""
    if name == "query":
        return ox.Literal(match.query)
    return canonical_literal(match.start if name == "start" else match.end)
