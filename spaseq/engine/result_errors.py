"""The errors of the expressions of a result: SELECT, GROUP BY, LET, HAVING, CONSTRUCT.

Python evaluates these expressions, except for the keys and arguments of groups that the core reads
(`spaseq.engine.native._groups`), which count their own errors. A triple of the template errs
if its variables are bound and a term cannot be where it is, such as a string as a subject.

Cost: one comparison for each value; a row is kept for the first error only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from spaseq.parser import ast
from spaseq.plan.logical import Output
from spaseq.rdf.error_count import ErrorCount, Example
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class ResultPart:
    """An expression of the result, or a triple of the template."""

    clause: str
    """The clause that has it: `SELECT`, `GROUP BY`, `LET`, `HAVING` or `CONSTRUCT`."""
    node: ast.Expr | ast.Triple
    variable: str = ""
    """The variable that it binds."""


def result_parts(output: Output) -> list[ResultPart]:
    """The parts of a result, in the order in which `ResultErrors` counts them."""
    grouping = output.grouping
    columns = [ResultPart("SELECT", each.value.expression, each.name) for each in output.columns]
    template = [ResultPart("CONSTRUCT", triple) for triple in output.template]
    if grouping is None:
        return columns + template
    keys = [ResultPart("GROUP BY", each.value.expression, each.name) for each in grouping.keys]
    arguments = [ResultPart("SELECT", each.expression) for each in grouping.arguments]
    lets = [ResultPart("LET", each.value.expression, each.name) for each in grouping.lets]
    having = [ResultPart("HAVING", each) for each in grouping.having]
    return [*keys, *arguments, *lets, *columns, *having, *template]


class ResultErrors:
    """The counts of one query."""

    def __init__(self, output: Output):
        self._counts = [ErrorCount() for _ in result_parts(output)]
        grouping = output.grouping
        first = len(output.columns)
        if grouping is not None:
            first = len(grouping.keys) + len(grouping.arguments)
        groups = 0 if grouping is None else len(grouping.lets) + len(output.columns)
        tests = 0 if grouping is None else len(grouping.having)
        self.columns = self._counts[:first]
        """The columns, or the keys and the arguments of groups."""
        self.groups = self._counts[first : first + groups]
        """LET and the columns of groups."""
        self.having = self._counts[first + groups : first + groups + tests]
        self.template = self._counts[first + groups + tests :]

    def counts(self, native: Sequence[ErrorCount | None] = ()) -> Iterator[ErrorCount]:
        """The counts of all parts; `native` are those of the first parts in the core."""
        for number, count in enumerate(self._counts):
            more = native[number] if number < len(native) else None
            yield count if more is None else count + more

    def keep(self, native: Sequence[ErrorCount | None]) -> None:
        """Add the counts of a part of the core that is about to be replaced."""
        for own, more in zip(self._counts, native, strict=False):
            if more is not None:
                _add(own, more)

    def count_on(self, other: ResultErrors, native: Sequence[ErrorCount | None] = ()) -> None:
        """Add the counts of another run of the query, or of an earlier one."""
        if len(other._counts) != len(self._counts):
            return
        for own, more in zip(self._counts, other.counts(native), strict=True):
            _add(own, more)


def _add(own: ErrorCount, more: ErrorCount) -> None:
    total = own + more
    own.count, own.has_value, own.example = total.count, total.has_value, total.example


def see(count: ErrorCount, value: object, row: Callable[[], Example]) -> None:
    """Count a value, of which None is an error."""
    if value is None:
        count.see(None, row)
    elif not count.has_value:
        count.has_value = True
