"""The W3C's SPARQL syntax tests are accepted and refused, and formatting preserves the meaning."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pyoxigraph
import pytest
from w3c_patterns import BASE, W3cTest, adapted, as_query, read_manifest

from spaseq.errors import QuerySyntaxError
from spaseq.parser import ast, format_pattern, format_query, parse, parse_pattern

_DATA = os.environ.get("SPASEQ_DATA")
_TESTS = [
    test
    for manifest in sorted(Path(_DATA or "/nonexistent", "w3c/sparql").glob("*/*/manifest.ttl"))
    for test in read_manifest(manifest)
]
_NOT_IN_THE_PATTERN = {
    "constructwhere05.rq": "what CONSTRUCT WHERE may hold is a rule about CONSTRUCT",
    "constructwhere06.rq": "what CONSTRUCT WHERE may hold is a rule about CONSTRUCT",
    "syn-bad-pname-01.rq": "the mistake is in a declaration",
    "syn-bad-pname-02.rq": "the mistake is in a declaration",
    "syn-bad-pname-03.rq": "the mistake is in a declaration",
    "syn-bad-pname-04.rq": "the mistake is in a declaration",
    "syntax-form-describe01.rq": "DESCRIBE has no pattern",
    "syntax-form-describe02.rq": "DESCRIBE has no pattern",
}
_CHANGING = ("BNODE", "NOW", "RAND", "STRUUID", "UUID", "SERVICE")

pytestmark = pytest.mark.skipif(_DATA is None, reason="SPASEQ_DATA names no test data")


def _adapted(test: W3cTest) -> tuple[str, str]:
    reason = _NOT_IN_THE_PATTERN.get(test.query.name)
    if reason is not None:
        pytest.skip(reason)
    parts = adapted(test.query.read_text("utf-8"))
    assert parts is not None
    return parts


@pytest.mark.parametrize("test", [test for test in _TESTS if test.positive], ids=str)
def test_accepts_and_formats(test: W3cTest) -> None:
    query = parse(as_query(*_adapted(test)))
    assert parse(format_query(query)) == query
    pattern = query.defines[0].pattern
    assert parse_pattern(format_pattern(pattern)) == pattern


@pytest.mark.parametrize("test", [test for test in _TESTS if not test.positive], ids=str)
def test_refuses(test: W3cTest) -> None:
    with pytest.raises(QuerySyntaxError):
        parse(as_query(*_adapted(test)))


@pytest.mark.parametrize("test", [test for test in _TESTS if test.evaluation], ids=str)
def test_formatted_pattern_has_the_same_solutions(test: W3cTest) -> None:
    parts = _adapted(test)
    query = parse(as_query(*parts))
    group = query.defines[0].pattern
    if any(word in format_pattern(group) for word in _CHANGING):
        pytest.skip("the query gives other results each time")
    if not isinstance(group.elements[0], ast.SubSelect):
        pytest.skip("only SELECT queries have solutions")
    store = pyoxigraph.Store()
    for path in (*test.data, *test.graphs):
        graph = None if path in test.data else pyoxigraph.NamedNode(path.as_uri())
        kind = pyoxigraph.RdfFormat.from_extension(path.suffix[1:])
        assert kind is not None
        store.load(path=str(path), format=kind, base_iri=path.as_uri(), to_graph=graph)
    try:
        expected = store.query(parts[0] + parts[1][1:-1], base_iri=BASE)  # without the braces
    except (SyntaxError, RuntimeError) as error:
        pytest.skip(f"pyoxigraph does not run it: {error}")
    names = [variable.value for variable in expected.variables]
    # The base matters to IRI(), which resolves what it is given at run time.
    base = query.prologue.base
    formatted = store.query(f"SELECT * {format_pattern(group)}", base_iri=base)
    assert _solutions(formatted, names) == _solutions(expected, names)


def _solutions(solutions: pyoxigraph.QuerySolutions, names: list[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for solution in solutions:
        values = [solution[name] for name in names]
        found[
            " ".join(
                "_:" if isinstance(each, pyoxigraph.BlankNode) else str(each) for each in values
            )
        ] += 1
    return found


def test_the_pattern_is_what_the_query_says() -> None:
    query = parse(as_query("PREFIX : <http://e/>", "{ SELECT ?s { ?s :p [] } LIMIT 1 }"))
    (select,) = query.defines[0].pattern.elements
    assert isinstance(select, ast.SubSelect)
    assert select.limit == 1
