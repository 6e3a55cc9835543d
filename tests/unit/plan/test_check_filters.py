"""Warnings about filters that read unbound variables, and no others."""

from __future__ import annotations

import pytest
from plan_queries import findings, only, query_text


def warnings(seq: str, name: str, body: str) -> list[tuple[str, str]]:
    gpms = {name: f"{{ [] :{name.lower()} ?{name.lower()} . {body} }}"}
    text = query_text(seq, gpms)
    assert findings(text) == []
    return findings(text, "warning")


@pytest.mark.parametrize(
    ("seq", "name", "body"),
    [
        ("A; B", "B", "FILTER(?b > ?a)"),
        ("A; B?; C", "C", "FILTER(?c > ?b)"),
        ("A; !N; B", "N", "FILTER(?n > ?a && ?n < ?b)"),
        ("A; !N; B?; C", "N", "FILTER(?n < ?c)"),
        ("A?; B", "A", "FILTER(?a > ?b)"),
        ("A; B?; C", "B", "FILTER(?b < ?c)"),
        ("A; (B; C)?; D", "B", "FILTER(?b < ?d)"),
        ("A; B{0,3}, C", "B", "FILTER(?b < ?c)"),
        ("(A & B)", "A", "FILTER(?a > ?b)"),
        ("(A AND B)", "A", "FILTER(?a > ?b)"),
        ("A; (B | C)", "C", "FILTER(?c > ?a)"),
        ("A; B+", "B", "FILTER(?b > PREV(?b, 0) && SUM(?b) > ?a)"),
        ("A; B+", "B", "FILTER(!BOUND(PREV(?b)) || ?b > PREV(?b))"),
        ("A; (B | C)+", "B", "FILTER(?b > PREV(?b))"),
        ("(A?; B)+", "A", "FILTER(?a > PREV(?b))"),
        ("(A; !N; B)+", "N", "FILTER(?n > PREV(?a))"),
        ("A; B+; C", "C", "FILTER(?c > ?b && ?c < MIN(?b))"),
        ("(A; B)+", "A", "FILTER(?a > PREV(?b, 0) && COUNT(?b) < 5)"),
        ("A; B", "A", "FILTER EXISTS { ?s :p ?o FILTER(?o > 1) }"),
        ("A; B", "B", "BIND(?b - ?a AS ?d) FILTER(?d > 1)"),
        ("A; B", "A", "FILTER(COUNT(B) = 0)"),
        ("A; B", "A", "OPTIONAL { [] :p ?q FILTER(?q > ?a) } OPTIONAL { ?q :r 1 FILTER(?q > 2) }"),
        (
            "A; B",
            "B",
            "MINUS { [] :p ?q FILTER(?q > 1) } { SELECT ?v { ?v :r ?w FILTER(?w > 1) } }",
        ),
        ("A; B", "B", "OPTIONAL { [] :p ?q FILTER(?q > 1 || COALESCE(?a, true)) }"),
    ],
)
def test_filters_that_may_be_true(seq: str, name: str, body: str) -> None:
    assert warnings(seq, name, body) == []


@pytest.mark.parametrize(
    ("seq", "name", "body", "where", "fragment"),
    [
        ("A; B", "B", "FILTER(?b > ?typo)", "?typo", "no GPM binds `?typo`, so this filter"),
        ("A; B", "A", "FILTER(?a > ?b)", "?b", "binds `?b`, so this filter is never true"),
        ("A; B", "A", "FILTER(?a > 1 && BOUND(?b))", "?b", "so this filter is never true"),
        ("A; B", "A", "FILTER(!(?a > ?b || ?a < ?b))", "?b", "so this filter is never true"),
        ("A; !N; B", "A", "FILTER(?a > ?n)", "?n", "so this filter is never true"),
        ("A; !N; B", "B", "FILTER(?b > ?n)", "?n", "so this filter is never true"),
        ("A; (B | C)", "C", "FILTER(?c > ?b)", "?b", "so this filter is never true"),
        ("A; B+", "A", "FILTER(?a > MAX(?b))", "MAX(?b)", "so this filter is never true"),
        ("A; B+", "B", "FILTER(?b > PREV(?b))", "PREV(?b)", "rejects every first iteration"),
        ("(A; B)+", "A", "FILTER(?a > PREV(?b))", "PREV(?b)", "rejects every first iteration"),
        ("(A; B)+", "A", "FILTER(?a > ?b)", "?b", "bound only after this place, so this filter"),
        ("(A; B+)+", "A", "FILTER(?a > LAST(?b))", "LAST(?b)", "so this filter is never true"),
        ("A; B", "A", "BIND(?a - ?b AS ?d)", "?b", "so this BIND never binds its variable"),
    ],
)
def test_filters_that_are_never_true(
    seq: str, name: str, body: str, where: str, fragment: str
) -> None:
    only(warnings(seq, name, body), where, fragment)


@pytest.mark.parametrize(
    "body",
    [
        "FILTER(!BOUND(?b) || ?a > ?b)",
        "FILTER(COALESCE(?a > ?b, true))",
        "FILTER(IF(BOUND(?b), ?a > ?b, true))",
        "FILTER(?a > 1 || ?a > ?b)",
        "FILTER(?a IN (1, ?b))",
        "FILTER(!(?a > 1 && ?a > ?b))",
    ],
)
def test_guarded_filters_are_not_called_untrue(body: str) -> None:
    ((_, message),) = set(warnings("A; B", "A", body))
    assert "never true" not in message


def test_join_variables_of_later_steps_in_an_iteration() -> None:
    gpms = {"A": "{ [] :a ?a FILTER(?a > ?k) }", "B": "{ [] :k ?k }", "C": "{ [] :k ?k }"}
    only(findings(query_text("(A; B)+; C", gpms), "warning"), "?k", "rejects every first iteration")
    gpms["A"] = "{ [] :a ?a FILTER(!BOUND(?k) || ?a > ?k) }"
    assert findings(query_text("(A; B)+; C", gpms), "warning") == []


def test_a_gpm_at_two_places_is_warned_about_once() -> None:
    only(warnings("A; A; B", "A", "FILTER(?a > ?b)"), "?b", "never true")


def test_filters_in_inner_braces_do_not_see_other_steps() -> None:
    body = "OPTIONAL { [] :p ?q FILTER(?q > ?a) }"
    only(warnings("A; B", "B", body), "?a", "in inner braces")


def test_an_undefined_gpm_might_bind_anything() -> None:
    text = query_text("c; B", {"B": "{ [] :b ?b FILTER(?b > ?c) }"})
    assert findings(text, "warning") == []
