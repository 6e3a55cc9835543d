"""Solutions of a SELECT as tables: SPARQL 1.1 results in CSV, TSV and JSON, row by row.

A row is the solution alone, without times and witnesses. The header is written when the writer is
made, so a document without matches is well-formed too.

Source: W3C, *SPARQL 1.1 Query Results CSV and TSV Formats*, *… JSON Format*.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TextIO

import pyoxigraph as ox

from spaseq.io.native._match_blocks import CsvMaker, ResultsJsonMaker, TsvMaker
from spaseq.rdf.event import Term
from spaseq.results import Match, solution_to_json


class Csv:
    """Plain values: this format does not record the kinds of terms."""

    maker = CsvMaker

    def __init__(self, out: TextIO, columns: Sequence[str]):
        self._out = out
        self._columns = columns
        out.write(",".join(columns) + "\r\n")

    def write(self, match: Match) -> None:
        cells = (_csv_cell(match.bindings.get(name)) for name in self._columns)
        self._out.write(",".join(cells) + "\r\n")

    def close(self) -> None:
        """Nothing follows the last row."""


class Tsv:
    """Terms in the syntax of Turtle, without abbreviations."""

    maker = TsvMaker

    def __init__(self, out: TextIO, columns: Sequence[str]):
        self._out = out
        self._columns = columns
        out.write("\t".join(f"?{name}" for name in columns) + "\n")

    def write(self, match: Match) -> None:
        cells = (_tsv_cell(match.bindings.get(name)) for name in self._columns)
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

    def joined(self, block: bytes, rows: int) -> bytes:
        """A block of rows, each behind a comma, as it follows the rows before it."""
        first = self._rows == 0
        self._rows += rows
        return block[1:] if first else block

    def close(self) -> None:
        """Complete the document."""
        if self._ask:
            self._out.write(json.dumps({"head": {}, "boolean": self._rows > 0}) + "\n")
        else:
            self._out.write("\n]}}\n")


def _csv_cell(term: Term | None) -> str:
    if term is None:
        return ""
    text = str(term) if isinstance(term, ox.BlankNode) else term.value
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _tsv_cell(term: Term | None) -> str:
    return "" if term is None else str(term)
