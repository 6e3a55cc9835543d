"""The table for terminals: alignment, shortened terms, width, and rows without delay."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping

import pyoxigraph as ox
import pytest

from spaseq.io import table
from spaseq.io.formats import Shape
from spaseq.io.table import Table, letters, printable
from spaseq.rdf.event import NUMBER, Term
from spaseq.rdf.time import from_micros
from spaseq.results import Match

XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIXES = (("", "http://example.org/"), ("in", "http://example.org/in/"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def match(bindings: Mapping[str, Term], query: str = "q") -> Match:
    now = from_micros(0, NUMBER)
    return Match(query, now, now, bindings, ())


def number(text: str) -> ox.Literal:
    return ox.Literal(text, datatype=ox.NamedNode(XSD + "decimal"))


def test_columns_are_aligned_and_terms_are_shortened() -> None:
    out = io.StringIO()
    written = Table(out, [Shape("q", "select", ("company", "p", "note"), PREFIXES)])
    for bindings in (
        {"company": ox.NamedNode("http://example.org/eBay"), "p": number("14.5")},
        {"company": ox.NamedNode("http://example.org/in/a"), "p": number("3"),
         "note": ox.Literal("bonjour\n\x1b[31m", language="fr")},
        {"company": ox.NamedNode("http://example.org/a/b"), "note": ox.BlankNode("x")},
        {"note": ox.Literal("x", language="ar", direction=ox.BaseDirection.RTL)},
    ):  # fmt: skip
        written.write(match(bindings))
    assert out.getvalue() == ""
    written.close()
    assert out.getvalue().splitlines() == [
        "company                      p  note",
        "────────────────────────  ────  ──────────────────────",
        ":eBay                     14.5",
        "in:a                         3  bonjour\\n\\u001B[31m@fr",
        "<http://example.org/a/b>        _:x",
        "                                x@ar--rtl",
    ]


def test_wider_columns_and_other_queries_have_another_header() -> None:
    out = io.StringIO()
    shapes = [Shape("q", "select", ("a",)), Shape("r", "select", ("b", "c"))]
    written = Table(out, shapes)
    for value in ("12", "1", "1234"):
        written.write(match({"a": number(value)}))
        written.flush()
    written.write(match({"c": ox.Literal("x")}, "r"))
    written.close()
    assert out.getvalue().splitlines() == [
        "q:", " a", "──", "12", " 1", "q:", "   a", "────", "1234",
        "r:", "b  c", "─  ─", "   x",
    ]  # fmt: skip


@pytest.mark.parametrize("no_color", ["", "1"])
def test_rows_fit_the_terminal(monkeypatch: pytest.MonkeyPatch, no_color: str) -> None:
    size = os.terminal_size((30, 20))
    monkeypatch.setattr(table.shutil, "get_terminal_size", lambda: size)
    monkeypatch.setenv("NO_COLOR", no_color)
    out = Terminal()
    written = Table(out, [Shape("q", "select", ("a", "b", "c"))])
    written.write(match({"a": ox.Literal("x" * 50), "b": ox.Literal("y" * 50), "c": number("7")}))
    written.write(match({"a": ox.Literal("界" * 20), "b": ox.Literal("e\u0301" * 12)}))
    written.close()
    header, _, *rows = out.getvalue().splitlines()
    assert header.startswith("\x1b[1m") != bool(no_color)
    assert [letters(row) for row in rows] == [29, 26]
    assert rows[0] == "xxxxxxxxxxx…  yyyyyyyyyyy…  7"
    assert rows[1].startswith("界界界界界…")


def test_a_query_without_matches_has_its_header() -> None:
    out = io.StringIO()
    Table(out, [Shape("q", "select", ("a", "b"))]).close()
    assert out.getvalue() == "a  b\n─  ─\n"


def test_letters() -> None:
    assert (letters("ab"), letters("界"), letters("e\u0301"), letters("a\u200d")) == (2, 2, 1, 1)
    assert printable("é界 ok") == "é界 ok"
    assert printable("\t\x9b\u2028") == "\\t\\u009B\\u2028"
