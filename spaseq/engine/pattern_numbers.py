"""The numbers that the graph patterns of new queries have in a run."""

from __future__ import annotations

from spaseq.engine.compiled import CompiledQueries, CompiledQuery
from spaseq.engine.evaluation import Evaluation
from spaseq.gpm.pattern import Pattern, canonical


class PatternNumbers:
    """Numbers the patterns of new queries; equal patterns share a number.

    Args:
        run: The run.
        unused: The numbers of its patterns that no query needs, the least one last. Those that new
            queries get are removed.
    """

    def __init__(self, run: Evaluation, unused: dict[int, None]):
        self._run = run
        self.unused = unused
        self.new: dict[int, Pattern] = {}
        """The patterns of new queries that the run does not have, by number."""
        self._new_tasks: dict[Pattern, int] = {}
        """The numbers of those of GPMs, by their canonical forms."""
        self._total = len(run.program.patterns)

    def numbered(
        self, compiled: CompiledQuery, program: CompiledQueries, derived: bool
    ) -> CompiledQuery:
        """A query of a program with the numbers that its patterns have in the run.

        `derived`: it reads registered streams.
        """
        tasks = len(program.tasks)
        numbers = {
            number: self._task(program.tasks[number], new=derived)
            if number < tasks
            else self._next(program.asked[number - tasks])
            for number in dict.fromkeys((*compiled.tasks, *compiled.asked_patterns))
        }
        return compiled.renumbered(numbers.__getitem__)

    def _task(self, pattern: Pattern, *, new: bool) -> int:
        """The number of the pattern of a GPM; an equal one of the run is shared.

        Patterns of queries that read registered streams are matched differently, so they are always
        `new`.
        """
        key = canonical(pattern)
        known = None if new else self._run.shared_patterns().find(key)
        if known is None or known in self.new:  # the number belongs to a new pattern
            known = self._new_tasks.get(key)
        if known is None:
            known = self._new_tasks[key] = self._next(pattern)
        self.unused.pop(known, None)
        return known

    def _next(self, pattern: Pattern) -> int:
        """A number for a new pattern."""
        if self.unused:
            number, _ = self.unused.popitem()
        else:
            number, self._total = self._total, self._total + 1
        self.new[number] = pattern
        return number
