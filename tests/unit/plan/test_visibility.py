"""What each place sees, and what may come after a negation."""

from __future__ import annotations

import pytest
from plan_queries import query

from spaseq.plan.places import group_variables, sequence_places
from spaseq.plan.scope import gpm_scopes
from spaseq.plan.visibility import Visibility, visibility


def seen(seq: str, gpms: dict[str, str] | None = None) -> Visibility:
    tree = query(seq, gpms)
    places, scopes = sequence_places(tree.sequence), gpm_scopes(tree)
    return visibility(tree.sequence, places, scopes, group_variables(tree, scopes, places))


@pytest.mark.parametrize(
    ("seq", "bound"),
    [
        ("A; B; C", "a ab abc"),
        ("A; !N; B; C", "a abn ab abc"),
        ("A; !N; B?; C", "a abcn abc abc"),
        ("A?; B; C", "ab ab abc"),
        ("A; B*; C", "a abc abc"),
        ("A; B{0,2}", "a ab"),
        ("A; B+; C", "a ab abc"),
        ("A; !N; !M; B", "a abn abm ab"),
        ("A; !N", "a an"),
        ("A; !(N; M); B", "a abn abmn ab"),
        ("A; (B & C); D", "a abc abc abcd"),
        ("A; (B AND (C | D))", "a abcd abcd abcd"),
        ("A; (B | (C; D)); E", "a ab ac acd abcde"),
        ("(A; !N); B", "a abn ab"),
        ("(A; B)+; C", "a ab abc"),
        ("(A; !N)+", "a an"),
        ("(A; !N; B)+", "a abn ab"),
        ("A; A", "a a"),
    ],
)
def test_bound_at_each_place(seq: str, bound: str) -> None:
    assert ["".join(sorted(sight.bound)) for sight in seen(seq).sights] == bound.split()


def test_join_variables_of_later_steps_are_known_from_the_second_iteration_on() -> None:
    gpms = {"B": "{ [] :k ?k ; :b ?b }", "C": "{ [] :k ?k }"}
    sights = seen("(A; B)+; C", gpms).sights
    assert sights[0].bound == {"a"}
    assert sights[0].again == {"k"}
    assert sights[1].again == set()
    assert sights[2].again == set()


@pytest.mark.parametrize(
    ("seq", "operators"),
    [
        ("A; !N, B", [{","}]),
        ("A, !N; B", [{";"}]),
        ("A; !N; !M, B", [{","}, {","}]),
        ("A; !N, B?; C", [{",", ";"}]),
        ("A; !N, B?", [{",", None}]),
        ("A; !N", [{None}]),
        ("(A; !N), B", [{","}]),
        ("A, (B; !N)+", [{",", None}]),
        ("A, (B; !N)+, C", [{","}]),
        ("(B; !N)+, C", [{";", ","}]),
        ("A; ((B; !N) | (C; !M)), D", [{","}, {","}]),
        ("A; !(B; !N, C): D", [{":"}, {","}]),
    ],
)
def test_operators_after_negations(seq: str, operators: list[set[str | None]]) -> None:
    assert [set(negated.operators) for negated in seen(seq).negated] == operators
