"""What readers leave out of an event changes no result."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyoxigraph as ox
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spaseq.gpm.matchers import Matchers
from spaseq.gpm.pattern import compile_pattern
from spaseq.gpm.program import compile_gpm
from spaseq.gpm.relevance import Use, uses
from spaseq.kb.snapshot import open_kb
from spaseq.parser import ast, parse_pattern
from spaseq.rdf.encoded import encoded_events
from spaseq.rdf.event import Fact
from spaseq.rdf.native._terms import EventBatch
from tests.unit.gpm.encoded_events import EX, matchers
from tests.unit.gpm.pattern_strategies import NODES, PREDICATES, facts, knowledge, patterns

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "300"))
KINDS = (
    *("optional", "union", "minus", "group", "filter", "bind", "values", "graph", "select"),
    *("path", "path", "exists", "exists"),
)


def useful(used: frozenset[Use] | None, fact: Fact) -> bool:
    return used is None or (fact[1], None) in used or (fact[1], fact[2]) in used


def rows(found: Matchers, event_facts: Sequence[Fact], used: frozenset[Use] | None) -> list:
    """What each pattern finds in an event of which readers keep what is used."""
    batch = EventBatch(found.dictionary)
    kept = [fact for fact in event_facts if useful(used, fact)]
    batch.add(kept, statements=len(event_facts))
    (event,) = encoded_events(batch)
    return [
        tuple(map(frozenset, found.rows(event, number))) for number in range(len(found.patterns))
    ]


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="SPASEQ_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(patterns(KINDS, 2), min_size=1, max_size=2), facts(), knowledge)
def test_leaving_out_what_no_pattern_uses_changes_no_result(some, event_facts, graphs) -> None:
    kb = open_kb({name.value: triples for name, triples in graphs.items()})
    compiled = [compile_pattern(compile_gpm(pattern, None, None)) for pattern in some]
    used = uses(some)
    found = Matchers(compiled, kb)
    assert found.relevance.everything == (used is None)
    assert rows(found, event_facts, used) == rows(found, event_facts, None)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{ VALUES ?x { 1 } }",
        "{ OPTIONAL { ?x :q ?y } }",
        "{ SELECT (COUNT(*) AS ?n) WHERE { ?x :q ?y } }",
        "{ FILTER NOT EXISTS { ?x :q 1 } }",
        "{ BIND(1 AS ?x) MINUS { ?x :q ?y } }",
    ],
)
def test_an_event_of_which_nothing_is_kept_still_has_facts(text: str) -> None:
    found = matchers(text)
    used = uses([parse_pattern(text, {"": EX})])
    fact = (ox.NamedNode(NODES[0]), ox.NamedNode(PREDICATES[0]), ox.Literal(1))
    assert not useful(used, fact)
    kept = rows(found, [fact], used)
    assert kept == rows(found, [fact], None)
    assert kept[0][0]
    assert not rows(found, [], used)[0][0]


def use(predicate: str, value=None) -> Use:
    return ox.NamedNode(EX + predicate), value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ ?x :p ?y ; :q 1 }", {use("p"), use("q", ox.Literal(1))}),
        ("{ ?x :p _:b . _:b :q :a }", {use("p"), use("q", ox.NamedNode(EX + "a"))}),
        ("{ ?x :p/^:q+ 1 }", {use("p"), use("q")}),
        ("{ ?x :p|(:q/:r) ?y }", {use("p"), use("q"), use("r")}),
        ("{ OPTIONAL { ?x :p ?y } MINUS { ?x :q 1 } }", {use("p"), use("q", ox.Literal(1))}),
        ("{ BIND(EXISTS { ?x :p ?y } AS ?z) }", {use("p")}),
        ("{ SELECT ?x WHERE { ?x :p ?y FILTER NOT EXISTS { ?y :q ?z } } }", {use("p"), use("q")}),
        ("{}", set()),
        ("{ ?x ?y ?z }", None),
        ("{ ?x :p ?z FILTER EXISTS { ?x ?y 1 } }", None),
        ("{ ?x :p* ?z }", None),
        ("{ ?x :p? ?z }", None),
        ("{ ?x !:p ?z }", None),
        ("{ ?x :q/(:p|!^:r) ?z }", None),
    ],
)
def test_uses(text: str, expected: set[Use] | None) -> None:
    assert uses([parse_pattern(text, {"": EX})]) == expected


def test_what_other_expressions_look_at_is_kept() -> None:
    condition = ast.Exists(parse_pattern("{ ?x :q ?y }", {"": EX}), negated=False)
    program = compile_gpm(parse_pattern("{ ?x :p ?y }", {"": EX}), None, None)
    found = Matchers([compile_pattern(program)], None, [condition])
    assert uses([program.pattern, condition]) == {use("p"), use("q")}
    assert not found.relevance.everything
