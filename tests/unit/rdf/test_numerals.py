"""Numerals: equal in every window, and distinct from all other texts."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.native._terms import Dictionary, EventBatch, WindowTerms

XSD = "http://www.w3.org/2001/XMLSchema#"
LEAST, BEYOND = -(2**27), 2**27
DIGITS = 2**24
"""A decimal of so many digits is looked up, read as a number."""
FORMS = ["{}", "+{}", "0{}", "-{}", "{}.0", "{} ", "-0{}", "{}.5", "-{}.05", "0.{}", ".{}", "{}.50"]
FORMS += ["{}.", "0{}.5", " {}", "{}e0", "{}.2.5"]
TYPES = ["integer", "int", "long", "nonNegativeInteger", "decimal", "double", "string", "integers"]


def held(window: WindowTerms, *terms: ox.Literal) -> list[int]:
    """The numbers that terms have in a window."""
    batch = EventBatch(Dictionary())
    return [window.py_intern(batch, batch.number(term)) for term in terms]


@given(st.integers(LEAST - 3, BEYOND + 3) | st.integers(-99, 99) | st.integers(-(2**70), 2**70))
def test_an_integer_in_range_is_the_same_number_in_all_windows(number: int) -> None:
    term = ox.Literal(str(number), datatype=ox.NamedNode(XSD + "integer"))
    window, other = WindowTerms(10), WindowTerms(10)
    held(other, ox.Literal("somebody else"))
    (own,), (others,) = held(window, term), held(other, term)
    assert window.py_term(own) == other.py_term(others) == term
    assert (own == others) == (LEAST <= number < BEYOND) == (window.live == 0)


@given(
    st.integers(-DIGITS - 3, DIGITS + 3) | st.integers(-99, 99) | st.integers(-(10**12), 10**12),
    st.integers(1, 9),
)
def test_a_decimal_of_few_digits_is_the_same_number_in_all_windows(
    digits: int, places: int
) -> None:
    text = f"{abs(digits):0{places + 1}}"
    text = f"{'-' * (digits < 0)}{text[:-places]}.{text[-places:]}"
    term = ox.Literal(text, datatype=ox.NamedNode(XSD + "decimal"))
    window, other = WindowTerms(10), WindowTerms(10)
    held(other, ox.Literal("somebody else"))
    (own,), (others,) = held(window, term), held(other, term)
    assert window.py_term(own) == other.py_term(others) == term
    few = abs(digits) < DIGITS and places < 8
    assert (own == others) == few == (window.live == 0)


@given(
    st.lists(
        st.builds(
            lambda form, number, kind: ox.Literal(
                form.format(number), datatype=ox.NamedNode(XSD + kind)
            ),
            st.sampled_from(FORMS),
            st.integers(0, 13)
            | st.sampled_from([BEYOND - 1, BEYOND, -LEAST + 1, 10**30, DIGITS - 1, DIGITS, 16777]),
            st.sampled_from(TYPES),
        ),
        min_size=2,
        max_size=12,
    )
)
def test_equal_texts_and_no_others_have_one_number(terms: list[ox.Literal]) -> None:
    window = WindowTerms(10)
    numbers = held(window, *terms)
    for one, number in zip(terms, numbers, strict=True):
        assert str(window.py_term(number)) == str(one)
        for other, another in zip(terms, numbers, strict=True):
            assert (number == another) == (str(one) == str(other))


def test_a_permanent_integer_keeps_its_number() -> None:
    dictionary = Dictionary()
    term = ox.Literal(7)
    permanent = dictionary.intern(term)
    batch = EventBatch(dictionary)
    assert WindowTerms(10).py_intern(batch, batch.number(term)) == permanent


@pytest.mark.parametrize("number", [0, -1, LEAST, BEYOND - 1])
def test_a_numeral_outlives_every_window(number: int) -> None:
    window = WindowTerms(10)
    (own,) = held(window, ox.Literal(number))
    window.advance(10**6)
    assert window.py_term(own) == ox.Literal(number)
