"""An event → the parts of a divided stream it belongs to.

An event belongs to the part of every key that some graph pattern reading its stream has a
solution for, top-level filters left out (docs/language.md, section 4, "Partition"); to all
parts where a pattern has a solution that leaves the key open, as a negated one may; and to
none where no pattern has any. Where no event can matter but by being accepted, solutions
that fail a pattern's own filters do not count.

Invariant: the part of a key is a function of the key's terms and of the number of parts, the
same in every process. Cost: each distinct pattern is matched once, as in a run.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

import pyoxigraph as ox

from spaseq.engine.run import Run
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._relevance import Relevance
from spaseq.rdf.event import Event, Term
from spaseq.results import Match
from spaseq.spark.distribution import needs_every_event

EVERYWHERE = -1
"""The part of an event that belongs to all of them."""


@lru_cache(maxsize=1 << 16)
def part_of(key: tuple[str, ...], parts: int) -> int:
    """The part a key belongs to; terms as N-Triples."""
    return zlib.crc32("\n".join(key).encode()) % parts


def part_of_match(match: Match, variables: Sequence[str], parts: int) -> int:
    """The part a match belongs to: every one of its events has the match's key."""
    bound = match.events[0].bindings
    return part_of(tuple(key_text(bound[name]) for name in variables), parts)


def key_text(term: Term) -> str:
    """A term of a key: blank nodes are all one, for their labels differ from task to task."""
    return "_:" if isinstance(term, ox.BlankNode) else str(term)


class Sorter:
    """Says which parts events belong to, and which of them can matter at all."""

    def __init__(self, run: Run, variables: Sequence[str], parts: int):
        """`run` is a fresh one, and no other's: it is given no events."""
        program = run.program
        plan = program.queries[0].plan
        self._run = run
        self._parts = parts
        self._all = needs_every_event(plan)
        self._matchers = self._run.rows.matchers
        self._tasks = {
            iri: list(
                dict.fromkeys(
                    (
                        program.queries[0].tasks[number],
                        tuple(
                            gpm.variables.index(name) if name in gpm.variables else -1
                            for name in variables
                        ),
                    )
                    for number, gpm in enumerate(plan.gpms)
                    if iri in gpm.streams
                )
            )
            for iri in plan.streams
        }
        self._native = [
            None if pattern.native is None else self._matchers.native(task)
            for task, pattern in enumerate(program.tasks)
        ]
        self._serial = 0
        self._texts: dict[int, str] = {}
        """The terms of the batch at hand by their numbers."""

    @property
    def relevance(self) -> Relevance:
        """What readers of the events may leave out."""
        return self._run.relevance

    def parts(self, event: Event) -> Collection[int]:
        """The parts of an event, `EVERYWHERE` alone for all of them."""
        found: set[int] = set()
        for task, columns in self._tasks[event.stream]:
            for key in self._keys(event, task, columns):
                if key is None:
                    return (EVERYWHERE,)
                found.add(part_of(key, self._parts))
        return found

    def accepts(self, event: Event) -> bool:
        """Whether some graph pattern has a solution over the event that may count."""
        return any(
            True for task, _ in self._tasks[event.stream] for _ in self._keys(event, task, ())
        )

    def _keys(
        self, event: Event, task: int, columns: Sequence[int]
    ) -> Iterator[tuple[str, ...] | None]:
        """The key of each solution of a pattern; None where it leaves the key open."""
        native = self._native[task]
        if native is None:
            for row in self._matchers.rows(event, task)[0 if self._all else 1]:
                terms = [row[column] if column >= 0 else None for column in columns]
                bound = tuple(key_text(term) for term in terms if term is not None)
                yield bound if len(bound) == len(terms) else None
            return
        batch, index = self._matchers.encoded(event)
        if batch.serial != self._serial:
            self._serial = batch.serial
            self._texts.clear()
        self._matchers.graph.fill(batch, index)
        for place in range(native.match(batch, index)):
            if self._all or native.passed_filters(place):
                numbers = native.row(place)
                yield self._key(batch, [numbers[c] if c >= 0 else 0 for c in columns])

    def _key(self, batch: EventBatch, numbers: Sequence[int]) -> tuple[str, ...] | None:
        if 0 in numbers:
            return None
        texts = self._texts
        for number in numbers:
            if number not in texts:
                texts[number] = key_text(batch.term(number))
        return tuple([texts[number] for number in numbers])
