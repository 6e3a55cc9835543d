"""Groups of results: `GROUP BY … OVER … LET … HAVING` over the results that `EMIT` leaves.

A sliding group (`OVER d`) holds the results of one key whose end is less than d before the present
one, and has a solution at every instant at which the key has results. A tumbling group has one
solution, at the end of its window.

The core keeps the groups (`spaseq.engine.native._groups`), and this class forms their
solutions. If a sum meets a number that the core cannot hold, Python keeps the groups from then on:
every aggregate adds a result when it comes and removes it when it expires, oldest first
(`spaseq.engine.result_aggregates`), so the cost of a result does not depend on the length of
`OVER`. Results expire in the order in which they arrived, so one queue serves all groups. A group
without results is forgotten. State: the results inside `OVER`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import partial
from itertools import chain
from typing import Generic, TypeAlias, TypeVar, cast

from spaseq.engine.native._groups import NativeGroups
from spaseq.engine.native_groups import AggregateValues, Measured
from spaseq.engine.result_aggregates import Accumulator, Total, accumulator
from spaseq.engine.result_errors import ResultErrors, see
from spaseq.gpm.expression_errors import cause_of
from spaseq.gpm.python.aggregates import REFUSING, refuses
from spaseq.gpm.python.entry import Evaluate, Scope, Truth, compile_expression, compile_truth
from spaseq.parser import ast
from spaseq.plan.logical import Output
from spaseq.plan.scope import expression_variables
from spaseq.rdf.error_count import ErrorCount
from spaseq.rdf.event import Term, Timestamp
from spaseq.records import dataclass

R = TypeVar("R")
Key: TypeAlias = tuple[Term | None, ...]
_Read: TypeAlias = tuple[Key, int, Timestamp, Sequence[Term | None], "_Values"]
"""For a group: the key, the number of results, the least start, the values of aggregates, and those
of an argument."""
_Values: TypeAlias = Callable[[int], Iterable[Term | None]]
"""The number of an argument → its values in a group, oldest first."""
_MAY_ERR = (*REFUSING, "MIN", "MAX")
"""The aggregates that have no value if one of the values is missing or refused."""
NEVER = 2**63 - 1
"""Later than any time, in microseconds."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """What a group holds of one result."""

    key: Key
    arguments: tuple[Term | None, ...]
    """The values of `Grouping.arguments`; None: unbound, or an error."""
    start: Timestamp
    end: int


@dataclass(frozen=True, slots=True)
class GroupSolution(Generic[R]):
    """The solution of one group at one instant."""

    solution: tuple[Term | None, ...]
    """The columns of a SELECT, or the variables of a template."""
    start: Timestamp
    count: int
    newest: R
    per: Key = ()
    """The values of the variables of `PER`."""


@dataclass(slots=True)
class _Group(Generic[R]):
    """The results of one key, as far as `OVER` reaches or in the present window."""

    accumulators: list[Accumulator]
    newest: R
    number: int = 0
    """The number of the newest result in the order of results."""
    count: int = 0
    starts: deque[tuple[Timestamp, int]] = field(default_factory=deque)
    """Non-decreasing starts, each with the number of its result: the first is the least."""
    added: int = 0
    removed: int = 0


def _needed(output: Output) -> set[str]:
    """The names that the solutions of groups show or test, and those that they are computed from.

    Other values of LET are not computed, so that they err nowhere, as in the core.
    """
    grouping = output.grouping
    assert grouping is not None
    found = {name for name, _ in output.template_registers} | {*output.per}
    found |= {column.name for column in output.columns}
    for condition in grouping.having:
        found |= expression_variables(condition)
    for item in reversed((*grouping.lets, *output.columns)):
        if item.name in found:
            found |= expression_variables(item.value.expression)
    return found


class ResultGroups(Generic[R]):
    """The groups of one query.

    Args:
        output: The output of the plan, with a `grouping`.
        scope: The scope of the expressions over groups.
        native: The groups in the core; Python takes over at a result that it refuses. None: Python
            keeps the groups from the beginning.
        errors: Counts the expressions over groups that err.
    """

    def __init__(
        self, output: Output, scope: Scope, native: NativeGroups | None, errors: ResultErrors
    ):
        assert output.grouping is not None
        self._grouping = grouping = output.grouping
        self._scope = scope
        self.native = native
        self.shown: Callable[[int], R | None] = lambda number: None
        """The newest result of a tumbling group in the core; None if Python added it."""
        self._newest: dict[Key, R] = {}
        """The newest results of tumbling groups in the core that Python added."""
        self._values = AggregateValues(Measured(grouping.aggregates, len(grouping.arguments)))
        self._held: deque[Grouped] = deque()
        self._groups: dict[Key, _Group[R]] = {}
        self._index: dict[str, int] = {}
        names = [key.name for key in grouping.keys]
        names += [aggregate.name for aggregate in grouping.aggregates]
        self._cells = [self._index.setdefault(name, len(self._index)) for name in names]
        needed = _needed(output)
        self._aggregates = {
            each.name: each for each in grouping.aggregates if each.function in _MAY_ERR
        }
        self._computed = [
            (
                *self._next(item.name, item.value.expression),
                # The core decodes a copy of a value when it is read, if ever.
                count if self._may_err(item.value.expression) else None,
            )
            for item, count in zip((*grouping.lets, *output.columns), errors.groups, strict=True)
            if item.name in needed
            and item.value.expression != ast.Var(item.name)  # a key, or bound by LET
        ]
        self._blank: list[Term | None] = [None] * len(self._index)
        tests = [compile_truth(each, self._index) for each in grouping.having]
        self._having: list[tuple[Truth, ErrorCount]] = list(zip(tests, errors.having, strict=True))
        names = [name for name, _ in output.template_registers]
        shown = names if output.form == "construct" else [c.name for c in output.columns]
        self._shown = [self._index[name] for name in shown]
        self._per = [self._index[name] for name in output.per]
        self._number = 0
        self.due = NEVER
        """The end of the current window in microseconds, if it has results; otherwise `NEVER`."""

    def _next(self, name: str, expression: ast.Expr) -> tuple[int, Evaluate]:
        """The index of a value, and its expression over the earlier values."""
        evaluate = compile_expression(expression, dict(self._index))
        return self._index.setdefault(name, len(self._index)), evaluate

    def _may_err(self, expression: ast.Expr) -> bool:
        """Whether an expression can have no value although the values that it copies have one."""
        return not isinstance(expression, ast.Var) or expression.name in self._aggregates

    @property
    def tumbling(self) -> bool:
        return self._grouping.tumbling

    @property
    def count(self) -> int:
        """The number of groups with results."""
        return len(self._groups) if self.native is None else self.native.count

    @property
    def held_count(self) -> int:
        """The number of results in the groups."""
        return len(self._held) if self.native is None else self.native.held

    @property
    def held(self) -> list[Grouped]:
        """The results that have not expired, or those of the current window; oldest first."""
        if self.native is None:
            return list(self._held)
        return [Grouped(*result) for result in self.native.results()]

    # ------------------------------------------------------------------ results

    def add(
        self, results: Sequence[tuple[Grouped, R]], end: int, early: bool
    ) -> list[GroupSolution[R]]:
        """Add the results of one instant, which are in order.

        Args:
            results: The results, each with the data that its group's solution shows of the newest
            result.
            end: The time of the instant, in microseconds.
            early: Whether they come out before the events of that time.

        Returns:
            The solutions of sliding groups at this instant, in order.
        """
        if self.tumbling:
            self.begin(end, early)
        else:
            self.expire(end)
        for result, newest in results:
            self._insert(result, newest)
        if self.tumbling:
            return []
        shown = {result.key: newest for result, newest in results}
        keys = dict.fromkeys(result.key for result, _ in reversed(results))
        return list(self._solutions((self._read(key), shown[key]) for key in reversed(keys)))

    def begin(self, end: int, early: bool = False) -> None:
        """Results have come at a time, in microseconds: the window that holds them is `due`."""
        size = self._grouping.size
        due = min(((end - early) // size + 1) * size, NEVER - 1)
        assert self.due in (due, NEVER), "a window ends before later results come"
        self.due = due

    def leave_core(self, without: int = 0) -> None:
        """Let Python keep the groups, without the newest results."""
        assert self.native is not None
        held = self.held
        keys = dict.fromkeys(result.key for result in held)
        newest = dict(zip(keys, self.newest, strict=True)) if self.tumbling else {}
        self.native = None
        for earlier in held[: len(held) - without]:
            # The solutions of sliding groups show later results.
            self._insert(earlier, cast(R, newest.get(earlier.key)))

    def _insert(self, result: Grouped, newest: R) -> None:
        if self.native is not None:
            if self.native.add(result.key, result.arguments, result.start, result.end):
                if self.tumbling:
                    self._newest[result.key] = newest
                return
            self.leave_core()
        self._held.append(result)
        group = self._groups.get(result.key)
        if group is None:
            made = [accumulator(a) for a in self._grouping.aggregates]
            group = self._groups[result.key] = _Group(made, newest)
        self._number += 1
        group.newest, group.number = newest, self._number
        group.count += 1
        for aggregate, state in zip(self._grouping.aggregates, group.accumulators, strict=True):
            state.add(None if aggregate.argument is None else result.arguments[aggregate.argument])
        starts = group.starts
        while starts and starts[-1][0].micros > result.start.micros:
            starts.pop()
        starts.append((result.start, group.added))
        group.added += 1

    def expire(self, now: int) -> None:
        """Remove the results that have left sliding groups by a time in microseconds."""
        if self.tumbling:
            return
        if self.native is not None:
            self.native.expire(now)
        while self._held and self._held[0].end <= now - self._grouping.size:
            self._remove(self._held.popleft())

    def _remove(self, result: Grouped) -> None:
        group = self._groups[result.key]
        group.count -= 1
        if group.count == 0:
            del self._groups[result.key]
            return
        for aggregate, state in zip(self._grouping.aggregates, group.accumulators, strict=True):
            state.remove(
                None if aggregate.argument is None else result.arguments[aggregate.argument]
            )
        if group.starts[0][1] == group.removed:
            group.starts.popleft()
        group.removed += 1

    # ------------------------------------------------------------------ solutions

    def close(self) -> list[GroupSolution[R]]:
        """End the current window of tumbling groups; returns their solutions in order."""
        if self.native is not None:
            numbers = list(self.native.numbers_in_order(True))
            solutions = list(
                self._solutions((self._read_native(n), self.newest_of(n)) for n in numbers)
            )
        else:
            groups = sorted(self._groups.items(), key=lambda item: item[1].number)
            found = ((self._read(key), group.newest) for key, group in groups)
            solutions = list(self._solutions(found))
        self.clear()
        return solutions

    def clear(self) -> None:
        """Forget the results of the current window, which has ended."""
        if self.native is not None:
            self.native.clear()
        self._newest.clear()
        self._groups.clear()
        self._held.clear()
        self.due = NEVER

    def _solutions(self, groups: Iterable[tuple[_Read, R]]) -> Iterator[GroupSolution[R]]:
        """The solutions of groups for which every HAVING is true; each with its newest result."""
        for (key, count, start, values, arguments), newest in groups:
            solved = self._solved(key, values, arguments)
            if solved is not None:
                yield GroupSolution(solved[0], start, count, newest, solved[1])

    def solved(
        self,
        number: int,
        key: Key,
        count: int,
        totals: Sequence[Total],
        values: Sequence[Term | None],
    ) -> tuple[Key, Key] | None:
        """The solution of a group in the core and its values of `PER`; None if HAVING is not true.

        Args:
            number: The group.
            key: Its key.
            count: The number of its results.
            totals: Its totals, as `AggregateValues` reads them.
            values: Its values of MIN, MAX and SAMPLE.
        """
        assert self.native is not None
        terms = partial(self.native.values_in_order, number)
        return self._solved(key, self._values(count, totals, values, terms), terms)

    def see_aggregates(self, number: int) -> None:
        """Count the aggregates of a group in the core that have no value, where a match holds them.

        It is called for each solution with one, and for the first one without.
        """
        key, _, _, values, arguments = self._read_native(number)
        env = [*self._blank]
        for index, value in zip(self._cells, chain(key, values), strict=True):
            env[index] = value
        for index, evaluate, count in self._computed:
            env[index] = evaluate(env, self._scope)
            if count is not None:
                see(count, env[index], partial(self._row, env, arguments))

    def _solved(
        self, key: Key, values: Sequence[Term | None], arguments: _Values
    ) -> tuple[Key, Key] | None:
        """As `solved`, from the values of the aggregates."""
        env, scope = [*self._blank], self._scope
        for index, value in zip(self._cells, chain(key, values), strict=True):
            env[index] = value
        # Errors count unless HAVING is false, since the core tests HAVING first.
        seen: list[tuple[ErrorCount, object]] = []
        for index, evaluate, count in self._computed:
            value = env[index] = evaluate(env, scope)
            if count is not None:
                seen.append((count, value))
        holds = True
        for test, count in self._having:
            truth = test(env, scope)
            if truth is False:
                return None
            holds = holds and truth is True
            seen.append((count, truth))
        for count, found in seen:
            see(count, found, partial(self._row, env, arguments))
        if not holds:
            return None
        return tuple([env[index] for index in self._shown]), tuple(
            [env[index] for index in self._per]
        )

    def _row(self, env: Sequence[Term | None], arguments: _Values) -> dict[str, Term | None]:
        """The values of a group by their names, for the message about an error."""
        row = {name: env[index] for name, index in self._index.items()}
        for name, each in self._aggregates.items():
            if row[name] is None and each.argument is not None:
                values = [term for term in arguments(each.argument) if term is not None]
                row[cause_of(name)] = next((t for t in values if refuses(each.function, t)), None)
        return row

    def _read(self, key: Key) -> _Read:
        """A group by its key."""
        if self.native is not None:
            return self._read_native(self.native.number(key))
        group = self._groups[key]
        values = [state.value() for state in group.accumulators]
        return key, group.count, group.starts[0][0], values, partial(self._arguments, key)

    def _arguments(self, key: Key, argument: int) -> Iterator[Term | None]:
        """The values of an argument in a group that Python keeps."""
        return (result.arguments[argument] for result in self._held if result.key == key)

    def _read_native(self, number: int) -> _Read:
        assert self.native is not None
        key, count, start, totals, best = self.native.group(number)
        terms = partial(self.native.values_in_order, number)
        return key, count, start, self._values(count, totals, best, terms), terms

    # ------------------------------------------------------------------ state

    @property
    def newest(self) -> list[R]:
        """The newest result of each tumbling group, in the order in which the groups began."""
        if self.native is None:
            return [group.newest for group in self._groups.values()]
        return [self.newest_of(number) for number in self.native.numbers_in_order(False)]

    def newest_of(self, number: int) -> R:
        """The newest result of a tumbling group in the core."""
        assert self.native is not None
        shown = self.shown(number)
        return self._newest[self.native.group(number)[0]] if shown is None else shown

    def restore(self, results: Sequence[Grouped], newest: Sequence[R], due: int) -> None:
        """Restore results, oldest first, and for tumbling groups the former `newest`.

        Raises:
            ValueError: if the newest results are not those of the groups.
        """
        if self.tumbling:
            keys = list(dict.fromkeys(result.key for result in results))
            shown = dict(zip(keys, newest, strict=True))
            for result in results:
                self._insert(result, shown[result.key])
        else:
            for result in results:
                self._insert(result, newest[0])
        self.due = due
