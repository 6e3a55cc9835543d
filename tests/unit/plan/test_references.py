"""The variables whose terms, not only values, an expression depends on."""

from __future__ import annotations

import pytest

from spaseq.parser.read import parse_expression
from spaseq.plan.references import identified


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("?a < ?b", ""),
        ("?a + ?b >= ?c * 2 && ?a != 3", "a"),
        ("?a = ?b", "a b"),
        ("STRLEN(?a) < ?b", "a"),
        ("?a < ?b || BOUND(?c)", "c"),
        ("!(?a < 3) && sameTerm(?b, ?c)", "a b c"),
        ("(?a + ?b) IN (?c, 3)", "a b c"),
    ],
)
def test_variables_that_are_told_by_their_terms(expression: str, names: str) -> None:
    assert identified(parse_expression(expression)) == set(names.split())
