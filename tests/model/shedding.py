"""Drop the oldest state of an `AutomatonRun` that exceeds its limit, or raise an error.

See `spaseq.rdf.limits`. Cost: linear in what waits, for each dropped eighth of the bound.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from model.group import PlaceState
from model.tecs import Waiting
from spaseq.rdf.limits import LimitReached, Limits

Closing = list[tuple[int, int, Waiting]]
"""A match that waits for its window to close: (closing time, number, match)."""


def held(places: Sequence[PlaceState], waiting: Closing) -> int:
    """The number of groups, and of matches that wait for their window to close."""
    return sum(len(state.groups) for state in places if not state.place.start) + len(waiting)


def relieve(places: Sequence[PlaceState], waiting: Closing, limits: Limits) -> tuple[int, int]:
    """Shed state beyond the bound, after removing what has left the window.

    Returns how much still waits, and how many waiting matches were dropped.

    Raises:
        LimitReached: if state must not be shed.
    """
    found = held(places, waiting)
    if found <= limits.most_groups:
        return found, 0
    if not limits.shed:
        raise LimitReached("groups")
    gone = _shed(places, waiting, found - limits.kept)
    return limits.kept, gone


def _shed(places: Sequence[PlaceState], waiting: Closing, surplus: int) -> int:
    """Drop the `surplus` oldest; returns how many of them were waiting matches."""
    groups = [
        (-1 if group.chain is None else group.chain.latest, state, group)
        for state in places
        if not state.place.start
        for group in state.groups.values()
    ]
    matches = [(item[2].path.start, item) for item in waiting]
    ages = sorted([age for age, *_ in groups] + [age for age, _ in matches])
    last = ages[surplus - 1]
    left = surplus - sum(age < last for age in ages)
    for age, state, group in groups:
        if age < last or (age == last and left):
            left -= age == last
            state.drop(group)
            state.shed += 1
    kept = []
    for age, item in matches:
        if age < last or (age == last and left):
            left -= age == last
        else:
            kept.append(item)
    waiting[:] = kept
    heapq.heapify(waiting)
    return len(matches) - len(kept)
