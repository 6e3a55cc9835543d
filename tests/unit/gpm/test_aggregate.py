"""Aggregates, whole and step by step, and the order of terms."""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.gpm.python.aggregates import add, aggregate, finish, order_key, start
from tests.unit.gpm.expression_strategies import NUMBERS, TERMS, XSD, literal

NAMES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")
NUMERIC = tuple(term for kind in NUMBERS for term in TERMS[kind])
ALL = tuple(term for terms in TERMS.values() for term in terms)


def reference(name, values, distinct=False, separator=None):
    """The aggregate by pyoxigraph, the values in their order."""
    rows = " ".join(f"({index} {value})" for index, value in enumerate(values))
    word = "DISTINCT " if distinct else ""
    end = "" if separator is None else f"; SEPARATOR={ox.Literal(separator)}"
    text = f"SELECT ({name}({word}?x{end}) AS ?r) {{ VALUES (?i ?x) {{ {rows} }} }}"
    (solution,) = ox.Store().query(text)
    return solution["r"]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(NAMES[:6]), st.lists(st.sampled_from(NUMERIC), max_size=5), st.booleans())
def test_numbers(name, values, distinct):
    assert aggregate(name, values, distinct=distinct) == reference(name, values, distinct)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(TERMS["string"]), max_size=5),
    st.sampled_from((None, ", ", "")),
    st.booleans(),
)
def test_concatenation_of_strings(values, separator, distinct):
    found = aggregate("GROUP_CONCAT", values, separator, distinct)
    assert found == reference("GROUP_CONCAT", values, distinct, separator)


@pytest.mark.parametrize("kind", ["string", "dateTime", "date", "iri", "dayTimeDuration"])
@pytest.mark.parametrize("name", ["MIN", "MAX"])
def test_extremes_of_one_kind(name, kind):
    values = [v for v in TERMS[kind] if '10:00:00"' not in str(v)]
    assert aggregate(name, values) == reference(name, values)


@given(st.sampled_from(NAMES), st.lists(st.sampled_from(ALL), max_size=6))
def test_step_by_step_is_the_whole(name, values):
    state = start(name, "|")
    for value in values:
        state = add(state, value)
        hash(state)
    assert finish(state) == aggregate(name, values, "|")


def test_over_nothing():
    results = {name: aggregate(name, []) for name in NAMES}
    zero = literal("0", "integer")
    assert results == {
        "COUNT": zero,
        "SUM": zero,
        "AVG": zero,
        "GROUP_CONCAT": ox.Literal(""),
        "MIN": None,
        "MAX": None,
        "SAMPLE": None,
    }


def test_what_is_no_number_has_no_sum():
    values = [literal("1", "integer"), ox.Literal("2")]
    assert aggregate("SUM", values) is None
    assert aggregate("AVG", values) is None
    assert aggregate("COUNT", values) == literal("2", "integer")


def test_concatenation_takes_the_text_as_written():
    values = [literal("01", "integer"), ox.NamedNode("urn:a"), ox.Literal("x", language="en")]
    assert aggregate("GROUP_CONCAT", values) == ox.Literal("01 urn:a x")
    assert aggregate("GROUP_CONCAT", [ox.BlankNode("b")]) is None


def test_the_extreme_is_the_term_as_written():
    values = [literal("2.50", "decimal"), literal("2.5", "decimal"), literal("3", "integer")]
    assert aggregate("MIN", values) == values[0]


def test_an_unknown_aggregate_is_named():
    with pytest.raises(ValueError, match="MEDIAN"):
        start("MEDIAN")


def test_order_is_sparqls():
    ordered = [
        None,
        ox.BlankNode("a"),
        ox.NamedNode("urn:a"),
        ox.NamedNode("urn:b"),
        literal("-INF", "double"),
        literal("1", "integer"),
        literal("1.5", "decimal"),
        literal("2", "float"),
        literal("NaN", "double"),
        ox.Literal("a"),
        ox.Literal("b"),
        literal("false", "boolean"),
        literal("true", "boolean"),
        literal("2020-01-01", "date"),
        literal("2020-01-01T00:00:00Z", "dateTime"),
        literal("2020-01-01T00:00:00.5Z", "dateTime"),
        literal("PT1S", "dayTimeDuration"),
        literal("P1M", "yearMonthDuration"),
    ]
    shuffled = random.Random(1).sample(ordered, len(ordered))
    assert sorted(shuffled, key=order_key) == ordered


@given(st.lists(st.sampled_from((None, *ALL)), max_size=8), st.randoms())
def test_order_is_total(terms, chance):
    mixed = list(terms)
    chance.shuffle(mixed)
    assert sorted(mixed, key=order_key) == sorted(terms, key=order_key)


def test_equal_values_are_told_apart_by_what_is_written():
    assert order_key(literal("1", "integer")) != order_key(literal("1.0", "decimal"))
    assert order_key(literal("1", "integer")) != order_key(literal("01", "integer"))
    assert XSD in str(literal("1", "integer"))
