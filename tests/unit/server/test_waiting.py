"""Events that wait, against a list that is sorted each time."""

from __future__ import annotations

import random
from typing import Any

import pytest

from spaseq.server.waiting import WaitingEvents


@pytest.mark.parametrize("seed", range(40))
def test_events_leave_by_time_and_arrival(seed: int) -> None:
    draw = random.Random(seed)
    waiting, expected = WaitingEvents(), list[tuple[int, int, int, Any, int]]()
    now = 0
    for record in range(60):
        now += draw.randrange(3)
        batch: Any = object()
        spread = draw.choice((0, 0, 2))
        times = [now + draw.randrange(4) + index * spread for index in range(draw.randrange(1, 6))]
        first = draw.choice((0, 7))
        if draw.random() < 0.7:
            times.sort()
            waiting.add_all(times, record, first, batch)
        else:
            for index, time in enumerate(times):
                waiting.add(time, record, first + index, batch, index)
        expected += [(t, record, first + i, batch, i) for i, t in enumerate(times)]
        expected.sort(key=lambda one: one[:3])
        assert len(waiting) == len(expected)
        assert sorted(waiting.places()) == sorted((one[1], one[2]) for one in expected)
        assert waiting.first_time == min((one[0] for one in expected), default=None)
        assert waiting.first_record == min((one[1] for one in expected), default=None)
        if draw.random() < 0.6:
            bound = now + draw.randrange(-4, 5)
            found = [(b, i) for b, start, end in waiting.release(bound) for i in range(start, end)]
            assert found == [(one[3], one[4]) for one in expected if one[0] <= bound]
            expected = [one for one in expected if one[0] > bound]
    waiting.clear()
    assert (len(waiting), waiting.first_record, waiting.release(1 << 62)) == (0, None, [])


def test_a_batch_in_order_is_one_entry() -> None:
    waiting, batch = WaitingEvents(), object()
    waiting.add_all([1, 2, 2, 5], 0, 0, batch)  # type: ignore[arg-type]
    waiting.add_all([5, 6], 1, 0, batch)  # type: ignore[arg-type]
    assert waiting.release(2) == [(batch, 0, 3)]
    assert waiting.release(5) == [(batch, 3, 4), (batch, 0, 1)]
    assert waiting.release(9) == [(batch, 1, 2)]
