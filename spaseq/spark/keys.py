"""An event → the parts of the keys that it belongs to.

An event belongs to the part of a key if a graph pattern over its stream has a solution with that
key, before top-level filters (docs/language.md, section 4, "Partition"). If a solution leaves the
key unbound, as a negated pattern's may, the event belongs to all parts. If no pattern has a
solution, the event belongs to no part. If only accepted events can change a result, solutions that
fail a pattern's own filters do not count.

Invariant: the part of a key is the same in every process (spaseq/spark/native/_arrow.pyx). Cost:
each distinct pattern is matched once per event, as in a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from spaseq.plan.key_division import needs_every_event
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.native._terms import EventBatch, Relevance
from spaseq.results import Match
from spaseq.runs import Run
from spaseq.spark.chunks import Numbers
from spaseq.spark.native._arrow import PartFinder, part_of

EVERYWHERE = -1
"""Stands for all parts."""


def part_of_match(match: Match, variables: Sequence[str], parts: int) -> int:
    """The part of a match's key, which all of its events have."""
    bound = match.events[0].bindings
    return part_of([bound[name] for name in variables], parts)


class KeyPartitioner:
    """Determines the parts that the events of a batch belong to.

    Args:
        run: a new run, for the use of this object alone. It receives no events.
        variables: the variables of the key.
        parts: the number of parts.
    """

    def __init__(self, run: Run, variables: Sequence[str], parts: int):
        program = run.program
        plan = program.queries[0].plan
        self._run = run
        self._parts = parts
        self._all = needs_every_event(plan)
        self._finders: dict[str, PartFinder] = {}
        self._in_python: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
        """By stream: the patterns that Python evaluates, each with the columns of the key."""
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
            self._in_python[iri] = [pair for pair in tasks if program.tasks[pair[0]].native is None]

    @property
    def relevance(self) -> Relevance:
        """The predicates that the queries use; readers drop other triples."""
        return self._run.relevance

    def pairs(self, batch: EventBatch) -> Numbers:
        """Two columns, in the order of the events: the index of an event, and one of its parts.

        An event of all parts has the single part `EVERYWHERE`. An event of no part has no row.
        """
        found = np.frombuffer(self._finders[batch.stream].find(batch), np.int64).reshape(-1, 2)
        if not self._in_python[batch.stream]:
            return found
        others = [
            (index, part)
            for index in range(len(batch))
            for part in self._parts_of(EncodedEvent(batch, index))
        ]
        if others:
            found = np.unique(np.concatenate([found, np.array(others, np.int64)]), axis=0)
            # An event with the part `EVERYWHERE` needs no other part.
            everywhere = found[found[:, 1] == EVERYWHERE, 0]
            found = found[(found[:, 1] == EVERYWHERE) | ~np.isin(found[:, 0], everywhere)]
        return found

    def _parts_of(self, event: EncodedEvent) -> Iterator[int]:
        """The parts of an event by the patterns that Python evaluates."""
        matchers = self._run.rows.matchers
        for task, columns in self._in_python[event.stream]:
            for row in matchers.rows(event, task)[0 if self._all else 1]:
                terms = [row[column] for column in columns if column >= 0]
                bound = [term for term in terms if term is not None]
                yield part_of(bound, self._parts) if len(bound) == len(columns) else EVERYWHERE
