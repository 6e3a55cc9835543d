"""Items made ahead of their consumer: order, bound, errors, and the end of the thread."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from spaseq.rdf.ahead import QUEUED, Ahead, Lane


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name == "spaseq-ahead"]


class Numbers:
    """An iterator whose progress the tests can see."""

    def __init__(self, end: int, failure: Exception | None = None):
        self.end, self.failure = end, failure
        self.made = 0
        self.closed_by = ""
        self.lane: Lane[int] | None = None

    def __call__(self, lane: Lane[int]) -> Iterator[int]:
        self.lane = lane
        try:
            for number in range(self.end):
                self.made = number + 1
                yield number
            if self.failure is not None:
                raise self.failure
        finally:
            self.closed_by = threading.current_thread().name


def until(condition: object) -> None:
    """Wait for another thread."""
    for _ in range(1000):
        if condition():  # type: ignore[operator]
            return
        time.sleep(0.01)
    pytest.fail("the other thread did not get there within ten seconds")


def test_items_are_in_order_and_the_thread_ends_with_them() -> None:
    numbers = Numbers(1000)
    ahead = Ahead(numbers)
    assert list(ahead) == list(range(1000))
    assert (numbers.closed_by, threads()) == ("spaseq-ahead", [])
    assert next(ahead, None) is None


def test_no_more_items_are_made_than_may_wait() -> None:
    numbers = Numbers(1000)
    ahead = Ahead(numbers)
    assert next(ahead) == 0
    until(lambda: numbers.made == 1 + QUEUED + 1)  # one more is made before its place is free
    time.sleep(0.05)
    assert numbers.made == 1 + QUEUED + 1
    assert next(ahead) == 1
    until(lambda: numbers.made == 2 + QUEUED + 1)
    ahead.stop()
    assert (threads(), numbers.closed_by) == ([], "spaseq-ahead")
    assert next(ahead, None) is None
    ahead.stop()


def test_a_failure_is_raised_after_the_items_before_it() -> None:
    ahead = Ahead(Numbers(5, ValueError("spoilt")))
    assert [next(ahead) for _ in range(5)] == list(range(5))
    with pytest.raises(ValueError, match="spoilt"):
        next(ahead)
    assert threads() == []


def test_a_failure_of_the_first_item_starts_no_thread() -> None:
    with pytest.raises(ValueError, match="spoilt"):
        next(Ahead(Numbers(0, ValueError("spoilt"))))


def test_no_thread_where_it_does_not_pay() -> None:
    numbers = Numbers(3)
    ahead = Ahead(numbers, lambda: False)
    assert (next(ahead), threads()) == (0, [])
    assert list(ahead) == [1, 2]
    numbers = Numbers(3)
    ahead = Ahead(numbers, lambda: False)
    next(ahead)
    ahead.stop()
    assert numbers.closed_by == threading.current_thread().name


def test_a_long_step_can_be_stopped() -> None:
    checks = 0

    def endless(lane: Lane[int]) -> Iterator[int]:
        nonlocal checks
        yield 1
        while True:
            checks += 1
            lane.check()
            time.sleep(0.001)

    ahead = Ahead(endless)
    assert next(ahead) == 1
    until(lambda: checks)
    ahead.stop()
    assert threads() == []


def test_the_iterator_can_add_items_itself() -> None:
    def words(lane: Lane[str]) -> Iterator[str]:
        yield "first"
        assert lane.is_own
        for number in range(10):
            lane.put(f"added {number}")
        yield "last"

    lanes: list[Lane[str]] = []

    def kept(lane: Lane[str]) -> Iterator[str]:
        lanes.append(lane)
        return words(lane)

    ahead = Ahead(kept)
    assert list(ahead) == ["first", *(f"added {number}" for number in range(10)), "last"]
    assert not lanes[0].is_own


def test_a_process_ends_while_a_thread_waits() -> None:
    script = (
        "from spaseq.rdf.ahead import Ahead\n"
        "kept = Ahead(lambda lane: iter(range(1000)))\n"
        "print(next(kept), next(kept))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert (run.stdout, run.stderr) == ("0 1\n", "")
