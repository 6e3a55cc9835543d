"""Strict contiguity against its definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from model.contiguity import Contiguity
from nfa_queries import planned, register_file

partitioned = st.lists(st.sets(st.sampled_from("xyz"), max_size=3), max_size=20)


def filled(days: list[set[str]]) -> Contiguity:
    """The keys of each instant, in a query that partitions."""
    plan = planned("A", {"A": "{ [] :a ?k }"}, clauses="WITHIN 1 HOUR PARTITION BY ?k")
    contiguity = Contiguity(register_file(plan))
    for instant, keys in enumerate(days):
        contiguity.add(instant, [(key,) for key in keys])
    return contiguity


@given(partitioned, st.integers(0, 21))
def test_the_event_before_is_one_of_the_same_partition(days: list[set[str]], at: int) -> None:
    contiguity = filled(days)
    for key in "xyz":
        earlier = [n for n, keys in enumerate(days) if key in keys and n < at]
        assert contiguity.before((key,), at) == max(earlier, default=-1)


@given(partitioned, st.sets(st.integers(0, 20), min_size=1))
def test_instants_are_contiguous_without_an_event_between(
    days: list[set[str]], chosen: set[int]
) -> None:
    contiguity = filled(days)
    instants = sorted(chosen)
    for key in "xyz":
        own = {n for n, keys in enumerate(days) if key in keys}
        between = {n for n in range(instants[0], instants[-1]) if n not in chosen}
        assert contiguity.contiguous((key,), instants) == (not own & between)


@given(partitioned, st.integers(0, 21))
def test_forgetting_changes_nothing_inside_the_window(days: list[set[str]], bound: int) -> None:
    contiguity = filled(days)
    contiguity.evict(bound)
    for key, instants in contiguity.instants.items():
        assert instants == [n for n, keys in enumerate(days) if key[0] in keys and n >= bound]
        assert instants


def test_without_partitions_neighbours_are_contiguous() -> None:
    contiguity = Contiguity(register_file(planned("A")))
    assert contiguity.before((), 7) == 6
    assert contiguity.contiguous((), [3, 4, 5])
    assert not contiguity.contiguous((), [3, 5])
