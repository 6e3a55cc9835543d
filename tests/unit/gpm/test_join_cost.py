"""What a join costs, by the rows its steps are given and make, and never by the clock."""

from __future__ import annotations

from collections.abc import Callable

import pyoxigraph as ox
import pytest

from spaseq.gpm.matchers import Matchers
from spaseq.rdf.event import Fact
from tests.unit.gpm.encoded_events import EX, encoded, matchers

P, Q, R = (ox.NamedNode(EX + name) for name in "pqr")
SIZES = (50, 100, 200, 400, 800)


def node(kind: str, number: int) -> ox.NamedNode:
    return ox.NamedNode(f"{EX}{kind}{number}")


def star(size: int) -> list[Fact]:
    """Subjects with a :p and an :r each, and two :q."""
    facts = [(node("s", n), p, node("o", n)) for n in range(size) for p in (P, Q, R)]
    return facts + [(node("s", n), Q, node("o", n + 1)) for n in range(size)]


def path(size: int) -> list[Fact]:
    return [(node("n", n), (P, Q, R)[n % 3], node("n", n + 1)) for n in range(3 * size)]


def cycles(size: int) -> list[Fact]:
    """Triangles that do not touch each other."""
    ring = [(P, "a", "b"), (Q, "b", "c"), (R, "c", "a")]
    return [(node(s, n), p, node(o, n)) for n in range(size) for p, s, o in ring]


def hub(size: int) -> list[Fact]:
    """All point to one node with :p, which points to all with :q; few have an :r."""
    middle = node("hub", 0)
    facts: list[Fact] = [(node("n", n), P, middle) for n in range(size)]
    facts += [(middle, Q, node("n", n)) for n in range(size)]
    return facts + [(node("n", n), R, node("n", n)) for n in range(0, size, size // 5)]


def touched(found: Matchers, number: int = 0) -> int:
    """Rows given to all steps, and rows made of them."""
    return sum(given + made for given, made in found.observed(number).steps.values())


@pytest.mark.parametrize(
    ("graph", "text", "rows", "most"),
    [
        # (rows per unit of size, rows that steps are given and make per unit of size)
        (star, "{ ?s :p ?a ; :q ?b ; :r ?c }", 2, 8),
        (path, "{ ?a :p ?b . ?b :q ?c . ?c :r ?d }", 1, 6),
        (cycles, "{ ?a :p ?b . ?b :q ?c . ?c :r ?a }", 1, 6),
        (star, "{ ?s :p ?a OPTIONAL { ?s :q ?b . ?b :r ?x } }", 1, 6),
        (star, "{ ?s :p ?a FILTER EXISTS { ?s :r ?a } }", 1, 4),
        (path, "{ ?a ?x ?b . ?b :q ?c }", 1, 6),
    ],
)
def test_stars_paths_and_cycles_are_linear(
    graph: Callable[[int], list[Fact]], text: str, rows: int, most: int
) -> None:
    for size in SIZES:
        found = matchers(text)
        (given,) = encoded(found, [graph(size)])
        assert len(found.rows(given, 0)[0]) == rows * size
        assert size <= touched(found) <= most * size + 2


def test_a_hub_is_entered_from_the_side_that_is_small() -> None:
    """The product of what enters the hub and what leaves it is never made."""
    for size in SIZES:
        found = matchers("{ ?a :r ?a . ?a :p ?h . ?h :q ?b . ?b :r ?b }")
        (given,) = encoded(found, [hub(size)])
        assert len(found.rows(given, 0)[0]) == 25
        assert touched(found) <= 12 * size


def test_a_constant_touches_what_it_names() -> None:
    for size in SIZES:
        found = matchers("{ :s7 :p ?a ; :q ?b . ?s :r ?a }")
        (given,) = encoded(found, [star(size)])
        assert len(found.rows(given, 0)[0]) == 2
        assert touched(found) <= 10


def test_an_event_without_a_predicate_of_a_basic_pattern_costs_no_row() -> None:
    found = matchers("{ ?s :p ?a ; :q ?b ; :none ?c }")
    (given,) = encoded(found, [star(500)])
    assert found.rows(given, 0)[0] == []
    assert touched(found) == 0


@pytest.mark.parametrize("disabled", [False, True])
def test_the_observed_sizes_of_views_make_joins_cheaper(
    disabled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing tells before the first event that :p is everywhere and :q is rare."""
    if disabled:
        monkeypatch.setenv("SPASEQ_DISABLE", "observed_order")
    facts = [(node("s", n), P, node("o", n)) for n in range(100)]
    facts += [(node("s", n), Q, node("o", n)) for n in range(0, 100, 50)]
    found = matchers("{ ?s :p ?a . ?s :q ?b }")
    events = encoded(found, [facts] * 128)
    assert all(len(found.rows(event, 0)[0]) == 2 for event in events[:63])
    before = touched(found) / 63
    assert all(len(found.rows(event, 0)[0]) == 2 for event in events[63:])
    after = touched(found) / 65
    assert (10 * after < before) is not disabled
