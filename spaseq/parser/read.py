"""Text → syntax tree: runs the lexer, the automaton, the builder and SPARQL's scope rules."""

from __future__ import annotations

from typing import Any

from spaseq.errors import Diagnostic
from spaseq.parser import ast
from spaseq.parser.build import QueryBuilder
from spaseq.parser.build_expression import MAX_CHAIN, MAX_NESTING, TooDeep
from spaseq.parser.lalr import Automaton, Unexpected, run
from spaseq.parser.lexer import Lexer
from spaseq.parser.source import Source
from spaseq.parser.sparql_rules import check


def parse(text: str, name: str = "query") -> ast.Query:
    """Parse a SPAseq query.

    Args:
        text: The query.
        name: Prefix of positions in error messages, such as the name of the file.

    Raises:
        QuerySyntaxError: with every mistake found in the text.
    """
    query: ast.Query = _read("query", text, name, None)
    return query


def examine(text: str) -> tuple[ast.Query | None, list[Diagnostic]]:
    """The tree of a query, and the errors found in its text, in text order.

    The tree is None if the text cannot be parsed, or if an error makes the tree too incomplete
    for further checks.
    """
    source = Source(text)
    query: ast.Query | None = _build("query", source, None)
    return None if source.incomplete else query, source.ordered_findings()


def parse_mapping(text: str, name: str = "mapping") -> ast.Mapping:
    """Parse `CONSTRUCT { … } WHERE { … }` with SPARQL's prologue.

    Args:
        text: The mapping.
        name: Prefix of positions in error messages, such as the name of the file.

    Raises:
        QuerySyntaxError: with every mistake found in the text.
    """
    mapping: ast.Mapping = _read("mapping", text, name, None)
    return mapping


def parse_pattern(text: str, prefixes: dict[str, str] | None = None) -> ast.GroupGraphPattern:
    """Parse `{ … }`, a SPARQL group graph pattern with SPAseq's expressions.

    `prefixes` adds to the predeclared ones. Raises `QuerySyntaxError`.
    """
    group: ast.GroupGraphPattern = _read("pattern", text, "pattern", prefixes)
    return group


def parse_expression(text: str, prefixes: dict[str, str] | None = None) -> ast.Expr:
    """Parse a SPARQL expression with SPAseq's `PREV`, `FIRST` and `LAST`.

    `prefixes` adds to the predeclared ones. Raises `QuerySyntaxError`.
    """
    expression: ast.Expr = _read("expression", text, "expression", prefixes)
    return expression


def _read(start: str, text: str, name: str, prefixes: dict[str, str] | None) -> Any:
    source = Source(text, name)
    node = _build(start, source, prefixes)
    source.raise_findings()
    return node


def _build(start: str, source: Source, prefixes: dict[str, str] | None) -> Any:
    """The tree of the text, or None with the reason reported to `source`."""
    automaton = Automaton(start)
    try:
        tree = run(Lexer(source.lexed, automaton), automaton)
        node = QueryBuilder(source, prefixes).build(tree)
        check(node, source)
        return node
    except Unexpected as error:
        # Imported here: only invalid queries need it.
        from spaseq.parser.diagnose import diagnose

        diagnose(error.token, automaton, source)
    except TooDeep as error:
        source.report(
            "this is nested too deeply, or chains too many operators",
            source.span(error.part.start, error.part.start + 1),
            f"at most {MAX_NESTING} nested brackets and {MAX_CHAIN} operands in a row; "
            "IN and VALUES express many comparisons at once",
        )
    return None
