"""The way from text to tree: lexer, LALR tables, builder, and SPARQL's rules of scope."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedToken
from lark.lexer import PatternStr

from spaseq.parser import ast
from spaseq.parser.build import QueryBuilder
from spaseq.parser.diagnose import diagnose
from spaseq.parser.lexer import ContextLexer
from spaseq.parser.scope import check
from spaseq.parser.source import Source


def parse(text: str, name: str = "query") -> ast.Query:
    """The tree of a SPAseq query; `name` stands in front of the places in error messages."""
    query: ast.Query = _read("query", text, name, None)
    return query


def parse_pattern(text: str, prefixes: dict[str, str] | None = None) -> ast.GroupGraphPattern:
    """The tree of `{ … }`, a SPARQL group graph pattern with SPAseq's expressions."""
    group: ast.GroupGraphPattern = _read("pattern", text, "pattern", prefixes)
    return group


def parse_expression(text: str, prefixes: dict[str, str] | None = None) -> ast.Expr:
    """The tree of a SPARQL expression, with SPAseq's `PREV`, `FIRST`, `LAST`."""
    expression: ast.Expr = _read("expression", text, "expression", prefixes)
    return expression


def _read(start: str, text: str, name: str, prefixes: dict[str, str] | None) -> Any:
    source = Source(text, name)
    try:
        tree = _lark().parse(source.lexed, start=start)
    except UnexpectedToken as error:
        diagnose(error, source, _shown())
        source.raise_findings()
    node = QueryBuilder(source, prefixes).build(tree)
    check(node, source)
    source.raise_findings()
    return node


@cache
def _lark() -> Lark:
    grammar = files("spaseq.parser").joinpath("grammar.lark").read_text("utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer=ContextLexer,
        start=["query", "pattern", "expression"],
        propagate_positions=True,
        maybe_placeholders=False,
    )


@cache
def _shown() -> dict[str, str]:
    """Of each keyword's and sign's terminal, how it is written."""
    return {
        terminal.name: terminal.pattern.value
        for terminal in _lark().terminals
        if isinstance(terminal.pattern, PatternStr)
    }
