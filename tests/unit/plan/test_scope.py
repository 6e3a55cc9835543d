"""Which variables a group can and must bind, and what of a GPM is stateful."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_queries import query

from spaseq.parser import ast, parse_expression, parse_pattern
from spaseq.plan.scope import (
    GpmScope,
    certain_variables,
    expression_variables,
    gpm_scope,
    possible_variables,
    ranged_variables,
)

PREFIXES = {"": "http://example.org/"}


def scope(body: str) -> GpmScope:
    return gpm_scope(query("A", {"A": body}).defines[0])


@pytest.mark.parametrize(
    ("group", "certain", "maybe"),
    [
        ("{ ?s ?p ?o }", "s p o", ""),
        ("{ _:b :p [ :q ?o ] }", "o", ""),
        ("{ ?s :p/^:q*|!(:r|^:t) ?o }", "s o", ""),
        ("{ ?s :p ?x OPTIONAL { ?s :q ?y } }", "s x", "y"),
        ("{ { ?s :p ?x } UNION { ?s :q ?y } }", "s", "x y"),
        ("{ { ?s :p ?x } }", "s x", ""),
        ("{ ?s :p ?x MINUS { ?s :q ?y } }", "s x", ""),
        ("{ ?s :p ?x FILTER(?z > 1) FILTER EXISTS { ?s :q ?y } }", "s x", ""),
        ("{ GRAPH ?g { ?s :p ?x } }", "g s x", ""),
        ("{ GRAPH :g { ?s :p ?x } }", "s x", ""),
        ("{ VALUES ?x { 1 2 } }", "x", ""),
        ("{ VALUES (?x ?y ?z) { (1 UNDEF UNDEF) (2 3 UNDEF) } }", "x", "y"),
        ("{ VALUES ?x { } }", "", ""),
        ("{ ?s :p ?x BIND(?x AS ?y) }", "s x y", ""),
        ("{ ?s :p ?x BIND(?x + 1 AS ?y) }", "s x", "y"),
        ("{ BIND(1 AS ?y) }", "y", ""),
        ("{ BIND(?x AS ?y) ?s :p ?x }", "s x", "y"),
        ("{ ?s :p ?x BIND(COALESCE(?w, ?x) AS ?y) BIND(BOUND(?w) AS ?z) }", "s x y z", ""),
        ("{ { SELECT ?x { ?s :p ?x OPTIONAL { ?s :q ?y } } } }", "x", ""),
        ("{ { SELECT ?y ?never { ?s :p ?x OPTIONAL { ?s :q ?y } } } }", "", "y"),
        ("{ { SELECT * { ?s :p ?x OPTIONAL { ?s :q ?y } } } }", "s x", "y"),
        (
            "{ { SELECT ?s (COUNT(?x) AS ?n) (MAX(?x) AS ?m) { ?s :p ?x } GROUP BY ?s } }",
            "s n",
            "m",
        ),
        ("{ { SELECT ?k { ?s :p ?x } GROUP BY (STR(?x) AS ?k) } }", "k", ""),
        ("{ { SELECT ?k { ?s :p ?x } GROUP BY (?x + 1 AS ?k) } }", "", "k"),
        ("{ { SELECT ?z { ?s :p ?x } VALUES ?z { 1 } } }", "z", ""),
        ("{ }", "", ""),
    ],
)
def test_variables_of_groups(group: str, certain: str, maybe: str) -> None:
    tree = parse_pattern(group, PREFIXES)
    assert certain_variables(tree) == set(certain.split())
    assert possible_variables(tree) == set(certain.split()) | set(maybe.split())


@pytest.mark.parametrize(
    ("body", "stateful"),
    [
        ("{ ?s :p ?x BIND(?x + 1 AS ?y) }", ""),
        ("{ ?s :p ?x BIND(?x - ?before AS ?y) }", "y"),
        ("{ ?s :p ?x BIND(?y AS ?z) BIND(?before AS ?y) }", "z y"),
        ("AT ?t { ?s :p ?x BIND(?t AS ?y) }", "y"),
        ("{ ?s :p ?x BIND(PREV(?x) AS ?y) }", "y"),
        ("{ ?s :p ?x BIND(SUM(?x) + 1 AS ?y) }", "y"),
        ("{ ?s :p ?x BIND(COUNT(A) AS ?y) }", "y"),
        ("{ ?s :p ?x BIND(?y AS ?z) BIND(?z AS ?y) }", ""),
        ("{ BIND(?x AS ?y) ?s :p ?x }", ""),
        ("{ ?s :p ?x BIND(EXISTS { ?s :q ?x } AS ?y) }", ""),
        ("{ ?s :p ?x BIND(EXISTS { ?s :q ?w } AS ?y) }", "y"),
        ("{ ?s :p ?x OPTIONAL { ?s :q ?z BIND(?before AS ?y) } }", ""),
    ],
)
def test_stateful_binds(body: str, stateful: str) -> None:
    found = scope(body)
    assert [bind.variable.name for bind in found.stateful] == stateful.split()
    assert not any(isinstance(e, ast.Bind) and e in found.stateful for e in found.pattern.elements)


def test_a_gpm_taken_apart() -> None:
    found = scope("AT ?t { ?s :p ?x FILTER(?x > ?w) OPTIONAL { ?s :q ?y } BIND(?w + 1 AS ?z) }")
    assert [type(e).__name__ for e in found.pattern.elements] == ["Triple", "Optional"]
    assert len(found.filters) == len(found.stateful) == 1
    assert found.at == "t"
    assert found.certain == {"s", "x", "t"}
    assert found.possible == {"s", "x", "t", "y"}
    assert found.binds == {"s", "x", "t", "y", "z"}
    assert found.streams == ("s",)


@pytest.mark.parametrize(
    ("expression", "free", "ranged"),
    [
        ("?a + STRLEN(?b) > 1 && !BOUND(?c)", "a b c", ""),
        ("?a IN (?b, 1) || xsd:integer(?c) = 2", "a b c", ""),
        ("PREV(?a, ?b + 1) < SUM(?c)", "b", "a c"),
        ("COUNT(B) > ?a", "a", ""),
        ("EXISTS { ?a :p ?b FILTER(?c > 1) { SELECT ?d { ?d :p ?e } } }", "a b c d", ""),
        ("EXISTS { GRAPH ?g { ?a :p 1 } VALUES ?v { 1 } BIND(?x AS ?y) MINUS { 1 :p ?m } }",
         "g a v x y m", ""),
    ],
)  # fmt: skip
def test_variables_of_expressions(expression: str, free: str, ranged: str) -> None:
    prefixes = PREFIXES | {"xsd": "http://www.w3.org/2001/XMLSchema#"}
    tree = parse_expression(expression, prefixes)
    assert expression_variables(tree) == set(free.split())
    assert ranged_variables(tree) == set(ranged.split())


_TRIPLE = st.builds(
    ast.Triple,
    *[st.sampled_from([ast.Var(name) for name in "abcd"])] * 3,
)


def _wrapped(groups: st.SearchStrategy[ast.GroupGraphPattern]) -> st.SearchStrategy[ast.Element]:
    values = st.builds(
        lambda row: ast.Values((ast.Var("a"), ast.Var("e")), tuple(row)),
        st.lists(st.tuples(*[st.sampled_from([None, ast.Literal("1")])] * 2), max_size=2),
    )
    return st.one_of(
        _TRIPLE,
        values,
        st.builds(ast.Optional, groups),
        st.builds(ast.Minus, groups),
        st.builds(ast.SubGroup, groups),
        st.builds(lambda *sides: ast.Union(sides), groups, groups),
        st.builds(lambda v, w: ast.Bind(ast.Var(v), ast.Var(w)), *[st.sampled_from("abcdef")] * 2),
    )


_GROUPS = st.recursive(
    st.builds(lambda *t: ast.GroupGraphPattern(t), _TRIPLE),
    lambda inner: st.builds(
        lambda es: ast.GroupGraphPattern(tuple(es)), st.lists(_wrapped(inner), max_size=4)
    ),
    max_leaves=8,
)


@given(_GROUPS)
def test_certain_is_possible_and_possible_is_bound(group: ast.GroupGraphPattern) -> None:
    found = gpm_scope(ast.Define("A", ("s",), group))
    assert found.certain <= found.possible <= found.binds
    assert certain_variables(group) <= possible_variables(group)
    for bind in found.stateful:
        assert not expression_variables(bind.expression) <= found.possible
