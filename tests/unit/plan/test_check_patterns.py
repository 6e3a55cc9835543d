"""What in a GPM's pattern is not executed, or cannot be what it says."""

from __future__ import annotations

import pytest
from plan_queries import findings, only, query_text

from spaseq.plan.check_patterns import CASTS, XSD, is_executed


def of(body: str) -> str:
    return query_text("A", {"A": body})


@pytest.mark.parametrize(
    "body",
    [
        "{ ?s :p ?x FILTER(xsd:integer(?x) > 1) }",
        "{ ?s :p ?x GRAPH ?g { ?x :q/:r* ?y } MINUS { ?s :bad ?y } }",
        "{ { SELECT ?s (MAX(?x) AS ?m) { ?s :p ?x } GROUP BY ?s HAVING (COUNT(?x) > 1) } }",
        "AT ?t { ?s :p ?x BIND(?t AS ?u) VALUES (?x ?y) { (1 UNDEF) } }",
    ],
)
def test_patterns_that_are_executed(body: str) -> None:
    assert findings(of(body)) == []


@pytest.mark.parametrize(
    ("body", "where", "fragment"),
    [
        ("{ ?s :p ?x SERVICE <urn:e> { ?x :q ?y } }", "<urn:e>", "no endpoint that can be asked"),
        ("{ ?s :p ?x OPTIONAL { SERVICE ?s { ?x :q ?y } } }", "?s", "`?s` names is not asked"),
        ("{ ?s :p ?x FILTER(:own(?x)) }", ":own", "`<http://example.org/own>` is not known"),
        ("{ ?s :p ?x OPTIONAL { ?x :q ?y FILTER(:own(?y)) } }", ":own", "is not known"),
        ("{ ?s :p ?x FILTER(xsd:int(?x) > 1) }", "xsd:int", "`xsd:int` is not known"),
        ("{ ?s :p ?x FILTER(xsd:integer(?x, 1) > 1) }", "xsd:integer(?x, 1)", "one argument"),
        ("AT ?t { ?s :p ?x BIND(1 AS ?t) }", "?t", "AT already does"),
        ("{ VALUES (?x ?x) { (1 1) } }", "?x", "twice"),
    ],
)  # fmt: skip
def test_patterns_that_are_wrong(body: str, where: str, fragment: str) -> None:
    only(findings(of(body)), where, fragment)


def test_unknown_functions_in_select() -> None:
    only(findings(query_text("A", head="SELECT (:f(?a) AS ?x)")), ":f", "is not known")


@pytest.mark.parametrize("cast", CASTS)
def test_casts_are_executed(cast: str) -> None:
    assert is_executed(XSD + cast)
