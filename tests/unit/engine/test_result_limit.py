"""`LIMIT … PER … EVERY`: what a run counts and stores, and saved states that no run has saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.engine.envelope import seal, unseal
from spaseq.errors import StateError
from spaseq.runs import Run

EX = "http://example.org/"
QUERY = f"""PREFIX : <{EX}>
SELECT ?k ?v WITHIN 1 SECOND FROM STREAM S :S
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?k :v ?v }} }}
LIMIT 1 PER ?k EVERY 10 SECONDS"""


def _push(run: Run, second: int, *keys: str) -> list[spaseq.Match]:
    triples = [
        ox.Triple(ox.NamedNode(EX + key), ox.NamedNode(EX + "v"), ox.Literal(second))
        for key in keys
    ]
    return run.push(EX + "S", second, triples)


def test_statistics_count_what_the_limit_withheld() -> None:
    run = spaseq.compile(QUERY, names=["q"]).start()
    found = [match for second in range(25) for match in _push(run, second, "a", "b")]
    found += run.finish()
    assert len(found) == 6
    counted = run.stats["queries"]["q"]
    assert (counted["matches"], counted["withheld_results"]) == (6, 44)


def test_a_run_stores_the_values_of_the_last_span() -> None:
    run = spaseq.compile(QUERY, names=["q"]).start()
    most = 0
    for second in range(500):
        _push(run, second, f"k{second}")
        most = max(most, run.stats["queries"]["q"]["limited_values"])
    assert most == 10


def test_without_every_nothing_is_stored() -> None:
    run = spaseq.compile(QUERY.replace("EVERY 10 SECONDS", ""), names=["q"]).start()
    for second in range(20):
        _push(run, second, f"k{second}")
    run.finish()
    assert not run.queries[0].output.limit.spans  # type: ignore[union-attr]
    assert "limited_values" not in run.stats["queries"]["q"]


def test_a_plain_limit_counts_nothing() -> None:
    run = spaseq.compile(QUERY.partition("LIMIT")[0] + "LIMIT 1", names=["q"]).start()
    assert "withheld_results" not in run.stats["queries"]["q"]


def test_an_open_end_goes_on_after_resuming() -> None:
    program = spaseq.compile(QUERY, names=["q"])
    run = program.start()
    found = _push(run, 0, "a") + _push(run, 5, "b") + run.finish(close=False)
    run = program.resume(run.save())
    found += _push(run, 9, "a", "b") + _push(run, 10, "a") + run.finish()
    ends = [(match.end.micros // 10**6, match.bindings["k"].value) for match in found]
    assert ends == [(0, EX + "a"), (5, EX + "b"), (10, EX + "a")]


def _limit_of(data: dict[str, Any]) -> list[Any]:
    limit: list[Any] = data["queries"][0]["limit"]
    return limit


def _later(data: dict[str, Any]) -> None:
    _limit_of(data)[1][0][1] = 10**12


def _twice(data: dict[str, Any]) -> None:
    _limit_of(data)[1].append(_limit_of(data)[1][0])


def _too_many(data: dict[str, Any]) -> None:
    _limit_of(data)[1][0][2] = 2


def _wider(data: dict[str, Any]) -> None:
    _limit_of(data)[1][0][0] *= 2


def _no_term(data: dict[str, Any]) -> None:
    _limit_of(data)[1][0][0] = [["n", 1]]


def _ended(data: dict[str, Any]) -> None:
    _limit_of(data)[1][0][1] -= 10_000_000


def _negative(data: dict[str, Any]) -> None:
    _limit_of(data)[0] = -1


def _gone(data: dict[str, Any]) -> None:
    data["queries"][0]["limit"] = None


@pytest.mark.parametrize(
    "change", [_later, _twice, _too_many, _wider, _no_term, _ended, _negative, _gone]
)
def test_saved_limits_that_no_run_saved_are_refused(
    change: Callable[[dict[str, Any]], None],
) -> None:
    program = spaseq.compile(QUERY, names=["q"])
    run = program.start()
    _push(run, 0, "a")
    _push(run, 1, "b")
    _push(run, 2, "c")
    data = unseal(run.save())
    assert len(_limit_of(data)[1]) == 3
    change(data)
    with pytest.raises(StateError):
        program.resume(seal(data))
