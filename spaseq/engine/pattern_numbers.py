"""The numbers that the graph patterns of new queries have in a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spaseq.engine.compiled import CompiledQuery
from spaseq.engine.evaluation import Evaluation
from spaseq.gpm.pattern import Pattern, canonical


class PatternNumbers:
    """Numbers the patterns of new queries; equal patterns share a number.

    Args:
        run: The run.
        total: The number of its patterns.
        unused: The numbers of those that no query needs, in descending order.
    """

    def __init__(self, run: Evaluation, total: int, unused: Iterable[int]):
        self._run = run
        self._unused = list(unused)
        self._needed: set[int] = set()
        """The numbers of patterns that new queries share."""
        self.new: dict[int, Pattern] = {}
        """The patterns of new queries that the run does not have, by number."""
        self._new_tasks: dict[Pattern, int] = {}
        """The numbers of those of GPMs, by their canonical forms."""
        self._total = total

    def numbered(
        self, compiled: CompiledQuery, patterns: Sequence[Pattern], derived: bool
    ) -> CompiledQuery:
        """A query with the numbers that its patterns have in the run.

        Args:
            compiled: The query.
            patterns: What the numbers of its patterns refer to.
            derived: Whether it reads registered streams.
        """
        numbers = {n: self._task(patterns[n], new=derived) for n in dict.fromkeys(compiled.tasks)}
        for number in compiled.asked_patterns:
            if number not in numbers:
                numbers[number] = self._next(patterns[number])
        return compiled.renumbered(numbers.__getitem__)

    def _task(self, pattern: Pattern, *, new: bool) -> int:
        """The number of the pattern of a GPM; an equal one of the run is shared.

        Patterns of queries that read registered streams are matched differently, so they are always
        `new`.
        """
        key = canonical(pattern)
        known = None if new else self._run.listed.find(key)
        if known is None or known in self.new:  # the number belongs to a new pattern
            known = self._new_tasks.get(key)
        if known is None:
            known = self._new_tasks[key] = self._next(pattern)
        self._needed.add(known)
        return known

    def _next(self, pattern: Pattern) -> int:
        """A number for a new pattern."""
        while self._unused and self._unused[-1] in self._needed:
            self._unused.pop()
        if self._unused:
            number = self._unused.pop()
        else:
            number, self._total = self._total, self._total + 1
        self.new[number] = pattern
        return number
