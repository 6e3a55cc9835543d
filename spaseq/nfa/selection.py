"""EMIT: the selection among the matches of one partition that end together.

Matches are compared by their sets of events (LANGUAGE section 5, docs/language.md; `NEXT` and
`LAST` are the NXT and LAST of Bucchi et al., *Foundations of CEP*). `ANY` selects the first in the
order of results. Matches with equal event sets are selected together. Cost: `MAX` compares sets
pairwise; the other modes at most sort them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from spaseq.nfa.match_path import Key, Path

EventSet = frozenset[tuple[int, int]]
"""Events as (instant number, position of the stream in the order of declaration)."""


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
    partitions: dict[object, list[tuple[Path, EventSet]]] = {}
    for path in paths:
        partitions.setdefault(path.key, []).append((path, _events(path, streams)))
    if mode == "ANY":
        return [
            path
            for members in partitions.values()
            for first in [min(members, key=lambda member: _order(member[0], streams))]
            for path, events in members
            if events == first[1]
        ]
    if mode == "STRICT":
        return [
            path
            for members in partitions.values()
            for path, events in members
            if contiguity.contiguous(path.key, sorted({instant for instant, _ in events}))
        ]
    pick = _PICK[mode]
    chosen = []
    for members in partitions.values():
        kept = pick({events for _, events in members})
        chosen += [path for path, events in members if events in kept]
    return chosen


def _events(path: Path, streams: Mapping[str, int]) -> EventSet:
    return frozenset(
        (witness.instant, streams[witness.event.stream])
        for step in path.steps
        for witness in step.witnesses
    )


def _order(path: Path, streams: Mapping[str, int]) -> tuple[list[int], list[int]]:
    """The order of results, as far as it distinguishes sets of events."""
    witnesses = path.witnesses()
    return [w.instant for w in witnesses], [streams[w.event.stream] for w in witnesses]


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
