"""Groups of a place: one per valuation of its live registers, found by an index."""

from __future__ import annotations

from dataclasses import replace

import pyoxigraph as ox
from hypothesis import given
from hypothesis import strategies as st
from model.group import PlaceState
from model.tecs import Node
from nfa_queries import planned, register_file

from spaseq.nfa.automaton import Automaton, Edge
from spaseq.nfa.compile import compile_automaton
from spaseq.nfa.match_path import Step
from spaseq.nfa.registers import Environment

PLAN = planned("A : B : C", {"A": "{ ?k :a ?x }", "B": "{ ?k :b [] }", "C": "{ ?k :c ?x }"})
FILE = register_file(PLAN)
K, X = FILE.number["k"], FILE.number["x"]


def automaton() -> Automaton:
    return compile_automaton(PLAN)


def waiting_for(gpm: str) -> PlaceState:
    built = automaton()
    for number, place in enumerate(built.places):
        occurrence = built.atoms[place.edges[0].atom].occurrences[0]
        if PLAN.gpms[PLAN.occurrences[occurrence].gpm].name == gpm:
            return PlaceState(number, place, built, FILE.blank())
    raise AssertionError(gpm)


def env(k: int, x: int) -> Environment:
    cells = FILE.blank()
    cells[K], cells[X] = ox.Literal(k), ox.Literal(x)
    return cells


def node(last: int, start: int) -> Node:
    return Node(Step(Edge(0), ()), None, last, start)


pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=20)


@given(pairs, pairs)
def test_the_index_finds_the_groups_that_agree(
    made: list[tuple[int, int]], dropped: list[tuple[int, int]]
) -> None:
    state = waiting_for("B")
    for k, x in made:
        state.group(env(k, x))
    for k, x in set(dropped) & set(made):
        state.drop(state.group(env(k, x)))
    left = set(made) - set(dropped)
    assert len(state.groups) == len(left)
    for k in range(4):
        row = (ox.Literal(k),)
        found = state.matching(0, row, ((0,), ()))
        seen = {(int(g.env[K].value), int(g.env[X].value)) for g in found}
        assert seen == {pair for pair in left if pair[0] == k}
        assert len(found) == len(seen)


def test_a_group_keeps_its_live_registers_only() -> None:
    plan = planned("A : B : C", {"A": "{ ?k :a ?x }", "B": "{ ?k :b [] }"})
    file = register_file(plan)
    built = compile_automaton(plan)
    number = next(n for n, p in enumerate(built.places) if p.operator and p.live)
    state = PlaceState(number, built.places[number], built, file.blank())
    cells = file.blank()
    cells[file.number["k"]], cells[file.number["x"]] = ox.Literal(1), ox.Literal(2)
    group = state.group(cells)
    assert group.values == (ox.Literal(1),)
    assert group.env[file.number["x"]] is None
    cells[file.number["x"]] = ox.Literal(3)
    assert state.group(cells) is group


def test_a_start_holds_the_one_group_of_nobody_yet() -> None:
    built = automaton()
    state = PlaceState(built.starts[0], built.places[built.starts[0]], built, FILE.blank())
    assert list(state.groups) == [()]
    state.sweep(100)
    assert list(state.groups) == [()]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(0, 10))
def test_sweeping_drops_what_the_window_has_passed(starts: list[int], bound: int) -> None:
    state = waiting_for("C")
    for last, start in enumerate(starts):
        state.group(env(start % 2, 0)).add(node(last + 10, start))
    state.sweep(bound)
    left: dict[int, list[int]] = {}
    for last, start in enumerate(starts):
        if start >= bound:
            left.setdefault(start % 2, []).append(last + 10)
    seen = {}
    for group in state.groups.values():
        members = []
        chain = group.chain
        while chain is not None:
            members.append(chain.node.last)
            chain = chain.rest
        seen[int(group.env[K].value)] = members[::-1]
        assert group.oldest == min(members)
    assert seen == left


def test_places_know_how_they_take() -> None:
    plan = planned("A ; (B & C) ; (D AND E) , F : G")
    built = compile_automaton(plan)
    states = [PlaceState(n, p, built, FILE.blank()) for n, p in enumerate(built.places)]
    by_text = {built.atom_text(s.place.edges[0].atom, "ABCDEFG"): s for s in states}
    assert not by_text["B & C"].takes_at_once
    assert by_text["D AND E"].looks_back
    assert by_text["F"].strict
    assert not any(s.takes_at_once for s in states)
    assert not by_text["G"].strict


def test_a_group_is_not_found_after_it_was_dropped() -> None:
    state = waiting_for("B")
    group = state.group(env(1, 2))
    state.drop(group)
    again = state.group(env(1, 2))
    assert again is not group
    assert list(state.matching(0, (ox.Literal(1),), ((0,), ()))) == [again]


def test_an_edge_without_shared_variables_visits_every_group() -> None:
    built = automaton()
    place = next(p for p in built.places if p.keys != ((),) and not p.start)
    state = PlaceState(0, replace(place, keys=((),)), built, FILE.blank())
    for x in range(3):
        state.group(env(x, x))
    assert len(state.matching(0, (), ((), ()))) == 3


def test_an_index_by_value_finds_what_a_filter_finds_equal() -> None:
    gpms = {"A": "{ [] :a ?x }", "B": "{ [] :b ?y FILTER(?y = ?x) }"}
    plan = planned("A : B", gpms)
    file = register_file(plan)
    built = compile_automaton(plan)
    number = next(n for n, place in enumerate(built.places) if not place.start)
    state = PlaceState(number, built.places[number], built, file.blank())
    for value in (ox.Literal(1), ox.Literal(1.0), ox.Literal(2), ox.Literal("1")):
        cells = file.blank()
        cells[file.number["x"]] = value
        state.group(cells)
    found = state.matching(0, (ox.Literal(1),), ((), (0,)))
    assert {group.values for group in found} == {(ox.Literal(1),), (ox.Literal(1.0),)}
