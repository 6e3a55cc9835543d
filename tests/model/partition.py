"""`PARTITION BY`: which rows may be witnesses, and which partitions an event belongs to.

LANGUAGE section 4 (docs/language.md): a mapping that leaves a partition variable unbound is
not accepted. An event belongs to partition k iff some GPM that reads its stream has a solution with
that key, ignoring the GPM's top-level filters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spaseq.nfa.match_path import Key, Row
from spaseq.plan.logical import QueryPlan


class Partitioning:
    """The columns of each GPM's rows that hold the partition variables."""

    def __init__(self, plan: QueryPlan):
        self._columns = [
            tuple(gpm.variables.index(v) if v in gpm.variables else -1 for v in plan.partition)
            for gpm in plan.gpms
        ]

    def positive(self, gpm: int, row: Row) -> bool:
        """Whether a row may be a witness: it binds every partition variable."""
        columns = self._columns[gpm]
        return not columns or all(c >= 0 and row[c] is not None for c in columns)

    def keys(self, unfiltered: Mapping[int, Sequence[Row]]) -> set[Key]:
        """The partitions of an event, given the rows of its GPMs before any filter."""
        found: set[Key] = set()
        for gpm, rows in unfiltered.items():
            columns = self._columns[gpm]
            if -1 not in columns:
                found.update(tuple(row[column] for column in columns) for row in rows)
        return {key for key in found if None not in key}
