"""Variables in SELECT, templates, PARTITION BY, aggregates and PREV."""

from __future__ import annotations

import pytest
from plan_queries import findings, only, query_text

from spaseq.parser import parse
from spaseq.plan.check import check

GPMS = {
    "A": "{ [] :a ?a ; :k ?k }",
    "B": "AT ?t { [] :b ?b ; :k ?k . OPTIONAL { [] :m ?maybe } BIND(?b - ?a AS ?d) }",
    "N": "{ [] :n ?n }",
}


def of(head: str, seq: str = "A; B+; !N", clauses: str = "WITHIN 10 SECONDS") -> str:
    return query_text(seq, {g: b for g, b in GPMS.items() if g in seq}, head, clauses)


@pytest.mark.parametrize(
    "head",
    [
        "SELECT ?a ?b ?k ?t ?d ?maybe",
        "SELECT (?a + 1 AS ?x) (?x * 2 AS ?y)",
        "SELECT (COUNT(?b) AS ?n1) (COUNT(B) AS ?n2) (COUNT(A) AS ?n3) (COUNT(N) AS ?n4)",
        "SELECT (SUM(?b) / COUNT(B) AS ?mean) (AVG(DISTINCT ?b) AS ?x) (FIRST(?d) AS ?y)",
        "SELECT (GROUP_CONCAT(DISTINCT ?maybe; SEPARATOR=', ') AS ?x) (LAST(?t) - FIRST(?t) AS ?y)",
        "SELECT (IF(BOUND(?maybe), SAMPLE(?maybe), 0) AS ?x)",
        "SELECT REDUCED *",
        "CONSTRUCT { ?k :p ?b . [] ?k _:x }",
        "ASK",
    ],
)
def test_outputs_that_are_right(head: str) -> None:
    assert findings(of(head)) == []


@pytest.mark.parametrize(
    ("head", "where", "fragment"),
    [
        ("SELECT ?x", "?x", "nothing binds `?x`"),
        ("SELECT ?n", "?n", "only `N` binds it"),
        ("SELECT (?x + 1 AS ?y)", "?x", "nothing binds `?x`"),
        ("SELECT (COALESCE(?x, 1) AS ?y)", "?x", "nothing binds `?x`"),
        ("SELECT (1 AS ?b)", "?b", "already a variable"),
        ("SELECT (1 AS ?n)", "?n", "already a variable"),
        ("SELECT (?b AS ?b)", "?b", "already a variable"),
        ("SELECT (PREV(?b) AS ?x)", "PREV(?b)", "PREV is not allowed in SELECT"),
        (
            "SELECT (EXISTS { ?a :p ?b } AS ?x)",
            "EXISTS { ?a :p ?b }",
            "EXISTS is not allowed in SELECT",
        ),
        ("SELECT (SUM(?a) AS ?x)", "?a", "no iteration binds `?a`"),
        ("SELECT (SUM(?k) AS ?x)", "?k", "bound outside its iteration too"),
        ("SELECT (SUM(?x) AS ?y)", "?x", "nothing binds `?x`"),
        ("SELECT (SUM(?n) AS ?y)", "?n", "no iteration binds `?n`"),
        ("SELECT (SUM(?b + 1) AS ?x)", "?b + 1", "not over an expression"),
        ("SELECT (COUNT(*) AS ?x)", "COUNT(*)", "does not say what to count"),
        ("SELECT (COUNT(C) AS ?x)", "C", "`C` is not defined"),
        ("SELECT (MAX(B) AS ?x)", "B", "ranges over the values of a variable"),
        ("SELECT (COUNT(DISTINCT B) AS ?x)", "COUNT(DISTINCT B)", "always distinct"),
        ("SELECT (FIRST(DISTINCT ?b) AS ?x)", "FIRST(DISTINCT ?b)", "DISTINCT has no meaning"),
        ("CONSTRUCT { ?x :p 1 . ?x :q ?a }", "?x", "nothing binds `?x`"),
        ("CONSTRUCT { ?a :p ?n }", "?n", "only `N` binds it"),
        ('CONSTRUCT { "a" :p ?a }', '"a"', "literal cannot be the subject"),
    ],
)
def test_outputs_that_are_wrong(head: str, where: str, fragment: str) -> None:
    only(findings(of(head)), where, fragment)


def test_an_alias_may_not_be_used_before_it_is_made() -> None:
    found = check(parse(of("SELECT (?y + 1 AS ?x) (?a AS ?y)")))
    assert [finding.message for finding in found] == ["nothing binds `?y`"]
    assert "to the front" in found[0].hint


def test_what_an_undefined_gpm_might_bind_is_not_reported() -> None:
    only(findings(of("SELECT ?c (SUM(?c) AS ?x)", "A; c+")), "c", "not defined")


