"""Matches as a table for people: the columns of a query, aligned, with terms shortened.

A block of rows is printed when the matches of a batch end. Columns are as wide as their widest cell
so far. The header is printed again if a later block needs wider columns, or if the matches of
another query follow. On a terminal the rows fit its width: the widest columns are cut with `…`, and
the header is bold unless `NO_COLOR` is set. Memory: one block.
"""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

import pyoxigraph as ox

from spaseq.io.sparql_results import match_term
from spaseq.rdf.event import Term
from spaseq.rdf.tagged import tag_of
from spaseq.results import Match

if TYPE_CHECKING:
    from spaseq.io.formats import Shape

ROWS_AT_ONCE = 1000
"""The most rows that are collected to compare their widths before they are printed."""
NARROWEST = 5
"""The minimum width of a column that is cut, in letters."""
_GAP = "  "
_LOCAL = re.compile(r"[\w.-]*")
_NUMBERS = {
    f"http://www.w3.org/2001/XMLSchema#{name}"
    for name in ("integer", "decimal", "double", "float", "int", "long", "nonNegativeInteger")
}
_NAMES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Table:
    """One header and one row per match; the rows of a query without columns show its name."""

    def __init__(self, out: TextIO, shapes: Sequence[Shape]):
        self._out = out
        self._columns = {shape.query: (*shape.leading, *shape.columns) for shape in shapes}
        self._leading = shapes[0].leading if shapes else ()
        self._is_named = len(shapes) > 1
        prefixes = {iri: name for shape in shapes for name, iri in reversed(shape.prefixes)}
        self._prefixes = dict(sorted(prefixes.items(), key=lambda pair: -len(pair[0])))
        self._width = _width(out)
        self._is_bold = out.isatty() and not os.environ.get("NO_COLOR")
        self._query: str | None = None
        self._is_announced = False
        self._rows: list[list[tuple[str, bool]]] = []
        self._widths: list[int] = []

    def write(self, match: Match) -> None:
        if match.query != self._query:
            self.flush()
            self._begin(match.query)
        cells = [self._cell(match_term(match, name)) for name in self._leading]
        columns = self._columns[match.query][len(self._leading) :]
        self._rows.append([*cells, *(self._cell(match.bindings.get(name)) for name in columns)])
        if len(self._rows) >= ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Print the rows so far."""
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        wanted = [max(letters(text) for text, _ in cells) for cells in zip(*rows, strict=True)]
        if any(new > old for new, old in zip(wanted, self._widths, strict=True)):
            self._widths = [max(pair) for pair in zip(wanted, self._widths, strict=True)]
            self._is_announced = False
        widths = _fitted(self._widths, self._width)
        lines = []
        if not self._is_announced:
            lines = self._header(widths, [cells[1] for cells in rows[0]])
            self._is_announced = True
        lines += [_line(cells, widths) for cells in rows]
        self._out.write("".join(line + "\n" for line in lines))

    def close(self) -> None:
        """Print the last rows; for a query without matches, only its header."""
        if self._query is None and len(self._columns) == 1:
            self._begin(next(iter(self._columns)))
            columns = self._columns[self._query or ""]
            lines = self._header(_fitted(self._widths, self._width), [False] * len(columns))
            self._out.write("".join(line + "\n" for line in lines))
        self.flush()

    def _begin(self, query: str) -> None:
        self._query = query
        self._is_announced = False
        self._widths = [letters(name) for name in self._columns[query]]

    def _header(self, widths: Sequence[int], right: Sequence[bool]) -> list[str]:
        assert self._query is not None
        names = list(zip(self._columns[self._query], right, strict=True))
        line = _line(names, widths)
        shown = [f"\x1b[1m{line}\x1b[0m" if self._is_bold else line]
        shown.append(_GAP.join("─" * width for width in widths))
        return [f"{self._query}:", *shown] if self._is_named else shown

    def _cell(self, term: Term | None) -> tuple[str, bool]:
        """A term in readable form, and whether it is a number."""
        if term is None:
            return "", False
        if isinstance(term, ox.BlankNode):
            return str(term), False
        if isinstance(term, ox.Triple):
            subject, predicate, value = (self._cell(part)[0] for part in term)
            return f"<<( {subject} {predicate} {value} )>>", False
        if isinstance(term, ox.NamedNode):
            return printable(self._shortened(term.value)), False
        tag = f"@{tag_of(term)}" if term.language else ""
        return printable(term.value + tag), term.datatype.value in _NUMBERS

    def _shortened(self, iri: str) -> str:
        for namespace, prefix in self._prefixes.items():
            if iri.startswith(namespace) and _LOCAL.fullmatch(iri, len(namespace)):
                return f"{prefix}:{iri[len(namespace) :]}"
        return f"<{iri}>"


def _width(out: TextIO) -> int | None:
    """The width of the terminal; None if the output is not a terminal."""
    return shutil.get_terminal_size().columns if out.isatty() else None


def _fitted(widths: Sequence[int], room: int | None) -> list[int]:
    """The widths, with the widest ones reduced until the columns fit."""
    fitted = list(widths)
    if room is None or not fitted:
        return fitted
    room -= len(_GAP) * (len(fitted) - 1)
    while sum(fitted) > room and max(fitted) > NARROWEST:
        widest = max(fitted)
        second = max((width for width in fitted if width < widest), default=NARROWEST)
        number = fitted.count(widest)
        fair = max(NARROWEST, second, widest - -(-(sum(fitted) - room) // number))
        fitted = [fair if width == widest else width for width in fitted]
    return fitted


def _line(cells: Sequence[tuple[str, bool]], widths: Sequence[int]) -> str:
    shown = []
    for (text, is_number), width in zip(cells, widths, strict=True):
        cut = _cut(text, width)
        blanks = " " * (width - letters(cut))
        shown.append(blanks + cut if is_number else cut + blanks)
    return _GAP.join(shown).rstrip()


def _cut(text: str, width: int) -> str:
    if letters(text) <= width:
        return text
    kept, size = "", 0
    for letter in text:
        size += _letter_width(letter)
        if size > width - 1:
            break
        kept += letter
    return kept + "…"


def letters(text: str) -> int:
    """The number of columns of a terminal that a text needs."""
    return len(text) if text.isascii() else sum(map(_letter_width, text))


def _letter_width(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def printable(text: str) -> str:
    """The text with its control characters escaped, which a terminal would execute."""
    if text.isprintable():
        return text
    return "".join(
        letter if unicodedata.category(letter) not in ("Cc", "Zl", "Zp", "Cs")
        else _NAMES.get(letter, f"\\u{ord(letter):04X}")
        for letter in text
    )  # fmt: skip
