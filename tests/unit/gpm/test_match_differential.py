"""The evaluator against pyoxigraph, on random patterns, events and knowledge bases."""

from __future__ import annotations

import pyoxigraph as ox
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spaseq.gpm.match import Matcher
from spaseq.gpm.program import compile_gpm
from spaseq.kb.snapshot import open_kb
from spaseq.rdf.event import NUMBER, Event, Timestamp
from tests.unit.gpm.pattern_strategies import facts, knowledge, patterns
from tests.unit.gpm.whole_pattern import reference_rows

TIME = Timestamp(1, NUMBER, ox.Literal(1))


def _check(pattern, event_facts, graphs, at=None):
    program = compile_gpm(pattern, at, None)
    event = Event("urn:s", TIME, 0, event_facts)
    kb = open_kb({name.value: triples for name, triples in graphs.items()})
    found = Matcher(program, kb).rows(event)
    assert len(found) == len(set(found))
    assert set(found) == reference_rows(program, event, graphs)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(patterns(exists=False), facts(), knowledge, st.sampled_from((None, "a", "t")))
def test_patterns_mean_what_pyoxigraph_says(pattern, event_facts, graphs, at):
    _check(pattern, event_facts, graphs, at)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(patterns(exists=True), facts(), knowledge)
def test_patterns_with_exists_mean_what_pyoxigraph_says(pattern, event_facts, graphs):
    _check(pattern, event_facts, graphs)
