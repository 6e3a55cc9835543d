"""How many queries of a run use each graph pattern, and each variable.

A run counts them when they are first needed, which takes a step for each query. From then on a
change of one query takes only the steps of that query.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable
from operator import neg

from spaseq.engine.compiled import CompiledQuery
from spaseq.engine.parameters import variables_of
from spaseq.parser import ast


class PatternUses:
    """The number of queries that use each of `total` patterns."""

    def __init__(self, queries: Iterable[CompiledQuery], total: int):
        self._counts = Counter(n for query in queries for n in _patterns_of(query))
        self.total = total
        """The number of patterns."""
        self.unused = [n for n in range(self.total - 1, -1, -1) if not self._counts[n]]
        """The numbers of the patterns that no query uses, in descending order."""

    def add(self, query: CompiledQuery) -> None:
        """Count a new query."""
        for number in _patterns_of(query):
            self._counts[number] += 1
            if self._counts[number] == 1:
                del self.unused[bisect_left(self.unused, -number, key=neg)]

    def enter(self, numbers: Iterable[int]) -> None:
        """Have patterns of some numbers, which no query uses yet."""
        for number in sorted(numbers):
            if number == self.total:
                self.unused.insert(0, number)
                self.total += 1

    def remove(self, query: CompiledQuery) -> None:
        """Count a query no longer."""
        for number in _patterns_of(query):
            self._counts[number] -= 1
            if not self._counts[number]:
                insort(self.unused, number, key=neg)


def _patterns_of(query: CompiledQuery) -> set[int]:
    return {*query.tasks, *query.asked_patterns}


class VariableUses:
    """The number of queries whose texts use each variable."""

    def __init__(self, sources: Iterable[ast.Query]):
        self._counts: Counter[str] = Counter()
        for source in sources:
            self.add(source)

    def __contains__(self, name: object) -> bool:
        return self._counts[str(name)] > 0

    def add(self, source: ast.Query) -> None:
        """Count a new query."""
        self._counts.update(variables_of([source]))

    def remove(self, source: ast.Query) -> None:
        """Count a query no longer."""
        self._counts.subtract(variables_of([source]))
