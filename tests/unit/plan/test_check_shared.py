"""Warnings about variables that steps share, and about comparisons of values of known sorts."""

from __future__ import annotations

import pytest

from spaseq.parser import parse
from spaseq.plan.check import check

READING = "[] :sensor ?s ; :celsius"


def warnings(sequence: str, a: str, b: str, clauses: str = "") -> list[str]:
    text = f"""PREFIX : <http://example.org/>
SELECT ?s WITHIN 10 MINUTES FROM STREAM r :r {clauses} WHERE {{
  SEQ({sequence})
  DEFINE GPM A ON r {a}
  DEFINE GPM B ON r {b}
}}"""
    return [found.message for found in check(parse(text))]


OWN_NODE = "{ ?r :sensor ?s ; :celsius ?a }", "{ ?r :sensor ?s ; :celsius ?b }"


def test_the_node_of_each_event() -> None:
    expected = [
        "all events of `A` and `B` must have the same `?r`, although `?s` relates them already"
    ]
    assert warnings("A+ ; B", *OWN_NODE) == expected
    assert warnings("A ; B{2,}", *OWN_NODE) == expected


def test_the_node_of_an_event_that_must_not_occur() -> None:
    expected = [
        "`B` forbids only events that have the same `?r`, although `?s` relates them already"
    ]
    assert warnings("A ; !B", *OWN_NODE) == expected
    assert warnings("!A ; B", *reversed(OWN_NODE)) == [expected[0].replace("`B`", "`A`")]


@pytest.mark.parametrize(
    ("sequence", "a", "b", "clauses"),
    [
        # Without an iteration, a node that two events describe is as likely.
        ("A ; B", *OWN_NODE, ""),
        # `?s` is an entity here: nothing else relates the events.
        ("A+ ; B", "{ ?s :celsius ?a }", "{ ?s :celsius ?b }", ""),
        # The node is the object of another triple, or the key.
        ("A+ ; B", "{ ?r :sensor ?s . ?x :of ?r }", OWN_NODE[1], ""),
        ("A+ ; B", *OWN_NODE, "PARTITION BY ?r"),
        # Both belong to each iteration.
        ("(A ; B)+", *OWN_NODE, ""),
    ],
)
def test_nothing_is_said_of_other_shared_variables(
    sequence: str, a: str, b: str, clauses: str
) -> None:
    assert not [text for text in warnings(sequence, a, b, clauses) if "relates them" in text]


def test_the_time_of_two_events() -> None:
    timed = f"AT ?t {{ {READING} ?a }}", f"AT ?t {{ {READING} ?b }}"
    expected = [
        "`?t` is the time of the event of `A` and of `B`: only events with the same timestamp "
        "agree on it"
    ]
    assert warnings("A ; B", *timed) == expected
    assert warnings("A : B+", *timed) == expected
    for other in ("(A & B)", "(A ; B)+", "A ; B?", "(A | B)"):
        assert not [text for text in warnings(other, *timed) if "same timestamp" in text]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("STR(?b) < 5", "the comparison of a string with a number always errs"),
        ("?x < 5", "the comparison of a string with a number always errs"),
        ("?n = true", "the comparison of a number with a boolean is never true"),
        ('AVG(?a) > "3"', "the comparison of a number with a string always errs"),
        ('-?b > "3"', "the comparison of a number with a string always errs"),
        ("?b < 5", None),
        ("?n < 5", None),
    ],
)
def test_comparisons_of_sorts_that_are_known(condition: str, message: str | None) -> None:
    binds = "BIND(STR(?b) AS ?x) BIND(STRLEN(?x) AS ?n)"
    found = warnings(
        "A+ ; B", f"{{ {READING} ?a }}", f"{{ {READING} ?b {binds} FILTER({condition}) }}"
    )
    assert found == ([] if message is None else [message])
