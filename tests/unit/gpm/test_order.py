"""Joins start with the fewest rows, and prefer connected triples to products."""

from __future__ import annotations

from collections.abc import Callable

import pyoxigraph as ox
import pytest

from spaseq.gpm.native.order import Greedy, Step, cost, fan_out, guessed, ordered

A, B, C = 0, 1, 2
P, Q, R = (ox.NamedNode(f"http://e/{name}") for name in "pqr")
X = ox.NamedNode("http://e/x")
NOTHING: frozenset[int] = frozenset()


def step(subject, predicate, value) -> Step:
    return Step(subject, predicate, value, f"{subject} {predicate} {value}")


def test_a_constant_comes_before_a_scan() -> None:
    scan, constant = step(A, P, B), step(A, Q, X)
    assert ordered([scan, constant], NOTHING) == (constant, scan)


def test_a_connected_triple_comes_before_a_cheaper_one_that_is_not() -> None:
    first, connected, apart = step(A, P, X), step(A, Q, B), step(C, R, X)
    assert ordered([first, apart, connected], NOTHING)[:2] == (first, connected)


def test_what_is_bound_outside_counts() -> None:
    near, far = step(B, Q, C), step(A, P, C)
    assert ordered([near, far], frozenset({A}))[0] == far


def test_the_order_follows_the_sizes_of_views() -> None:
    large, small = step(A, P, B), step(A, Q, C)
    sizes = {large: 50.0, small: 2.0}
    assert ordered([large, small], NOTHING, sizes.__getitem__) == (small, large)
    assert cost((small, large), NOTHING, sizes.__getitem__) < cost(
        (large, small), NOTHING, sizes.__getitem__
    )


def test_an_empty_view_gives_no_rows() -> None:
    assert fan_out(step(A, P, B), NOTHING, 0.0) == 0.0
    assert fan_out(step(A, P, B), frozenset({A}), 0.0) == 0.0


def test_ties_go_as_in_the_text() -> None:
    steps = [step(A, P, B), step(A, Q, C), step(A, R, B)]
    assert ordered(steps, NOTHING)[0] == steps[0]


@pytest.mark.parametrize(
    "ends",
    [
        pytest.param(lambda n: (0, n + 1), id="star"),
        pytest.param(lambda n: (n, n + 1), id="chain"),
        pytest.param(lambda n: (2 * n, 2 * n + 1), id="apart"),
    ],
)
def test_each_triple_is_ranked_once_per_end(ends: Callable[[int], tuple[int, int]]) -> None:
    steps = [step(ends(n)[0], P, ends(n)[1]) for n in range(500)]
    greedy = Greedy(steps, NOTHING, [guessed(each) for each in steps])
    assert sorted(greedy.order()) == list(range(500))
    assert greedy.ranked <= 3 * len(steps)
