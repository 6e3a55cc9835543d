"""What the planner says of a pattern's variables is what evaluation does."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from spaseq.gpm.python.algebra import compile_group
from spaseq.gpm.python.scope import Scope
from spaseq.kb.snapshot import open_kb
from spaseq.plan.scope import certain_variables, possible_variables
from spaseq.rdf.event import Event
from tests.unit.gpm.pattern_strategies import facts, knowledge, patterns
from tests.unit.gpm.test_match_differential import CORE, TIME


@settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(patterns((*CORE, "graph", "select", "path")), facts(), knowledge)
def test_scope_says_what_evaluation_does(pattern, event_facts, graphs):
    node = compile_group(pattern)
    kb = open_kb({name.value: triples for name, triples in graphs.items()})
    scope = Scope(Event("urn:s", TIME, 0, event_facts), kb)
    assert {name for name in node.schema if not name.startswith("_:")} >= possible_variables(
        pattern
    )
    rows = node.run(scope)
    for name in certain_variables(pattern) | node.certain:
        column = node.schema.index(name)
        assert all(row[column] is not None for row in rows)
    assert all(len(row) == len(node.schema) for row in rows)
    assert not node.distinct or len(set(rows)) == len(rows)
