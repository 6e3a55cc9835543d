"""Errors in a GPM's pattern: unsupported and contradictory parts."""

from __future__ import annotations

import pytest
from plan_queries import findings, only, query_text


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
        ("{ ?s :p ?x SERVICE <urn:e> { ?x :q ?y } }", "<urn:e>", "not an HTTP endpoint"),
        ("{ ?s :p ?x OPTIONAL { SERVICE ?s { ?x :q ?y } } }", "?s", "`?s` is not supported"),
        ("AT ?t { ?s :p ?x BIND(1 AS ?t) }", "?t", "AT already does"),
        ("{ VALUES (?x ?x) { (1 1) } }", "?x", "twice"),
    ],
)  # fmt: skip
def test_patterns_that_are_wrong(body: str, where: str, fragment: str) -> None:
    only(findings(of(body)), where, fragment)


@pytest.mark.parametrize(
    ("body", "where", "kind"),
    [
        ("{ 1 :p ?x }", "1", "a literal"),
        ("{ ?s :p ?x OPTIONAL { 'a' ?p ?y } }", "'a'", "a literal"),
        ("{ ?s :p <<( 1 :p ?x )>> }", "1", "a literal"),
        ("{ <<( :s :p ?x )>> :q ?y }", "<<( :s :p ?x )>>", "a triple term"),
        ("{ <<( :s :p 1 )>> :q ?y }", "<<( :s :p 1 )>>", "a triple term"),
    ],
)
def test_triples_that_no_event_has(body: str, where: str, kind: str) -> None:
    only(findings(of(body), "warning"), where, f"no triple has {kind} as its subject")


def test_the_subject_of_a_path_may_be_its_other_end() -> None:
    assert findings(of("{ ?x ^:p ?s . 1 ^:p ?x . ?s :p <<( :s :p 1 )>> }"), "warning") == []
