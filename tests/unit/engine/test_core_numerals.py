"""Decimals of many spellings through the core: equal in value, and still the terms they were."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq

EX = "http://example.org/"
DECIMAL = ox.NamedNode("http://www.w3.org/2001/XMLSchema#decimal")
SPELLINGS = ["{}.50", "{}.5", "0{}.50", "+{}.5", "{}.500", "-{}.50", "{}.0", "{}.00", "{}", "-{}.0"]
RELATIONS = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
}
WINDOW = 8

spelt = st.builds(str.format, st.sampled_from(SPELLINGS), st.integers(0, 2))
streams = st.lists(st.tuples(st.sampled_from("ab"), spelt), min_size=2, max_size=24)
Stream = Sequence[tuple[str, str]]


def found(selected: str, second: str, stream: Stream) -> Counter[tuple[str, ...]]:
    """What A and a later B within the window give, as the values of terms."""
    run = spaseq.compile(
        f"PREFIX : <{EX}> SELECT {selected} WITHIN {WINDOW} SECONDS FROM STREAM s :s "
        f"WHERE {{ SEQ(A : B) DEFINE GPM A ON s {{ [] :a ?p1 }} DEFINE GPM B ON s {{ {second} }} }}"
    ).start()
    subject = ox.NamedNode(EX + "x")
    matches = [
        match
        for now, (kind, text) in enumerate(stream)
        for match in run.push(
            EX + "s",
            now,
            [(subject, ox.NamedNode(EX + kind), ox.Literal(text, datatype=DECIMAL))],
        )
    ]
    return Counter(
        tuple(match.bindings[name].value for name in match.variables) for match in matches
    )


def pairs(stream: Stream) -> list[tuple[str, str]]:
    """Every A with every later B of its window."""
    return [
        (one, other)
        for i, (first, one) in enumerate(stream)
        for last, other in stream[i + 1 : i + WINDOW + 1]
        if (first, last) == ("a", "b")
    ]


@pytest.mark.parametrize("relation", RELATIONS)
@settings(deadline=None)
@given(stream=streams)
def test_comparisons_go_by_value_and_show_what_was_written(relation: str, stream: Stream) -> None:
    holds = RELATIONS[relation]
    assert found("?p1 ?p2", f"[] :b ?p2 FILTER(?p2 {relation} ?p1)", stream) == Counter(
        (one, other) for one, other in pairs(stream) if holds(Decimal(other), Decimal(one))
    )


@settings(deadline=None)
@given(stream=streams)
def test_a_shared_variable_is_one_term(stream: Stream) -> None:
    joined = found("?p1", "[] :b ?p1", stream)
    assert joined == Counter((one,) for one, other in pairs(stream) if one == other)


@settings(deadline=None)
@given(stream=streams)
def test_expressions_read_them_as_written(stream: Stream) -> None:
    asked = found(
        "(STR(?p1) AS ?text) (sameTerm(?p1, ?p2) AS ?same) (?p1 = ?p2 AS ?equal) "
        "(IF(?p1 < ?p2, ?p1, ?p2) AS ?least)",
        "[] :b ?p2",
        stream,
    )
    assert asked == Counter(
        (
            one,
            str(one == other).lower(),
            str(Decimal(one) == Decimal(other)).lower(),
            one if Decimal(one) < Decimal(other) else other,
        )
        for one, other in pairs(stream)
    )
