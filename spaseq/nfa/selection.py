"""EMIT: the selection among the matches of one partition that end together.

Matches are compared by their sets of events (LANGUAGE section 5, docs/language.md; `NEXT` and
`LAST` are the NXT and LAST of Bucchi et al., *Foundations of CEP*). `ANY` selects the first in the
order of results. Matches with equal event sets are selected together. Cost: `MAX` compares sets
pairwise; the other modes at most sort them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from spaseq.nfa.match_path import Key, Path

Event = tuple[int, int]
"""An event as (instant number, position of its stream in the order of declaration)."""
EventSet = frozenset[Event]


class Contiguous(Protocol):
    """The instants that hold events, per partition."""

    def contiguous(self, key: Key, instants: list[int]) -> bool:
        """Whether no event of the partition lies between successive instants of the list."""


def choose(
    paths: Iterable[Path], mode: str, streams: Mapping[str, int], contiguity: Contiguous
) -> list[Path]:
    """The paths that the mode selects; all end at one instant, in several partitions."""
    if mode == "ALL":
        return list(paths)
    listed = list(paths)
    ended = [(path.key, _events(path, streams)) for path in listed]
    return [listed[number] for number in chosen(ended, mode, contiguity)]


def chosen(
    matches: Iterable[tuple[Any, Sequence[Event]]], mode: str, contiguity: Contiguous | None = None
) -> list[int]:
    """The matches that a mode selects, by their positions.

    Args:
        matches: The partition of each match, and its events in order.
        mode: A mode of `EMIT` other than `ALL`.
        contiguity: The instants that hold events, for `STRICT`.
    """
    partitions: dict[Any, list[tuple[int, Sequence[Event], EventSet]]] = {}
    for number, (key, events) in enumerate(matches):
        partitions.setdefault(key, []).append((number, events, frozenset(events)))
    found = []
    for key, members in partitions.items():
        if mode == "STRICT":
            assert contiguity is not None
            kept = {
                events
                for _, _, events in members
                if contiguity.contiguous(key, sorted({instant for instant, _ in events}))
            }
        elif mode == "ANY":
            kept = {min(members, key=lambda member: _order(member[1]))[2]}
        else:
            kept = _PICK[mode]({events for _, _, events in members})
        found += [number for number, _, events in members if events in kept]
    return found


def _events(path: Path, streams: Mapping[str, int]) -> list[Event]:
    return [(witness.instant, streams[witness.event.stream]) for witness in path.witnesses()]


def _order(events: Sequence[Event]) -> tuple[list[int], list[int]]:
    """The order of results, as far as it distinguishes sets of events."""
    return [instant for instant, _ in events], [stream for _, stream in events]


def _earliest(sets: set[EventSet]) -> set[EventSet]:
    # A set that continues another set has the earliest event in which the two differ.
    return {min(sets, key=lambda events: [*sorted(events), (float("inf"), 0)])}


def _latest(sets: set[EventSet]) -> set[EventSet]:
    return {max(sets, key=lambda events: sorted(((i, -s) for i, s in events), reverse=True))}


def _maximal(sets: set[EventSet]) -> set[EventSet]:
    return {events for events in sets if not any(events < other for other in sets)}


_PICK: Mapping[str, Callable[[set[EventSet]], set[EventSet]]] = {
    "NEXT": _earliest,
    "LAST": _latest,
    "MAX": _maximal,
}
