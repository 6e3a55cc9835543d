"""EXISTS at the top level: the row's bindings are substituted into its pattern."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

import pyoxigraph as ox
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spaseq.gpm.python.entry import Scope, compile_filter
from spaseq.kb.snapshot import open_kb
from spaseq.parser import ast, parse_expression
from spaseq.parser.format import format_pattern
from spaseq.rdf.event import NUMBER, Event, Timestamp
from tests.unit.gpm.pattern_strategies import GRAPHS, NAMES, NODES, facts, knowledge, patterns

TIME = Timestamp(1, NUMBER, ox.Literal(1))
EX = "http://example.org/"

rows = st.fixed_dictionaries(
    {name: st.none() | st.sampled_from(NODES).map(ox.NamedNode) for name in NAMES}
)


def substituted(node, row):
    """The tree with constants for the variables that the row binds."""
    if isinstance(node, ast.Call) and node.name == "BOUND" and row.get(node.arguments[0].name):
        return ast.Literal("true", "http://www.w3.org/2001/XMLSchema#boolean")
    if isinstance(node, ast.Var):
        value = row.get(node.name)
        return node if value is None else ast.Iri(value.value)
    if isinstance(node, tuple):
        return tuple(substituted(part, row) for part in node)
    if is_dataclass(node):
        changes = {f.name: substituted(getattr(node, f.name), row) for f in fields(node)}
        return replace(node, **changes)
    return node


@settings(
    max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(
    patterns(("optional", "union", "group", "filter", "graph", "path", "minus"), 2),
    rows,
    facts(),
    knowledge,
    st.booleans(),
)
def test_exists_is_substitution(pattern, row, event_facts, graphs, negated):
    event = Event("urn:s", TIME, 0, event_facts)
    kb = open_kb({name.value: triples for name, triples in graphs.items()})
    slots = {name: column for column, name in enumerate(NAMES)}
    test = compile_filter(ast.Exists(pattern, negated), slots)
    store = ox.Store()
    store.extend([ox.Quad(*fact) for fact in event_facts])
    for name, triples in graphs.items():
        store.extend([ox.Quad(*fact, name) for fact in triples])
    text = format_pattern(substituted(pattern, row))
    expected = bool(store.query(f"ASK {text}")) is not negated
    assert test(tuple(row[name] for name in NAMES), Scope(event, kb)) is expected


def holds(text: str, event_facts=(), kb=None, kb_graphs=None, **bindings) -> bool:
    names = tuple(bindings)
    test = compile_filter(
        parse_expression(text, {"": EX}), {name: column for column, name in enumerate(names)}
    )
    event = Event("urn:s", TIME, 0, event_facts)
    return test(tuple(bindings.values()), Scope(event, kb, kb_graphs))


A, B, P = (ox.NamedNode(EX + name) for name in "abp")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("EXISTS { ?x :p ?y }", True),
        ("NOT EXISTS { ?x :p ?y }", False),
        ("EXISTS { ?y :p ?x }", False),
        ("EXISTS { ?y :p ?z FILTER(?z = ?x) }", False),
        ("EXISTS { ?y :p ?z FILTER(?y = ?x) }", True),
        ("EXISTS { VALUES ?x { :a } }", True),
        ("EXISTS { VALUES ?x { :b } }", False),
        ("EXISTS { BIND(:a AS ?x) }", True),
        ("EXISTS { BIND(:b AS ?x) }", False),
        ("EXISTS { { SELECT ?x { ?x :p ?y } } }", True),
        ("EXISTS { { SELECT ?x { ?y :p ?x } } }", False),
        ("EXISTS { ?x :p ?y FILTER NOT EXISTS { ?y :p ?x } }", True),
        ("EXISTS { FILTER(?nowhere = 1) }", False),
        ("EXISTS { GRAPH :k { ?x :p ?y } }", False),
    ],
)
def test_substitution_reaches_every_form(text: str, expected: bool) -> None:
    assert holds(text, ((A, P, B),), x=A) is expected


def test_only_the_named_graphs_in_sight_are_seen() -> None:
    kb = open_kb({name: [(A, P, B)] for name in GRAPHS})
    assert holds("EXISTS { GRAPH ?k { ?x :p ?y } }", kb=kb, x=A)
    assert holds("EXISTS { GRAPH :g { ?x :p ?y } }", kb=kb, kb_graphs=(EX + "g",), x=A)
    assert not holds("EXISTS { GRAPH :h { ?x :p ?y } }", kb=kb, kb_graphs=(EX + "g",), x=A)
    assert not holds("EXISTS { GRAPH ?k { ?x :p ?y } }", kb=kb, kb_graphs=(), x=A)


def test_a_row_without_an_event_sees_no_triples() -> None:
    test = compile_filter(parse_expression("EXISTS { ?s ?p ?o }", {}), {})
    assert test((), Scope()) is False
