"""Windows against their definition: which starts a match that ends now may have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from model.window import WindowClock

from spaseq.parser import ast
from spaseq.plan.logical import Window

steps = st.lists(st.integers(0, 7), min_size=1, max_size=40)
sizes = st.integers(1, 20)


def times(gaps: list[int], start: int = -15) -> list[int]:
    out = []
    for gap in gaps:
        start += gap
        out.append(start)
    return out


@given(steps, sizes)
def test_a_span_is_measured_from_the_first_event_to_the_last(gaps: list[int], size: int) -> None:
    clock = WindowClock(Window(ast.WindowKind.SPAN, size))
    instants = times(gaps)
    for now, micros in enumerate(instants):
        assert clock.open(micros) == now
        inside = [n for n in range(now + 1) if micros - instants[n] <= size]
        assert clock.bound == min(inside)


@given(steps, sizes)
def test_a_tumbling_window_starts_at_multiples_of_its_size(gaps: list[int], size: int) -> None:
    clock = WindowClock(Window(ast.WindowKind.TUMBLING, size))
    instants = times(gaps)
    for now, micros in enumerate(instants):
        clock.open(micros)
        inside = [n for n in range(now + 1) if instants[n] // size == micros // size]
        assert clock.bound == min(inside)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=30), sizes)
def test_a_window_of_events_counts_all_events_of_its_instants(
    numbers: list[int], size: int
) -> None:
    clock = WindowClock(Window(ast.WindowKind.EVENTS, size))
    for now, number in enumerate(numbers):
        clock.open(now)
        for _ in range(number):
            clock.count()
        fitting = [n for n in range(now + 1) if sum(numbers[n : now + 1]) <= size]
        assert clock.bound == min(fitting, default=now + 1)


@given(steps)
def test_an_unbounded_window_never_closes(gaps: list[int]) -> None:
    clock = WindowClock(Window(ast.WindowKind.UNBOUNDED))
    for micros in times(gaps):
        clock.open(micros)
    assert clock.bound == 0
    assert clock.bound_at(len(gaps) - 1) == 0


@given(steps, sizes, st.integers(1, 4))
def test_the_bounds_of_earlier_instants_are_remembered_as_far_as_somebody_looks_back(
    gaps: list[int], size: int, windows: int
) -> None:
    clock = WindowClock(Window(ast.WindowKind.SPAN, size), windows)
    bounds = []
    for micros in times(gaps):
        clock.open(micros)
        bounds.append(clock.bound)
        reach = clock.now
        for _ in range(windows):
            reach = bounds[reach]
        assert clock.looked_back_to() == reach
        for instant in range(reach, clock.now + 1):
            assert clock.bound_at(instant) == bounds[instant]


def test_closing_times() -> None:
    span, tumbling = (
        WindowClock(Window(ast.WindowKind.SPAN, 10)),
        WindowClock(Window(ast.WindowKind.TUMBLING, 10)),
    )
    assert span.closing(3) == 13
    assert [tumbling.closing(t) for t in (-11, -10, -1, 0, 9, 10)] == [-10, 0, 0, 10, 10, 20]


def test_the_timestamp_of_several_instants_starts_at_the_first() -> None:
    clock = WindowClock(Window(ast.WindowKind.SPAN, 10))
    for micros, start in ((5, 0), (5, 0), (6, 2), (6, 2), (9, 4)):
        clock.open(micros)
        assert clock.timestamp_start == start
