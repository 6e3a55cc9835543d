"""The rows of one event: time, blank nodes, the KB, sharing and caching."""

from __future__ import annotations

import pickle

import pyoxigraph as ox
import pytest

from spaseq.gpm.matchers import Matchers
from spaseq.gpm.pattern import compile_pattern
from spaseq.gpm.program import compile_gpm
from spaseq.gpm.python.evaluator import Evaluator
from spaseq.kb.snapshot import open_kb
from spaseq.parser import parse_pattern
from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Timestamp
from tests.unit.gpm.expression_strategies import literal

EX = "http://example.org/"
A, B, C, P, Q = (ox.NamedNode(EX + name) for name in "abcpq")
ONE, TWO = ox.Literal(1), ox.Literal(2)


def event(*facts, time=ONE) -> Event:
    return Event("urn:s", Timestamp(1, NUMBER, time), 0, facts)


class Both:
    """One pattern, evaluated by operators in Python and as the engine does."""

    def __init__(self, text: str, at: str | None = None, kb=None, kb_graphs=None):
        program = compile_gpm(parse_pattern(text, {"": EX}), at, kb_graphs)
        self.pattern = compile_pattern(program)
        self.evaluator = Evaluator(program, kb)
        self.matchers = Matchers([self.pattern], kb)

    def rows(self, event: Event) -> list:
        found = self.evaluator.rows(event)
        matched = self.matchers.rows(event, 0)[0]
        assert len(matched) == len(found)
        assert set(matched) == set(found)
        return found


def rows(text: str, *facts, at=None, kb=None, kb_graphs=None):
    return Both(text, at, kb, kb_graphs).rows(event(*facts))


# ------------------------------------------------------------------ rows and columns


def test_columns_are_sorted_and_the_time_is_last():
    program = compile_gpm(parse_pattern("{ ?z :p ?a . ?z :q ?t }", {"": EX}), "t", None)
    assert program.variables == ("a", "z", "t")
    assert program.certain == {"a", "z", "t"}


def test_rows_are_distinct():
    assert rows("{ { ?x :p 1 } UNION { ?x :p ?y } }", (A, P, ONE)) == [(A, None), (A, ONE)]
    assert rows("{ { ?x :p 1 } UNION { ?x :p 1 } }", (A, P, ONE)) == [(A,)]
    assert rows("{ ?x :p [] }", (A, P, ONE), (A, P, TWO)) == [(A,)]


def test_an_event_without_facts_has_no_rows():
    for text in ("{}", "{ VALUES ?x { 1 } }", "{ OPTIONAL { ?x :p ?y } }", "{ FILTER(true) }"):
        assert rows(text) == []
        assert rows(text, (A, P, ONE)) != []


def test_terms_join_as_terms_and_stay_as_written():
    one, other = literal("1", "integer"), literal("1.0", "decimal")
    assert rows("{ ?x :p ?v . ?y :q ?v }", (A, P, one), (B, Q, other)) == []
    written = literal("14.0", "double")
    assert rows("{ ?x :p ?v }", (A, P, written)) == [(written, A)]
    found = rows("{ ?x :p ?v . ?y :q ?w FILTER(?v = ?w) }", (A, P, one), (B, Q, other))
    assert found == [(one, other, A, B)]


def test_blank_nodes_of_a_pattern_bind_anything():
    blank = ox.BlankNode("e1")
    assert rows("{ _:n :p ?v }", (blank, P, ONE)) == [(ONE,)]
    assert rows("{ ?n :p ?v }", (blank, P, ONE)) == [(blank, ONE)]
    assert rows("{ _:n :p _:m . _:m :q ?v }", (A, P, B), (B, Q, TWO)) == [(TWO,)]


def test_a_variable_may_stand_twice_in_a_triple():
    facts = ((A, P, A), (A, P, B), (A, A, A))
    assert rows("{ ?x :p ?x }", *facts) == [(A,)]
    assert rows("{ ?x ?x ?x }", *facts) == [(A,)]
    assert rows("{ ?x ?y ?x }", *facts) == [(A, P), (A, A)]


