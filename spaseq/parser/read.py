"""The way from text to tree: lexer, automaton, builder, and SPARQL's rules of scope."""

from __future__ import annotations

from typing import Any

from spaseq.errors import Diagnostic
from spaseq.parser import ast
from spaseq.parser.build import QueryBuilder
from spaseq.parser.build_expression import DEEPEST, LONGEST_CHAIN, TooDeep
from spaseq.parser.lalr import Automaton, Unexpected, run
from spaseq.parser.lexer import Lexer
from spaseq.parser.source import Source
from spaseq.parser.sparql_rules import check


def parse(text: str, name: str = "query") -> ast.Query:
    """The tree of a SPAseq query; `name` stands in front of the places in error messages."""
    query: ast.Query = _read("query", text, name, None)
    return query


def examine(text: str) -> tuple[ast.Query | None, list[Diagnostic]]:
    """The tree of a query with the errors found in its text, in the order of the text.

    The tree is None where the text has none, or where an error has left out too much of it for
    further checks.
    """
    source = Source(text)
    query: ast.Query | None = _build("query", source, None)
    return None if source.incomplete else query, source.ordered_findings()


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
    node = _build(start, source, prefixes)
    source.raise_findings()
    return node


def _build(start: str, source: Source, prefixes: dict[str, str] | None) -> Any:
    """The tree of the text; None where there is none, with the reason among the findings."""
    automaton = Automaton(start)
    try:
        tree = run(Lexer(source.lexed, automaton), automaton)
        node = QueryBuilder(source, prefixes).build(tree)
        check(node, source)
        return node
    except Unexpected as error:
        # Only wrong queries need it, and right ones are read by the thousand.
        from spaseq.parser.diagnose import diagnose

        diagnose(error.token, automaton, source)
    except TooDeep as error:
        source.report(
            "this is nested too deeply, or too long a chain of operators",
            source.span(error.part.start, error.part.start + 1),
            f"at most {DEEPEST} brackets within each other, and {LONGEST_CHAIN} operands in a row; "
            "IN and VALUES say many comparisons at once",
        )
    return None
