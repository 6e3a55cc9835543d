"""Compiled expressions against pyoxigraph, on random expressions and bindings."""

from __future__ import annotations

import os

import pyoxigraph as ox
from hypothesis import HealthCheck, given, settings

from spaseq.gpm.python.entry import Scope, compile_expression, compile_filter
from spaseq.parser import ast
from tests.unit.gpm.expression_strategies import expressions, reference_value

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "1000"))
"""Cases of each test: the same ones every time, or as many random ones as are asked for."""

quiet = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="SPASEQ_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)


@quiet
@given(expressions())
def test_values(case):
    expr, env = case
    slots = {name: column for column, name in enumerate(env)}
    found = compile_expression(expr, slots)(tuple(env.values()), Scope())
    assert found == reference_value(expr, env)


@quiet
@given(expressions())
def test_filters(case):
    expr, env = case
    slots = {name: column for column, name in enumerate(env)}
    kept = compile_filter(expr, slots)(tuple(env.values()), Scope())
    truth = reference_value(ast.Call("IF", (expr, ast.Iri("urn:yes"), ast.Iri("urn:no"))), env)
    assert kept is (truth == ox.NamedNode("urn:yes"))
