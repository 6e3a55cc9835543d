"""The matchers, native and in Python, against pyoxigraph, on random patterns and data."""

from __future__ import annotations

import os

import pyoxigraph as ox
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spaseq.gpm.matchers import Matchers
from spaseq.gpm.pattern import compile_pattern
from spaseq.gpm.program import compile_gpm
from spaseq.gpm.python.evaluator import Evaluator
from spaseq.kb.snapshot import open_kb
from spaseq.rdf.event import NUMBER, Event, Timestamp
from tests.unit.gpm.pattern_strategies import facts, knowledge, patterns
from tests.unit.gpm.whole_pattern import reference_rows

TIME = Timestamp(1, NUMBER, ox.Literal(1))
EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "150"))
"""Cases of each test: the same ones every time, or as many random ones as are asked for."""

NO_TIME = st.none()
CORE = ("optional", "union", "minus", "group", "filter", "bind", "values")


def _check(pattern, event_facts, graphs, at=None):
    program = compile_gpm(pattern, at, None)
    event = Event("urn:s", TIME, 0, event_facts)
    kb = open_kb({name.value: triples for name, triples in graphs.items()})
    compiled = compile_pattern(program)
    expected = reference_rows(program, event, graphs)
    for found in (Matchers([compiled], kb).rows(event, 0)[0], Evaluator(program, kb).rows(event)):
        assert len(found) == len(set(found))
        assert set(found) == expected


def differential(kinds, at=NO_TIME):
    def decorate(test):
        quiet = settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize="SPASEQ_EXAMPLES" not in os.environ,
            suppress_health_check=list(HealthCheck),
        )
        return quiet(given(patterns(kinds), facts(), knowledge, at)(test))

    return decorate


@differential(CORE)
def test_algebra(pattern, event_facts, graphs, at):
    _check(pattern, event_facts, graphs)


@differential([kind for kind in CORE if kind != "bind"], st.sampled_from(("a", "t")))
def test_event_time(pattern, event_facts, graphs, at):
    _check(pattern, event_facts, graphs, at)


@differential((*CORE, "path", "path", "path"))
def test_property_paths(pattern, event_facts, graphs, at):
    _check(pattern, event_facts, graphs)


@differential((*CORE, *("fixed path",) * 4, "exists"))
def test_paths_of_alternatives(pattern, event_facts, graphs, at):
    _check(pattern, event_facts, graphs)


@differential((*CORE, "graph", "graph", "graph"))
def test_knowledge_base(pattern, event_facts, graphs, at):
    _check(pattern, event_facts, graphs)


@differential((*CORE, "select", "select", "select"))
def test_sub_queries(pattern, event_facts, graphs, at):
    _check(pattern, event_facts, graphs)


@differential((*CORE, "graph", "exists", "exists", "exists"))
def test_exists(pattern, event_facts, graphs, at):
    _check(pattern, event_facts, graphs)