@pytest.mark.parametrize(
    ("clause", "where", "fragment"),
    [
        ("?k", "", ""),
        ("(?k)", "", ""),
        ("?kk", "?kk", "GPMs `A` and `B` do not bind it"),
        ("?k, ?a", "?a", "GPM `B` does not bind it"),
        ("?d", "?d", "do not bind it"),
    ],
)
def test_partition_by(clause: str, where: str, fragment: str) -> None:
    found = findings(of("SELECT *", clauses=f"WITHIN 1 DAY PARTITION BY {clause}"))
    if where:
        only(found, where, fragment)
    else:
        assert found == []


def test_partition_variables_have_one_value() -> None:
    text = of("SELECT (MAX(?k) AS ?x)", "B+", clauses="WITHIN 1 DAY PARTITION BY ?k")
    only(findings(text), "?k", "partitions the streams")


def test_a_time_can_partition() -> None:
    gpms = {"A": "AT ?t { [] :a 1 }", "B": "AT ?t { [] :b 1 }"}
    clauses = "WITHIN 0 SECONDS PARTITION BY ?t"
    assert findings(query_text("A; B", gpms, clauses=clauses)) == []


def repeated(body: str, seq: str = "A; B+; C") -> str:
    return query_text(seq, {"A": "{ [] :a ?a }", "B": f"{{ [] :b ?b . {body} }}"})


@pytest.mark.parametrize(
    "body",
    [
        "FILTER(?b > PREV(?b))",
        "FILTER(?b > PREV(?b, ?a))",
        "FILTER(COALESCE(?b > PREV(?b), true))",
        "FILTER(SUM(?b) < 10 && COUNT(B) < 5)",
        "BIND(MAX(?b) AS ?top) FILTER(?top < 9)",
        "FILTER(EXISTS { ?s :p ?a } || ?b > PREV(?b))",
        "{ SELECT ?s (COUNT(?v) AS ?n) (MAX(?v + 1) AS ?m) { ?s :p ?v } "
        "GROUP BY ?s HAVING(SUM(?v) > 1) ORDER BY COUNT(?v) }",
    ],
)
def test_calls_in_gpms_that_are_right(body: str) -> None:
    assert findings(repeated(body)) == []


@pytest.mark.parametrize(
    ("body", "where", "fragment"),
    [
        ("FILTER(?b > PREV(?a))", "?a", "no iteration binds `?a`"),
        ("FILTER(?b > PREV(?zz))", "?zz", "nothing binds `?zz`"),
        ("FILTER(SUM(?a) > 1)", "?a", "no iteration binds `?a`"),
        ("FILTER(COUNT(Bee) > 1)", "Bee", "`Bee` is not defined"),
        ("FILTER(SUM(?b * 2) > 1)", "?b * 2", "not over an expression"),
        ("OPTIONAL { [] :o ?o FILTER(?o > PREV(?b)) }", "PREV(?b)", "top level of a GPM"),
        ("OPTIONAL { [] :o ?o FILTER(?o > SUM(?b)) }", "SUM(?b)", "top level of a GPM"),
        ("{ [] :o ?o BIND(FIRST(?b) AS ?f) }", "FIRST(?b)", "top level of a GPM"),
        ("FILTER EXISTS { [] :o ?o FILTER(?o > LAST(?b)) }", "LAST(?b)", "top level of a GPM"),
    ],
)
def test_calls_in_gpms_that_are_wrong(body: str, where: str, fragment: str) -> None:
    only(findings(repeated(body)), where, fragment)


def test_prev_belongs_to_its_own_iteration() -> None:
    gpms = {"C": "{ [] :c ?c FILTER(?c > PREV(?b)) }"}
    only(findings(query_text("A; B+; C", gpms)), "PREV(?b)", "outside the iteration")
    only(findings(query_text("A; (B+; C)+", gpms)), "PREV(?b)", "outside the iteration")
    only(findings(query_text("A; (B; C)+; C", gpms)), "PREV(?b)", "outside the iteration")
    assert findings(query_text("A; (B; C)+", gpms)) == []
    assert findings(query_text("A; (B; !C)+", gpms)) == []


def test_iterations_under_a_negation_are_seen_there_only() -> None:
    gpms = {"C": "{ [] :c ?c FILTER(?c > MAX(?b)) }"}
    assert findings(query_text("A; !(B+; C); D", gpms)) == []
    only(findings(query_text("A; !(B+; D); C", gpms)), "?b", "is negated")
    text = query_text("A; !(B+; D); C", head="SELECT (MAX(?b) AS ?m)")
    only(findings(text), "?b", "is negated")
