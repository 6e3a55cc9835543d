"""Prefetch: requests of a remote KB also ask for values that partial matches hold.

Consider a step whose pattern is joined by key to a remote graph and shares the key's variables
with earlier steps. An event can take the step only with values that a partial match holds in its
registers. These values are added to the next request that is sent anyway (`spaseq.kb.relation`).
The number of requests does not grow, and events with the same values find the answers in the cache.

Invariant: prefetching does not change matches; a value that is not prefetched is requested when an
event needs it. Cost of a request: one step per group that is new since the last request, for at
most `PREFETCH_MAX_GROUPS` groups of a place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from spaseq.engine.compiled import CompiledQuery
from spaseq.gpm.bind_join import BindJoin
from spaseq.gpm.named_graphs import KbKey
from spaseq.rdf.event import Term, nodes_of

PREFETCH_MAX_GROUPS = 4096
"""The greatest number of groups of a place that one request reads, newest first."""
DEFERRED_MAX_KEYS = 4096
"""The greatest number of keys that are retained for the next request."""


class Holder(Protocol):
    """The part of `QueryRun` that prefetching reads."""

    @property
    def compiled(self) -> CompiledQuery: ...

    def arrived(
        self, place: int, registers: Sequence[int], since: int, most: int
    ) -> tuple[int, list[tuple[object, ...]]]: ...


@dataclass(slots=True)
class _Source:
    """A place whose partial matches hold a key in some registers."""

    query: Holder
    place: int
    registers: tuple[int, ...]
    seen: int = 0
    """The number of groups that the place had at the last request."""


@dataclass(slots=True)
class Ahead:
    """The keys of one join that partial matches hold since its last request."""

    sources: list[_Source] = field(default_factory=list)
    _deferred: dict[KbKey, None] = field(default_factory=dict)

    def __call__(self) -> Iterator[KbKey]:
        """Yield each key once, newest first; keys that are not consumed wait for the next call."""
        known = self._deferred
        for source in self.sources:
            source.seen, found = source.query.arrived(
                source.place, source.registers, source.seen, PREFETCH_MAX_GROUPS
            )
            for values in reversed(found):
                key = tuple([v for v in values if isinstance(v, Term) and not any(nodes_of(v))])
                if len(key) == len(values):
                    known[key] = None
        while len(known) > DEFERRED_MAX_KEYS:
            del known[next(iter(known))]
        while known:
            yield known.popitem()[0]


def add_sources(queries: Iterable[Holder], joins: Callable[[int], Sequence[BindJoin]]) -> None:
    """Let the joins of each task also request keys that partial matches hold."""
    for query in queries:
        for place, registers, join in _held(query.compiled, joins):
            if not isinstance(join.ahead, Ahead):
                join.ahead = Ahead()
            join.ahead.sources.append(_Source(query, place, registers))


def _held(
    compiled: CompiledQuery, joins: Callable[[int], Sequence[BindJoin]]
) -> Iterator[tuple[int, tuple[int, ...], BindJoin]]:
    """(place, registers, join): groups of the place hold a key of the join in the registers."""
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
