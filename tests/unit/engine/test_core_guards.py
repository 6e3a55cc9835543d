"""Guards that search earlier rows on the compiled core: stored rows, searched rows, costs."""

from __future__ import annotations

import pytest
from core_runs import native, pushed, started

import spaseq

READS_B = {
    "A": "{ ?k :a ?x }",
    "B": "{ ?k :b ?y }",
    "N": "{ ?k :n ?z FILTER(?z < ?y) }",
}
APART = {"A": "{ [] :a ?x }", "B": "{ [] :b ?y }", "N": "{ [] :n ?z FILTER(?z < ?y) }"}


def kept(run: spaseq.Run) -> int:
    return len(list(native(run).parts.buffered_rows()))


def test_a_filter_over_the_next_step_is_asked_of_the_rows_in_between() -> None:
    run = started("A ; !N : B", READS_B)
    pushed(run, 0, "a")
    pushed(run, 1, "n", value=5)
    assert pushed(run, 2, "b", value=5) == 1
    assert pushed(run, 3, "b", value=6) == 0
    pushed(run, 4, "a")
    assert pushed(run, 5, "b", value=6) == 1


@pytest.mark.parametrize("strangers", [10, 1000])
def test_an_index_leads_a_guard_to_the_rows_that_agree(strangers: int) -> None:
    run = started("A : !N : B", READS_B)
    pushed(run, 0, "a")
    for number in range(strangers):
        pushed(run, 1 + number, "n", key=1 + number, value=-1)
    assert pushed(run, 2000, "b") == 1
    others = native(run).core.conjunction.looked
    assert others <= 8  # of its bucket
    pushed(run, 2001, "n", value=-1)
    assert pushed(run, 2002, "b") == 0
    assert native(run).core.conjunction.looked == others + 1


def test_whom_a_guard_does_not_forbid_is_joined_at_once() -> None:
    """However many partial matches wait: one step more."""
    run = started("A : !N : B", APART)
    for time in range(500):
        pushed(run, time, "a")
    native = run.queries[0].native
    made = native.core.tecs.made
    assert pushed(run, 500, "b") == 500
    assert native.core.tecs.made == made + 1


def test_the_newest_row_that_forbids_ends_the_search() -> None:
    run = started("A : !N : B", APART)
    pushed(run, 0, "a")
    for time in range(1, 301):
        pushed(run, time, "n", value=-1)
    pushed(run, 301, "a")
    assert pushed(run, 302, "b") == 1
    assert native(run).core.conjunction.looked == 1


def test_rows_are_kept_only_where_somebody_waits_who_may_look_back() -> None:
    run = started("A : !N : B", READS_B, "50 SECONDS")
    for time in range(100):
        pushed(run, time, "n")
    assert kept(run) == 0
    pushed(run, 100, "a")
    for time in range(101, 400):
        pushed(run, time, "n")
    assert 0 < kept(run) <= 300


@pytest.mark.parametrize("seq", ["N? ; A ; B", "A ; !(N : N) ; B", "A ; (N ; B)?"])
def test_what_is_looked_back_at_goes_with_the_window(seq: str) -> None:
    gpms = {**APART, "N": "{ [] :n ?z }"}
    run = started(seq, gpms, "20 SECONDS")
    for time in range(2_000):
        pushed(run, time, "anb"[time % 3])
    assert 0 < kept(run) <= 30


def test_a_unit_that_begins_again_and_again_is_followed_once_from_each_instant() -> None:
    """Iterations inside a guarded unit cost pairs of rows, not chains of them."""
    run = started("A ; !(N+ ; M) ; B", {**APART, "N": "{ [] :n ?z }", "M": "{ [] :m ?m }"})
    pushed(run, 0, "a")
    for time in range(1, 41):
        pushed(run, time, "n")
    assert pushed(run, 50, "b") == 1
    assert native(run).core.conjunction.looked <= 40 * 41
