"""Buffers against a plain list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from model.buffer import Buffer, Entry

from spaseq.rdf.event import NUMBER, Event, Timestamp
from spaseq.rdf.time_text import seconds_literal

EVENT = Event("urn:s", Timestamp(0, NUMBER, seconds_literal(0)), 0, ())


def entry(instant: int) -> Entry:
    return Entry(instant, EVENT, ((),))


@given(
    st.lists(st.integers(0, 3), max_size=200),
    st.lists(st.tuples(st.integers(0, 250), st.integers(0, 250)), max_size=5),
    st.integers(0, 250),
)
def test_a_buffer_is_a_list_without_its_beginning(
    gaps: list[int], ranges: list[tuple[int, int]], bound: int
) -> None:
    buffer, instants, instant = Buffer(), [], 0
    for number, gap in enumerate(gaps):
        instant += gap
        buffer.append(entry(instant))
        instants.append(instant)
        if number % 7 == 0:
            buffer.evict(min(instant, bound))
            instants = [i for i in instants if i >= min(instant, bound)]
    assert [e.instant for e in buffer.kept()] == instants
    for low, high in ranges:
        expected = [i for i in reversed(instants) if low < i < high]
        assert [e.instant for e in buffer.between(low, high)] == expected


def test_evicted_entries_are_let_go() -> None:
    buffer = Buffer()
    for instant in range(10_000):
        buffer.append(entry(instant))
        buffer.evict(instant - 10)
        assert len(buffer.entries) < 2 * 64 + 2 * 11
    assert [e.instant for e in buffer.kept()] == list(range(9_989, 10_000))
