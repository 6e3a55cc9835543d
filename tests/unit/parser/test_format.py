"""Formatting preserves the syntax tree, and the text is readable."""

from __future__ import annotations

import pyoxigraph
import pytest
from hypothesis import assume, given, settings
from syntax_trees import expressions, groups, queries

from spaseq.parser import (
    ast,
    format_expression,
    format_pattern,
    format_query,
    parse,
    parse_expression,
    parse_pattern,
)


def _is_relative(node: ast.Node) -> bool:
    """IRI() of a constant: the parser resolves it, so no parsed tree has one beside a BASE."""
    return (
        isinstance(node, ast.Call)
        and node.name == "IRI"
        and isinstance(node.arguments[0], ast.Literal)
    )


@settings(max_examples=100, deadline=None)
@given(queries())
def test_a_query_comes_back(query: ast.Query) -> None:
    assume(query.prologue.base is None or not any(map(_is_relative, ast.walk(query))))
    text = format_query(query)
    assert parse(text) == query
    assert format_query(parse(text)) == text


@settings(max_examples=100, deadline=None)
@given(groups())
def test_a_pattern_comes_back(group: ast.GroupGraphPattern) -> None:
    assert parse_pattern(format_pattern(group)) == group


@settings(max_examples=100, deadline=None)
@given(expressions())
def test_an_expression_comes_back(expression: ast.Expr) -> None:
    assert parse_expression(format_expression(expression)) == expression


@settings(max_examples=60, deadline=None)
@given(groups())
def test_a_pattern_is_sparql(group: ast.GroupGraphPattern) -> None:
    """Another parser reads the text, too (it may refuse to run what it has read)."""
    text = f"SELECT * WHERE {format_pattern(group)}"
    error: Exception | None = None
    try:
        pyoxigraph.Store().query(text)
    except (SyntaxError, RuntimeError, ValueError) as raised:
        error = raised  # unknown functions, services out of reach
    assert not isinstance(error, SyntaxError), f"{error}\n{text}"


LAID_OUT = """\
BASE <http://example.org/>
PREFIX : <http://example.org/ns#>

REGISTER QUERY falls AS
SELECT DISTINCT ?company (COUNT(B) AS ?n)
WITHIN 90 SECONDS
PARTITION BY (?company)
FROM STREAM S1 <http://example.org/stocks>
FROM NAMED <http://example.org/kb>
EMIT MAX
AFTER MATCH SKIP PAST LAST EVENT
WHERE {
  SEQ (A; B+, !(C; D) : (E | (F & G))?)
  DEFINE GPM A ON S1 AT ?t {
    ?company a :Company ;
      :price ?p1 .
    FILTER (?p1 > 10.5 && !BOUND(?x))
    OPTIONAL {
      ?company :label "name"@en .
    }
  }
  DEFINE GPM B ON S1, S2 {
    {
      ?s :p/^:q ?o .
    } UNION { }
    {
      SELECT ?s (MAX(?v) AS ?most) WHERE {
        ?s :v ?v .
      }
      GROUP BY ?s
      ORDER BY DESC(?most)
      LIMIT 1
    }
  }
}
LIMIT 5
"""


def test_the_layout() -> None:
    assert format_query(parse(LAID_OUT)) == LAID_OUT


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("?a+?b*?c-?d", "?a + ?b * ?c - ?d"),
        ("(?a+?b)*(?c-?d)", "(?a + ?b) * (?c - ?d)"),
        ("?a-(?b-?c)", "?a - (?b - ?c)"),
        ("!(?a=?b)||!?c", "!(?a = ?b) || !?c"),
        ("?a -1", "?a - 1"),
        ("?a - -1", "?a - -1"),
        ("-(-1)", "- -1"),
        ("- 1", "- 1"),
        ("?x not in(1,2)", "?x NOT IN (1, 2)"),
        ("(?a<?b)=(?c<?d)", "(?a < ?b) = (?c < ?d)"),
        ("'16.0'^^xsd:double", '"16.0"^^<http://www.w3.org/2001/XMLSchema#double>'),
        ("group_concat(distinct ?x; separator='|')", 'GROUP_CONCAT(DISTINCT ?x; SEPARATOR = "|")'),
    ],
)
def test_expressions(text: str, formatted: str) -> None:
    assert format_expression(parse_expression(text)) == formatted


def test_windows_take_the_largest_fitting_unit() -> None:
    for text in ("2 DAYS", "1 HOUR", "90 MINUTES", "1 SECOND", "TUMBLING 1500 MILLISECONDS"):
        query = f"ASK WITHIN {text} WHERE {{ SEQ (A) DEFINE GPM A ON S {{ }} }}"
        assert f"WITHIN {text}\n" in format_query(parse(query))
