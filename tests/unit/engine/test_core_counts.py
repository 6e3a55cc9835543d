"""What a core counts: it goes on in the core that replaces it, and no count is forgotten."""

from __future__ import annotations

from dataclasses import fields

import pytest
from core_runs import native
from engine_runs import program, push, text

import spaseq
from spaseq.engine.native.snapshot import add_counts, counts_of
from spaseq.nfa.counters import CoreCounts, PlaceCounters

STATE = {"number", "place", "groups"}
"""The fields of `PlaceCounters` that the state of a core has."""
GPMS = (
    "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?k :b ?y FILTER(?y > ?x + ?x * ?x) } "
    "DEFINE GPM C ON s { ?k :c ?z OPTIONAL { ?k :d ?x } }"
)


def test_every_counter_of_a_place_is_added() -> None:
    tables = native(program().start()).core.tables
    names = {field.name for field in fields(PlaceCounters)} - STATE
    for times in (1, 2):
        tables.count_on(0, {name: number for number, name in enumerate(sorted(names), 1)})
        counted = tables.counters(0)
        assert counted.keys() == names
        for number, name in enumerate(sorted(names), 1):
            # The run itself adds up what was shed.
            assert counted[name] == (0 if name == "shed" else times * number), name


def counted_run() -> spaseq.Run:
    """A run with errors of filters, filters that are not true, and rows that disagree."""
    run = spaseq.compile(text("SEQ(A : B : C)", GPMS, "SELECT *")).start()
    for time, facts in enumerate(("k a 1", "k a 3", "k b 2", "k b 9", "k b n", "k c 5, k d 7")):
        push(run, time, facts)
    return run


def test_counts_go_on_in_a_core_that_replaces_another() -> None:
    run = counted_run()
    before = counts_of(native(run))
    assert sum(before.disagreed)
    assert sum(map(sum, before.untrue))
    assert any(map(any, before.errors))
    core = native(run)
    run.evaluation.queries[0].renew(run.evaluation.rows.matchers)
    assert native(run) is not core
    assert counts_of(native(run)) == before


@pytest.mark.parametrize("name", [field.name for field in fields(CoreCounts)])
def test_counts_of_another_run_are_added(name: str) -> None:
    one, other = native(counted_run()), counts_of(native(counted_run()))
    join = one.core.lazy_join
    join.switches, join.searched, join.sampled = 1, 2, 3
    more = counts_of(one)
    for count in (other, more):
        add_counts(one, count)
    single, all_of_them = getattr(other, name), getattr(counts_of(one), name)
    if isinstance(single, int):
        assert all_of_them == 2 * getattr(more, name) + single > 0
    elif name == "places":
        shown = [{k: v for k, v in place.items() if k != "shed"} for place in single]
        assert [{k: v for k, v in p.items() if k != "shed"} for p in all_of_them] == [
            {k: 3 * v for k, v in place.items()} for place in shown
        ]
    elif name == "errors":
        assert [[e.count for e in some] for some in all_of_them] == [
            [3 * e.count for e in some] for some in single
        ]
    elif name == "untrue":
        assert all_of_them == [[3 * count for count in some] for some in single]
    else:
        assert all_of_them == [3 * count for count in single]


def test_the_counters_of_a_run_have_the_meaning_of_those_of_its_queries() -> None:
    query = text()
    one = program().start()
    equal = spaseq.compile([query, query, text(seq="SEQ(A : B)")]).start()
    for run in (one, equal):
        for time in range(4):
            push(run, time, f"k{time} a {time}")
    shown = [counters["groups"] for counters in equal.stats["queries"].values()]
    assert shown == [4, 4, 4]
    assert equal.stats["groups"] == 8, "the state of equal queries counts once"
    assert equal.stats["bytes"] == 2 * one.stats["bytes"]
