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
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from spaseq.engine.program import Program
from spaseq.engine.run import Run
from spaseq.kb.snapshot import Kb
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
    return part_of(tuple(str(bound[name]) for name in variables), parts)


class Sorter:
    """Says which parts an event belongs to; `run` is only asked for its matchers."""

    def __init__(self, program: Program, kb: Kb, variables: Sequence[str], parts: int):
        plan = program.queries[0].plan
        self.run: Run = program.start(kb)
        self._parts = parts
        self._all = needs_every_event(plan)
        matchers = self.run.rows.matchers
        tasks = program.queries[0].tasks
        self._tasks: Mapping[str, list[tuple[int, tuple[int, ...]]]] = {
            iri: list(
                dict.fromkeys(
                    (
                        tasks[number],
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
        self._rows = matchers.rows

    def parts(self, event: Event) -> Iterable[int]:
        """The parts of an event, `EVERYWHERE` alone for all of them."""
        found: set[int] = set()
        for task, columns in self._tasks[event.stream]:
            unfiltered, filtered = self._rows(event, task)
            for row in unfiltered if self._all else filtered:
                key = self._key(row, columns)
                if key is None:
                    return (EVERYWHERE,)
                found.add(part_of(key, self._parts))
        return found

    def accepts(self, event: Event) -> bool:
        """Whether some graph pattern has a solution over the event that its filters allow."""
        return any(self._rows(event, task)[1] for task, _ in self._tasks[event.stream])

    def _key(self, row: Sequence[Term | None], columns: tuple[int, ...]) -> tuple[str, ...] | None:
        key = []
        for column in columns:
            term = row[column] if column >= 0 else None
            if term is None:
                return None
            key.append(str(term))
        return tuple(key)
