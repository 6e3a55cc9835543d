"""An event → the parts of a divided stream it belongs to.

An event belongs to the part of every key that some graph pattern reading its stream has a
solution for, top-level filters left out (docs/language.md, section 4, "Partition"); to all
parts where a pattern has a solution that leaves the key open, as a negated one may; and to
none where no pattern has any. Where no event can matter but by being accepted, solutions
that fail a pattern's own filters do not count.

Invariant: the part of a key is the same in every process (spaseq/spark/_arrow.pyx). Cost:
each distinct pattern is matched once for each event, as in a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from spaseq.rdf._batch import EventBatch
from spaseq.rdf._relevance import Relevance
from spaseq.rdf.encoded import EncodedEvent
from spaseq.results import Match
from spaseq.runs import Run
from spaseq.spark._arrow import PartFinder, part_of
from spaseq.spark.chunks import Numbers
from spaseq.spark.distribution import needs_every_event

EVERYWHERE = -1
"""The part of an event that belongs to all of them."""


def part_of_match(match: Match, variables: Sequence[str], parts: int) -> int:
    """The part a match belongs to: every one of its events has the match's key."""
    bound = match.events[0].bindings
    return part_of([bound[name] for name in variables], parts)


class Sorter:
    """Says which parts events belong to, and which of them can matter at all."""

    def __init__(self, run: Run, variables: Sequence[str], parts: int):
        """`run` is a fresh one, and no other's: it is given no events."""
        program = run.program
        plan = program.queries[0].plan
        self._run = run
        self._parts = parts
        self._all = needs_every_event(plan)
        self._finders: dict[str, PartFinder] = {}
        self._slow: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
        """The patterns that Python evaluates, each with the columns of the key."""
        matchers = run.rows.matchers
        for iri in plan.streams:
            tasks = dict.fromkeys(
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
            native = [
                (matchers.native(task), columns)
                for task, columns in tasks
                if program.tasks[task].native is not None
            ]
            self._finders[iri] = PartFinder(matchers.graph, native, self._all, parts)
            self._slow[iri] = [pair for pair in tasks if program.tasks[pair[0]].native is None]

    @property
    def relevance(self) -> Relevance:
        """What readers of the events may leave out."""
        return self._run.relevance

    def pairs(self, batch: EventBatch) -> Numbers:
        """Two columns: an event, and a part it belongs to; in the order of the events.

        `EVERYWHERE` stands alone for all parts; an event of none can matter to nobody.
        """
        found = np.frombuffer(self._finders[batch.stream].find(batch), np.int64).reshape(-1, 2)
        if not self._slow[batch.stream]:
            return found
        others = [
            (index, part)
            for index in range(len(batch))
            for part in self._parts_of(EncodedEvent(batch, index))
        ]
        if others:
            found = np.unique(np.concatenate([found, np.array(others, np.int64)]), axis=0)
            # Of the pairs of an event, that of all parts comes first.
            everywhere = found[found[:, 1] == EVERYWHERE, 0]
            found = found[(found[:, 1] == EVERYWHERE) | ~np.isin(found[:, 0], everywhere)]
        return found

    def _parts_of(self, event: EncodedEvent) -> Iterator[int]:
        """The parts of an event that patterns find which Python evaluates."""
        matchers = self._run.rows.matchers
        for task, columns in self._slow[event.stream]:
            for row in matchers.rows(event, task)[0 if self._all else 1]:
                terms = [row[column] for column in columns if column >= 0]
                bound = [term for term in terms if term is not None]
                yield part_of(bound, self._parts) if len(bound) == len(columns) else EVERYWHERE
