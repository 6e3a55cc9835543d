"""Places, iterated units, and which variables are group variables."""

from __future__ import annotations

import pytest
from plan_queries import query

from spaseq.parser import ast
from spaseq.plan.places import SequencePlaces, group_variables, sequence_places, without_parentheses
from spaseq.plan.scope import gpm_scopes


def places(seq: str) -> SequencePlaces:
    return sequence_places(query(seq).sequence)


def test_places_are_numbered_in_the_order_of_the_text() -> None:
    found = places("A; (B & (C | D)); !(E; F); (G AND H)+; A")
    assert [(p.index, p.name) for p in found.occurrences] == list(enumerate("ABCDEFGHA"))
    assert [p.name for p in found.occurrences if p.negated] == ["E", "F"]
    assert [p.groups for p in found.occurrences] == [(), *[(0,)] * 3, (), (), (1,), (1,), ()]
    assert found.positive_names() == set("ABCDGH")


@pytest.mark.parametrize(
    ("seq", "units", "parents"),
    [
        ("A; B", [(), ()], []),
        ("A?; B", [(), ()], []),
        ("A{0,1}; B{1}; C*", [(0,), (1,), (2,)], [None, None, None]),
        ("(A; B+; (C | D)*)+; E", [(0,), (0, 1), (0, 2), (0, 2), ()], [None, 0, 0]),
        ("A+; A+", [(0,), (1,)], [None, None]),
        ("((A+)+)+", [(0, 1, 2)], [None, 0, 1]),
        ("A; !(B+; C); D", [(), (0,), (), ()], [None]),
    ],
)
def test_iterated_units(seq: str, units: list[tuple[int, ...]], parents: list[int | None]) -> None:
    found = places(seq)
    assert [p.units for p in found.occurrences] == units
    assert list(found.unit_parents) == parents


def test_negations_around_places_and_units() -> None:
    found = places("A; !(B; !C; D+); E+")
    assert [p.negations for p in found.occurrences] == [(), (0,), (0, 1), (0,), ()]
    assert list(found.unit_negations) == [(0,), ()]
    assert [isinstance(step, ast.Step) for step in found.negations] == [True, True]


KEYED = {name: f"{{ [] :k ?k ; :v ?{name.lower()} }}" for name in "ABCDN"}


@pytest.mark.parametrize(
    ("seq", "expected"),
    [
        ("A; B+", {"b": 0}),
        ("B+", {"b": 0, "k": 0}),
        ("(A; B)+", {"a": 0, "b": 0, "k": 0}),
        ("(A; B+)+", {"a": 0, "b": 1, "k": 0}),
        ("A; (B; C+)+", {"b": 0, "c": 1}),
        ("A+; B+", {"a": 0, "b": 1}),
        ("B+; !N; C+", {"b": 0, "c": 1}),
        ("B+; !N", {"b": 0}),
        ("A; B+; B", {}),
        ("A; B+; B+", {}),
        ("(A | B)+", {"a": 0, "b": 0, "k": 0}),
        ("(A; !N; B)+", {"a": 0, "b": 0, "k": 0}),
        ("A; (B & C){2,3}", {"b": 0, "c": 0}),
        ("A; B?; C", {}),
        ("A; !(B+; C); D", {"b": 0}),
        ("((A+)+)+", {"a": 2, "k": 2}),
    ],
)
def test_group_variables(seq: str, expected: dict[str, int]) -> None:
    tree = query(seq, {name: body for name, body in KEYED.items() if name in seq})
    scopes = gpm_scopes(tree)
    assert group_variables(tree, scopes, sequence_places(tree.sequence)) == expected


def test_partition_variables_are_no_group_variables() -> None:
    tree = query("B+", KEYED, clauses="WITHIN 10 SECONDS PARTITION BY ?k")
    scopes = gpm_scopes(tree)
    assert group_variables(tree, scopes, sequence_places(tree.sequence)) == {"b": 0}


def test_times_and_stateful_binds_count_as_bound() -> None:
    tree = query("A; B+", {"B": "AT ?t { [] :b ?b BIND(?b - ?a AS ?d) }"})
    scopes = gpm_scopes(tree)
    assert group_variables(tree, scopes, sequence_places(tree.sequence)) == {
        "b": 0, "d": 0, "t": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("seq", "bare"),
    [
        ("A; (B?)", "A; B?"),
        ("A; ((B))", "A; B"),
        ("(((A)); B)", "(A; B)"),
        ("((A; B))+", "(A; B)+"),
        ("A; ((B)+)", "A; B+"),
        ("A; (B+)?", "A; (B+)?"),
        ("A; (!N); B", "A; !N; B"),
        ("A; !(N)", "A; !N"),
        ("A; !(N?)", "A; !(N?)"),
        ("((A) & (B | (C)))", "(A & (B | C))"),
        ("A : (B), ((C)); D", "A : B, C; D"),
    ],
)
def test_a_parenthesised_single_step_is_that_step(seq: str, bare: str) -> None:
    found = without_parentheses(query(seq).sequence)
    assert found == without_parentheses(found)
    assert without_parentheses(query(bare).sequence) == found
    before, after = sequence_places(query(seq).sequence), sequence_places(found)
    assert [(p.name, p.units, p.negations) for p in before.occurrences] == [
        (p.name, p.units, p.negations) for p in after.occurrences
    ]
