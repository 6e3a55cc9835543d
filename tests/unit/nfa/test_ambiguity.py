"""Which sequence expressions may find one list of witnesses in two ways."""

from __future__ import annotations

import pytest
from nfa_queries import planned

from spaseq.nfa.compile import compile_automaton


def ambiguous(seq: str) -> bool:
    return compile_automaton(planned(seq)).ambiguous


@pytest.mark.parametrize(
    "seq",
    [
        "A",
        "A ; B , C",
        "A : B+ : C",
        "A : A : A",
        "A ; (B | C)+ : D",
        "(A ; B){2,3}",
        "A? ; B",
        "(A & B)",
        "A ; (B AND C)",
        "(A AND (B | C))+ : D",
    ],
)
def test_one_way_to_read_the_witnesses(seq: str) -> None:
    assert not ambiguous(seq)


@pytest.mark.parametrize(
    "seq", ["(A+)+", "A | A", "A ; (B | B)", "A+ : A+", "(A AND A)", "A ; (B AND C) ; B"]
)
def test_two_ways_to_read_the_witnesses(seq: str) -> None:
    assert ambiguous(seq)