# ------------------------------------------------------------------ the event's time


def test_the_time_is_bound_in_every_row():
    assert rows("{ ?x :p ?y }", (A, P, TWO), at="t") == [(A, TWO, ONE)]
    assert rows("{ OPTIONAL { ?x :q ?t } }", (A, P, TWO), at="t") == [(None, ONE)]


def test_the_time_joins_as_a_term():
    assert rows("{ ?x :p ?t }", (A, P, TWO), at="t") == []
    assert rows("{ ?x :p ?t }", (A, P, ONE), at="t") == [(A, ONE)]
    assert rows("{ ?x :p ?t }", (A, P, literal("1.0", "decimal")), at="t") == []


def test_the_patterns_own_binds_see_the_time_and_deeper_ones_do_not():
    assert rows("{ ?x :p ?y BIND(?t + 1 AS ?u) }", (A, P, TWO), at="t") == [(TWO, A, TWO, ONE)]
    assert rows("{ { BIND(?t AS ?u) } }", (A, P, TWO), at="t") == [(None, ONE)]
    assert rows("{ OPTIONAL { ?x :p 2 FILTER(?t = 1) } }", (A, P, TWO), at="t") == [(None, ONE)]


def test_a_date_is_bound_as_its_term():
    term = literal("2020-01-01T00:00:00Z", "dateTime")
    time = Timestamp(1_577_836_800_000_000, DATE_TIME, term)
    found = Both("{ ?x :p ?y }", "t").rows(Event("urn:s", time, 0, ((A, P, ONE),)))
    assert found == [(A, ONE, term)]


# ------------------------------------------------------------------ relevance


def test_an_event_without_a_needed_predicate_is_not_looked_at():
    needs_both = Both("{ ?x :p ?y . { ?x :q ?z } OPTIONAL { ?x :r ?w } }").evaluator
    assert not needs_both.relevant(event((A, P, ONE)))
    assert needs_both.relevant(event((A, P, ONE), (B, Q, ONE)))
    assert not Both("{}").evaluator.relevant(event())


def test_predicates_of_the_kb_are_not_needed_in_the_event():
    kb = open_kb({EX + "k": [(A, Q, TWO)]})
    found = rows("{ ?x :p ?y . GRAPH :k { ?x :q ?z } }", (A, P, ONE), kb=kb)
    assert found == [(A, ONE, TWO)]


# ------------------------------------------------------------------ the KB


KB = {EX + "k": [(A, Q, ONE), (B, Q, TWO)], EX + "l": [(A, Q, TWO)]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ ?x :p 1 GRAPH :k { ?x :q ?v } }", [(ONE, A)]),
        ("{ GRAPH :k { ?x :q ?v } ?x :p 1 }", [(ONE, A)]),
        (
            "{ ?x :p 1 GRAPH ?g { ?x :q ?v } }",
            [(ox.NamedNode(EX + "k"), ONE, A), (ox.NamedNode(EX + "l"), TWO, A)],
        ),
        ("{ ?x :p 1 OPTIONAL { GRAPH :l { ?x :q 1 . ?x :q ?v } } }", [(None, A)]),
        ("{ ?x :p 1 MINUS { GRAPH :l { ?x :q 2 } } }", []),
        ("{ ?x :p 1 FILTER NOT EXISTS { GRAPH :l { ?x :q 1 } } }", [(A,)]),
        ("{ GRAPH :none { ?x :q ?v } }", []),
        ("{ GRAPH :none {} }", []),
        ("{ GRAPH :k { ?x :p ?v } }", []),
    ],
)
def test_graph_matches_the_kb_only(text, expected):
    assert rows(text, (A, P, ONE), kb=open_kb(KB)) == expected


