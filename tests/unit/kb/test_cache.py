"""The cache of remote answers: which keys it has, for how long, and which were prefetched."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.kb.cache import Key, KeyCache

ROWS = [(ox.Literal("row"),)]
ROOM, KEEP, KEEP_ABSENT = 3, 10.0, 2.0


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def key(number: int) -> Key:
    return (ox.Literal(number),)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> KeyCache:
    return KeyCache(ROOM, KEEP, KEEP_ABSENT, clock)


@pytest.mark.parametrize(("rows", "seconds"), [(ROWS, KEEP), ([], KEEP_ABSENT)])
def test_answers_are_good_for_their_time(
    cache: KeyCache, clock: Clock, rows: list[tuple[ox.Literal]], seconds: float
) -> None:
    cache.put(key(1), rows)
    clock.now += seconds
    assert cache.has(key(1))
    assert cache.get(key(1)) == rows
    clock.now += 0.001
    assert not cache.has(key(1))
    assert cache.get(key(1)) is None
    assert len(cache) == 0


def test_the_least_recently_used_key_is_evicted(cache: KeyCache) -> None:
    for number in (1, 2, 3):
        cache.put(key(number), ROWS)
    assert cache.get(key(1)) == ROWS
    assert cache.has(key(2))  # no use
    cache.put(key(4), ROWS)
    assert [cache.has(key(number)) for number in (1, 2, 3, 4)] == [True, False, True, True]
    cache.put(key(3), [])  # known, so nothing is evicted
    assert len(cache) == ROOM
    cache.put(key(5), ROWS)
    assert [cache.has(key(number)) for number in (1, 3, 4, 5)] == [False, True, True, True]


def test_prefetched_answers_count_once_when_they_are_used(cache: KeyCache) -> None:
    cache.put(key(1), ROWS, ahead=True)
    cache.put(key(2), ROWS)
    assert cache.used == 0
    assert [cache.get(key(number)) for number in (1, 1, 2)] == [ROWS, ROWS, ROWS]
    assert cache.used == 1


def test_prefetched_answers_that_are_too_old_or_evicted_do_not_count(
    cache: KeyCache, clock: Clock
) -> None:
    cache.put(key(1), ROWS, ahead=True)
    clock.now += KEEP + 1
    assert cache.get(key(1)) is None
    cache.put(key(2), ROWS, ahead=True)
    for number in (3, 4, 5):
        cache.put(key(number), ROWS)
    cache.put(key(1), ROWS)
    cache.put(key(2), ROWS)
    assert cache.get(key(1)) == cache.get(key(2)) == ROWS
    assert cache.used == 0


class Model:
    """The same as a list in the order of use, the last used at its end."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, float, bool, bool]] = []
        self.used = 0

    def find(self, number: int) -> tuple[int, float, bool, bool] | None:
        return next((entry for entry in self.entries if entry[0] == number), None)

    def get(self, number: int, now: float) -> bool | None:
        entry = self.find(number)
        if entry is None:
            return None
        self.entries.remove(entry)
        if entry[1] < now:
            return None
        self.used += entry[3]
        self.entries.append((number, entry[1], entry[2], False))
        return entry[2]

    def put(self, number: int, now: float, rows: bool, ahead: bool) -> None:
        entry = self.find(number)
        if entry is not None:
            self.entries.remove(entry)
        ahead |= entry is not None and entry[3]
        self.entries.append((number, now + (KEEP if rows else KEEP_ABSENT), rows, ahead))
        del self.entries[:-ROOM]


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["get", "put", "put", "wait"]), st.integers(0, 5), st.booleans(),
              st.booleans()),
    max_size=40,
)  # fmt: skip


@given(OPERATIONS)
def test_any_use_agrees_with_a_list(operations: list[tuple[str, int, bool, bool]]) -> None:
    clock, model = Clock(), Model()
    cache = KeyCache(ROOM, KEEP, KEEP_ABSENT, clock)
    for name, number, rows, ahead in operations:
        if name == "wait":
            clock.now += number
        elif name == "put":
            cache.put(key(number), ROWS if rows else [], ahead)
            model.put(number, clock.now, rows, ahead)
        else:
            found = cache.get(key(number))
            assert (None if found is None else bool(found)) == model.get(number, clock.now)
        assert (len(cache), cache.used) == (len(model.entries), model.used)
        for some in range(6):
            entry = model.find(some)
            assert cache.has(key(some)) == (entry is not None and entry[1] >= clock.now)
