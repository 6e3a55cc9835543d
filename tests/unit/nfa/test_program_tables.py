"""The effects of edges and rows on registers: the compiled tables against `RegisterFile`."""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest
from core_probes import TablesProbe
from nfa_queries import planned, register_file

from spaseq.nfa.compile import compile_automaton
from spaseq.nfa.native.register_tables import NEVER_BOUND, OPENED
from spaseq.nfa.native.tables import tables
from spaseq.nfa.registers import OPEN, VOID

TRUE, FALSE = 1001, 1002
TERMS = [ox.Literal(n) for n in range(4)]
"""Term n has the number n + 1."""


def number_of(value: object) -> int:
    """The content of a cell as the core stores it."""
    if value is None:
        return 0
    if value is OPEN or value is VOID:
        return OPENED if value is OPEN else NEVER_BOUND
    if isinstance(value, int):
        return value
    assert isinstance(value, ox.Literal)
    return TERMS.index(value) + 1


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    "seq",
    ["(A ; B)+ ; C", "(A ; B{2,5})+ : C", "A ; B+ ; (A | C)", "((A ; B)+ ; C){2,4}"],
)
def test_edges_and_rows_change_registers_as_the_register_file_does(seq: str, seed: int) -> None:
    chance = random.Random(seed)
    gpms = {
        "A": "{ ?k :a ?x FILTER(?x != 9) }",
        "B": "{ ?k :b ?y FILTER(?y > 0 || ?y != PREV(?y)) }",
        "C": "{ ?k :c ?z FILTER(LAST(?y) >= 0 || FIRST(?y) > 7) }",
    }
    plan = planned(seq, gpms)
    automaton, registers = compile_automaton(plan), register_file(plan)
    rows = tables(plan, automaton, registers)
    probe = TablesProbe(rows, TRUE, FALSE)
    edges = [edge for place in automaton.places for edge in place.edges]
    registers_count = len(plan.registers)
    env = registers.blank()
    changed = 0
    for _ in range(200):
        position = chance.randrange(len(edges))
        edge = edges[position]
        (occurrence,) = automaton.atoms[edge.atom].occurrences
        before = [*map(number_of, env[:registers_count]), *[0] * (len(env) - registers_count)]
        for action in edge.actions:
            registers.enter(env, action.unit, action.again)
        native = probe.begin_iterations(position, before)
        _agree(rows.kept, native, env)
        variables = plan.gpms[plan.occurrences[occurrence].gpm].variables
        row = [chance.choice([None, *TERMS]) for _ in variables]
        numbers = [registers.number[name] for name in variables]
        after = list(env)
        fits = all(
            registers.bind(after, number, value)
            for number, value in zip(numbers, row, strict=True)
            if value is not None
        )
        bound = probe.bind(occurrence, list(map(number_of, row)), native)
        assert (bound is not None) == fits
        if bound is None:
            if chance.random() < 0.5:
                env = registers.blank()
            continue
        for name in plan.occurrences[occurrence].counts:
            after[registers.number[name]] += 1
        _agree(rows.kept, bound, after)
        changed += bound != native
        env = after
    assert changed > 10


def _agree(kept: frozenset[int], native: list[int], env: list[object]) -> None:
    """Compare the registers that the core stores."""
    assert [native[number] for number in kept] == [number_of(env[number]) for number in kept]


def test_bounds_of_links_are_half_open() -> None:
    plan = planned("A{2,4} ; B")
    automaton, registers = compile_automaton(plan), register_file(plan)
    rows = tables(plan, automaton, registers)
    probe = TablesProbe(rows, TRUE, FALSE)
    bounded = [n for n, (_, first, end) in enumerate(rows.links) if first < end]
    assert bounded
    for link in bounded:
        _, first, end = rows.links[link]
        for iterations in range(7):
            env = [iterations] * rows.cells
            wanted = all(least <= iterations < below for _, least, below in rows.bounds[first:end])
            assert probe.admits(link, env) == wanted
    assert {rows.bounds[rows.links[n][1]][1:] for n in bounded} == {(0, 4), (2, 2**32 - 1)}