def test_only_the_graphs_in_sight_are_matched():
    text = "{ ?x :p 1 GRAPH ?g { ?x :q ?v } }"
    found = rows(text, (A, P, ONE), kb=open_kb(KB), kb_graphs=(EX + "l",))
    assert found == [(ox.NamedNode(EX + "l"), TWO, A)]
    assert rows(text, (A, P, ONE), kb=open_kb(KB), kb_graphs=()) == []
    assert rows("{ ?x :p 1 GRAPH :k { ?x :q ?v } }", (A, P, ONE)) == []


def test_what_only_the_kb_decides_is_evaluated_once():
    class Counting:
        def __init__(self):
            self.kb = open_kb(KB)
            self.names, self.snapshot, self.is_remote = self.kb.names, self.kb, self.kb.is_remote
            self.looked = 0

        def graph(self, name):
            self.looked += 1
            return self.kb.graph(name)

    kb = Counting()
    found = Both("{ ?x :p 1 GRAPH :k { ?x :q ?v FILTER(?v < 2) } }", kb=kb)
    for _ in range(5):
        assert found.rows(event((A, P, ONE))) == [(ONE, A)]
    assert kb.looked == 2  # once by each


def test_blank_nodes_of_kb_and_event_never_meet():
    blank = ox.BlankNode("b")
    kb = open_kb({EX + "k": [(blank, Q, ONE)]})
    assert rows("{ ?x :p 1 GRAPH :k { ?x :q 1 } }", (blank, P, ONE), kb=kb) == []


# ------------------------------------------------------------------ state and plans


def test_a_matcher_remembers_no_event():
    found = Both("{ ?x :p ?v }")
    assert found.rows(event((A, P, ONE))) == [(ONE, A)]
    assert found.rows(event((B, P, TWO))) == [(TWO, B)]
    assert found.rows(event((A, Q, ONE))) == []


def test_rows_do_not_alias_the_events_index():
    seen = event((A, P, ONE))
    found = Both("{ ?x :p ?v }")
    found.rows(seen).clear()
    assert found.rows(seen) == [(ONE, A)]


def test_programs_are_picklable():
    program = compile_gpm(parse_pattern("{ ?x :p/:q* ?v }", {"": EX}), "t", (EX + "k",))
    assert pickle.loads(pickle.dumps(program)) == program


def test_the_plan_starts_where_least_is_to_do():
    plan = Both("{ ?x ?y ?z . ?x :p ?z . ?x :q 1 }").evaluator.plan
    assert [line.split("  ")[1] for line in plan] == ["(scan)", "(by ?x)", "(by ?x ?z)"]
    assert "example.org/q" in plan[0]


def test_the_plan_says_what_pyoxigraph_computes():
    program = compile_gpm(
        parse_pattern('{ ?x :p ?v FILTER(REPLACE(?v, "a*", "b") = "b") }', {"": EX}), None, None
    )
    assert program.left_to_pyoxigraph
    assert Evaluator(program, None).plan[-1] == 'REPLACE with "a*": computed by pyoxigraph'
    quick = parse_pattern('{ ?x :p ?v FILTER(REGEX(?v, "^a")) }', {"": EX})
    assert not compile_gpm(quick, None, None).left_to_pyoxigraph


def test_a_service_is_native():
    program = compile_gpm(parse_pattern("{ SERVICE <http://e/> { ?x ?y ?z } }"), None, None)
    assert compile_pattern(program).left_to_python == ()


@pytest.mark.parametrize("count", [1, 20])
def test_look_ups_agree_however_they_are_made(count):
    facts = [(ox.NamedNode(f"{EX}n{i}"), P, ox.Literal(i % 3)) for i in range(count)]
    found = rows("{ ?x :p ?v . ?y :p ?v FILTER(?x != ?y) }", *facts)
    expected = {(v, x, y) for x, _, v in facts for y, _, w in facts if v == w and x != y}
    assert set(found) == expected
    assert len(found) == len(expected)
