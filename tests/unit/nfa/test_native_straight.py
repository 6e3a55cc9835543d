"""Straight edges: their copies are what entering and binding leave (`RegisterFile`)."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from nfa_queries import planned, register_file

from spaseq.nfa.automaton import ACCEPT
from spaseq.nfa.compile import compile_automaton
from spaseq.nfa.native.straight_edges import ANY, CONSTANT, GROUP, ROW
from spaseq.nfa.native.tables import tables
from spaseq.nfa.registers import Environment
from spaseq.plan.logical import QueryPlan

SHARED = {
    "A": "{ ?k :a ?a }",
    "B": "{ ?k :b ?b FILTER(?b > ?a) }",
    "C": "{ ?k :c ?c FILTER(?c < ?a) }",
}
FALLING = {**SHARED, "B": "{ ?k :b ?b FILTER(?b < PREV(?b, ?a)) }"}
NESTED = {**SHARED, "C": "{ ?k :c ?c FILTER(?c > PREV(?c, ?b)) }"}
LAST = {**SHARED, "C": "{ ?k :c ?c FILTER(?c > LAST(?b)) }"}
FIRST = {**SHARED, "C": "{ ?k :c ?c FILTER(?c > FIRST(?b)) }"}
MOST = {**SHARED, "C": "{ ?k :c ?c FILTER(?c > MAX(?b)) }"}
COUNTED = {**SHARED, "C": "{ ?k :c ?c FILTER(COUNT(B) > 2) }"}
WORKED_OUT = {**SHARED, "B": "{ ?k :b ?n BIND(?n + ?a AS ?b) }"}

STRAIGHT = [
    ("A ; B ; C", SHARED),
    ("A ; B+ ; C", SHARED),
    ("A ; B+ ; C", FALLING),
    ("A ; B+ ; C", LAST),
    ("(A ; B+)+ ; C", FALLING),
    ("(A ; (B ; C)+)+ ; A", NESTED),
    ("A ; (B | C)+ ; C", SHARED),
]


def straight(seq: str, gpms: dict[str, str]) -> list[bool]:
    """Of the edges, place by place: those of guards come first, those of the start last."""
    plan = planned(seq, gpms)
    found = tables(plan, compile_automaton(plan), register_file(plan))
    return [edge[0] for edge in found.straight.edges]


@pytest.mark.parametrize(("seq", "gpms"), STRAIGHT)
def test_steps_of_terms_and_known_numbers_are_straight(seq: str, gpms: dict[str, str]) -> None:
    assert all(straight(seq, gpms))


@pytest.mark.parametrize(
    ("seq", "gpms", "expected"),
    [
        ("A ; B+ ; C", FIRST, [False, False, True, True]),
        ("A ; B+ ; C", MOST, [False, False, True, True]),
        ("A ; B+ ; C", COUNTED, [False, False, True, True]),
        ("A ; B ; C", WORKED_OUT, [False, True, True]),
        ("A ; B{2,3} ; C", SHARED, [False, False, True, True]),
        ("A ; (B & C)", SHARED, [False, True]),
        ("A ; !B ; C", SHARED, [False, True, True]),
    ],
)
def test_what_only_a_run_knows_is_not_straight(
    seq: str, gpms: dict[str, str], expected: list[bool]
) -> None:
    assert straight(seq, gpms) == expected


@pytest.mark.parametrize(("seq", "gpms"), STRAIGHT)
def test_a_straight_edge_copies_what_a_step_leaves(seq: str, gpms: dict[str, str]) -> None:
    """The next places remember the same as if the step had been taken register by register."""
    plan = planned(seq, gpms)
    automaton = compile_automaton(plan)
    file = register_file(plan)
    found = tables(plan, automaton, file)
    compared = 0
    edges = ((place, edge) for place in automaton.places for edge in place.edges)
    for (place, edge), (_, first, end), row in zip(
        edges, found.straight.edges, found.edges, strict=True
    ):
        group = [remembered(plan, register) for register in place.live]
        variables = plan.gpms[plan.occurrences[row[0]].gpm].variables
        terms = [ox.Literal(f"row {column}") for column in range(len(variables))]
        for column, position in found.straight.agreements[first:end]:
            if position != ANY:
                terms[column] = group[position]
        env: Environment = file.blank()
        for register, value in zip(place.live, group, strict=True):
            env[register] = value
        for action in edge.actions:
            file.enter(env, action.unit, action.again)
        for name, term in zip(variables, terms, strict=True):
            assert file.bind(env, file.number[name], term)
        links = automaton.atoms[edge.atom].links
        for link, copies in zip(links, found.straight.links[row[3] : row[4]], strict=True):
            live = () if link.target == ACCEPT else automaton.places[link.target].live
            sources = found.straight.sources[slice(*copies)]
            values = {ROW: terms, GROUP: group}
            copied = [
                (number or None) if origin == CONSTANT else values[origin][number]
                for origin, number in sources
            ]
            assert copied == [env[register] for register in live]
            compared += len(live)
    assert compared >= len(automaton.places) - 1


def remembered(plan: QueryPlan, register: int) -> ox.Literal | int:
    """Something that a group may hold in a register."""
    if plan.registers[register].kind == "iterations":
        return 1
    return ox.Literal(f"group {register}")
