"""Scope of variables: what a pattern can bind, and what it binds always."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from spaseq.gpm.compile import compile_group
from spaseq.gpm.context import Scope
from spaseq.gpm.variables import certain, in_scope
from spaseq.kb.snapshot import open_kb
from spaseq.parser import parse_pattern
from spaseq.rdf.event import Event
from tests.unit.gpm.pattern_strategies import facts, knowledge, patterns
from tests.unit.gpm.test_match_differential import CORE, TIME


@pytest.mark.parametrize(
    ("text", "can", "always"),
    [
        ("{ ?a :p ?b }", "ab", "ab"),
        ("{ ?a :p ?b OPTIONAL { ?b :p ?c } }", "abc", "ab"),
        ("{ { ?a :p ?b } UNION { ?b :p ?c } }", "abc", "b"),
        ("{ ?a :p ?b MINUS { ?a :p ?c } }", "ab", "ab"),
        ("{ ?a :p ?b FILTER EXISTS { ?a :p ?c } }", "ab", "ab"),
        ("{ ?a :p 1 BIND(?a AS ?b) }", "ab", "a"),
        ("{ VALUES (?a ?b) { (1 UNDEF) (2 3) } }", "ab", "a"),
        ("{ GRAPH ?g { ?a :p 1 } }", "ag", "ag"),
        ("{ { SELECT ?a WHERE { ?a :p ?b } } }", "a", "a"),
        ("{ { SELECT ?a (COUNT(*) AS ?n) WHERE { ?a :p ?b } GROUP BY ?a } }", "an", "a"),
        ("{ { SELECT * WHERE { ?a :p ?b OPTIONAL { ?b :p ?c } } } }", "abc", "ab"),
        ("{ ?a :p/:q* ?b . _:x :p [] }", "ab", "ab"),
    ],
)
def test_scope(text, can, always):
    pattern = parse_pattern(text, {"": "http://e/"})
    assert in_scope(pattern) == set(can)
    assert certain(pattern) == set(always)


@settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(patterns((*CORE, "graph", "select", "path")), facts(), knowledge)
def test_scope_says_what_evaluation_does(pattern, event_facts, graphs):
    node = compile_group(pattern)
    kb = open_kb({name.value: triples for name, triples in graphs.items()})
    scope = Scope(Event("urn:s", TIME, 0, event_facts), kb)
    assert {name for name in node.schema if not name.startswith("_:")} == in_scope(pattern)
    rows = node.run(scope)
    for name in certain(pattern) | node.certain:
        column = node.schema.index(name)
        assert all(row[column] is not None for row in rows)
    assert all(len(row) == len(node.schema) for row in rows)
    assert not node.distinct or len(set(rows)) == len(rows)
