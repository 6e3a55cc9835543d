"""What waiting partial matches hold → the values a KB is asked for before an event needs them.

A step whose pattern is joined by key to a remote graph, and which shares that key's variables
with steps before it, can only be taken with values that some partial match holds in its
registers. These fill up the next request that goes out anyway (`spaseq.kb.relation`): so there
is never a request more, and the events that bring the same values find the answers known.

Invariant: nothing here decides what matches; a value that is left out is asked for when an event
brings it. Cost: what is looked at at each request is the groups that came since the last one, and
no more than the newest `LOOKED_AT` of a place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyoxigraph as ox

from spaseq.engine.compiled import CompiledQuery
from spaseq.gpm.bind_join import BindJoin
from spaseq.gpm.named_graphs import KbKey

LOOKED_AT = 4096
"""Groups of a place that are looked at for a request."""
PUT_OFF = 4096
"""Values for which there was no room that are kept for the next request."""


class Holder(Protocol):
    """A query's run, as far as its partial matches are looked at."""

    @property
    def compiled(self) -> CompiledQuery: ...

    def arrived(
        self, place: int, registers: Sequence[int], since: int, most: int
    ) -> tuple[int, list[tuple[object, ...]]]: ...


@dataclass(slots=True)
class _Source:
    """A place whose partial matches hold a key, in some registers."""

    query: Holder
    place: int
    registers: tuple[int, ...]
    seen: int = 0
    """How many groups the place had had when it was looked at last."""


@dataclass(slots=True)
class Ahead:
    """The keys of one join that partial matches came to hold since it was asked last."""

    sources: list[_Source] = field(default_factory=list)
    _put_off: dict[KbKey, None] = field(default_factory=dict)

    def __call__(self) -> Iterator[KbKey]:
        """Each once, the newest first; those that nobody takes are kept for the next call."""
        known = self._put_off
        for source in self.sources:
            source.seen, found = source.query.arrived(
                source.place, source.registers, source.seen, LOOKED_AT
            )
            for values in reversed(found):
                key = tuple([v for v in values if isinstance(v, ox.NamedNode | ox.Literal)])
                if len(key) == len(values):
                    known[key] = None
        while len(known) > PUT_OFF:
            del known[next(iter(known))]
        while known:
            yield known.popitem()[0]


def add_sources(queries: Sequence[Holder], joins: Callable[[int], Sequence[BindJoin]]) -> None:
    """Let the joins of each task also request keys that partial matches hold."""
    for query in queries:
        for place, registers, join in _held(query.compiled, joins):
            if not isinstance(join.ahead, Ahead):
                join.ahead = Ahead()
            join.ahead.sources.append(_Source(query, place, registers))


def _held(
    compiled: CompiledQuery, joins: Callable[[int], Sequence[BindJoin]]
) -> Iterator[tuple[int, tuple[int, ...], BindJoin]]:
    """(place, registers, join): who waits there holds a key of the join in the registers."""
    for number, place in enumerate(compiled.automaton.places):
        for edge, keys in zip(place.edges, place.keys, strict=True):
            atom = compiled.automaton.atoms[edge.atom]
            if atom.kind != "single":
                continue
            held = {name: register for register, name in keys if register in place.live}
            gpm = compiled.plan.occurrences[atom.occurrences[0]].gpm
            for join in joins(compiled.tasks[gpm]):
                if held.keys() >= set(join.names):
                    yield number, tuple([held[name] for name in join.names]), join
