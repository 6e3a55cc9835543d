"""Groups of results in the compiled core, and the results that the core itself adds to them.

The core (`spaseq.engine.native._groups`) keeps the groups of every query until a sum meets a
number that it cannot hold. It tests the conditions of HAVING that compare an aggregate with a
number, so that results whose group has no solution do not become Python objects.

If results are independent of each other, and keys and arguments are variables or have a native
form, the core also reads the results (`spaseq.engine.native._groups`). Otherwise the output
stage makes each result; `read_in_python` gives the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import isfinite

from spaseq.engine.compiled import CompiledQuery
from spaseq.engine.native._groups import GroupColumns, NativeGroups, ResultReader
from spaseq.engine.native._matches import MatchMaker
from spaseq.engine.native.query_run import NativeRun
from spaseq.engine.residual_filters import looks_at_graphs
from spaseq.engine.result_aggregates import Total, sum_of, texts_of
from spaseq.gpm.native.bytecode import ExpressionCode, NotNative, compile_code
from spaseq.gpm.program import constant
from spaseq.parser import ast
from spaseq.plan.logical import Condition, Grouping, Output, QueryPlan, ResultAggregate
from spaseq.rdf.event import Term
from spaseq.rdf.native._values import DOUBLE, FLOAT, INTEGER, decode, exact_of, integer
from spaseq.records import dataclass

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_SUMS = frozenset(("SUM", "AVG"))
_BESTS = frozenset(("MIN", "MAX"))


# ------------------------------------------------------------------ aggregates


@dataclass(frozen=True, slots=True)
class Measured:
    """The quantities that the core measures for the aggregates of a query, and their positions."""

    aggregates: Sequence[ResultAggregate]
    arguments: int

    @property
    def summed(self) -> list[bool]:
        """Per argument: whether there is a SUM or AVG of it."""
        asked = {each.argument for each in self.aggregates if each.function in _SUMS}
        return [argument in asked for argument in range(self.arguments)]

    @property
    def distincts(self) -> list[int]:
        """The arguments whose distinct values count."""
        return sorted({a.argument for a in self.aggregates if a.argument is not None and _heeds(a)})

    @property
    def bests(self) -> list[ResultAggregate]:
        """Every MIN and MAX."""
        return [each for each in self.aggregates if each.function in _BESTS]

    @property
    def samples(self) -> list[ResultAggregate]:
        return [each for each in self.aggregates if each.function == "SAMPLE"]

    def place(self, aggregate: ResultAggregate) -> int | None:
        """The index among the totals or among the values of MIN, MAX and SAMPLE; otherwise None."""
        if aggregate.function in _BESTS:
            return self.bests.index(aggregate)
        if aggregate.function == "SAMPLE":
            return len(self.bests) + self.samples.index(aggregate)
        if aggregate.argument is None or not _heeds(aggregate):
            return aggregate.argument
        return self.arguments + self.distincts.index(aggregate.argument)


def _heeds(aggregate: ResultAggregate) -> bool:
    """Whether the core counts distinct values for an aggregate."""
    return aggregate.distinct and aggregate.function in ("COUNT", "SUM", "AVG")


class AggregateValues:
    """(results, totals, values of MIN, MAX and SAMPLE) of a group → the values of aggregates."""

    def __init__(self, measured: Measured):
        self._aggregates = [(each, measured.place(each)) for each in measured.aggregates]

    def __call__(
        self,
        count: int,
        totals: Sequence[Total],
        values: Sequence[Term | None],
        terms: Callable[[int], Iterator[Term | None]] | None = None,
    ) -> list[Term | None]:
        """The values; `terms` gives the values of an argument, which GROUP_CONCAT needs."""
        found = list[Term | None]()
        for aggregate, place in self._aggregates:
            if aggregate.function == "GROUP_CONCAT":
                assert terms is not None
                assert aggregate.argument is not None
                found.append(texts_of(aggregate, terms(aggregate.argument)))
            elif place is None:
                found.append(_counted(count))
            elif aggregate.function in _SUMS:
                found.append(sum_of(totals[place], aggregate.function == "AVG"))
            elif aggregate.function == "COUNT":
                _, others, kinds, *_ = totals[place]
                found.append(_counted(others + sum(kinds)))
            else:
                found.append(values[place])
        return found


@lru_cache(maxsize=4096)
def _counted(number: int) -> Term:
    """The term of a count; most counts recur."""
    term: Term = integer(number).term
    return term


def native_groups(plan: QueryPlan) -> NativeGroups | None:
    """The groups of a query in the core; None without GROUP."""
    grouping = plan.output.grouping
    if grouping is None:
        return None
    measured = Measured(grouping.aggregates, len(grouping.arguments))
    return NativeGroups(
        grouping.size,
        grouping.tumbling,
        len(grouping.keys),
        measured.summed,
        measured.distincts,
        [(each.argument, each.function == "MAX") for each in measured.bests],
        [each.argument for each in measured.samples],
        list(_conditions(plan.output, grouping, measured)),
    )


# ------------------------------------------------------------------ results


def read_in_python(query: CompiledQuery) -> str | None:
    """Why Python reads the results of a query with GROUP; None if the core does."""
    plan, automaton = query.plan, query.automaton
    grouping = plan.output.grouping
    assert grouping is not None
    if plan.emit != "ALL" or plan.skip_past_last or plan.skip_to is not None:
        return "EMIT or AFTER MATCH selects among the results"
    if automaton.waits or automaton.expires:
        return "results wait for a window or a deadline"
    if automaton.ambiguous:
        return "a result may be found twice"
    if any(atom.kind != "single" for atom in automaton.atoms):
        return "a step has several events"
    for key in grouping.keys:
        if (reason := _read_in_python(plan, key.value)) is not None:
            return f"the key ?{key.name} {reason}"
    for aggregate in grouping.aggregates:
        if aggregate.argument is not None:
            reason = _read_in_python(plan, grouping.arguments[aggregate.argument])
            if reason is not None:
                return f"{aggregate.name} {reason}"
    return None


def _read_in_python(plan: QueryPlan, value: Condition) -> str | None:
    kinds = {register.name: register.kind for register in plan.registers}
    names = {node.name for node in ast.walk(value.expression) if isinstance(node, ast.Var)}
    if any(kinds.get(name, "value") not in ("value", "last") for name in names):
        return "names an aggregate of the SEQ"
    if any(name not in kinds and name in _keys(plan) for name in names):
        return "names a key that is an expression"
    if looks_at_graphs(value.expression):
        return "has EXISTS"
    try:
        compile_code(value.expression, {})
    except NotNative as reason:
        return str(reason)
    return None


def _keys(plan: QueryPlan) -> set[str]:
    grouping = plan.output.grouping
    return set() if grouping is None else {key.name for key in grouping.keys}


def result_reader(native: NativeRun, query: CompiledQuery, groups: NativeGroups) -> ResultReader:
    """The reader in the core of a query's results."""
    plan = query.plan
    grouping = plan.output.grouping
    assert grouping is not None
    slots = {register.name: number for number, register in enumerate(plan.registers)}
    values = [_value(each.value, slots) for each in grouping.keys]
    values += [_value(each, slots) for each in grouping.arguments]
    conditions = [*(key.value for key in grouping.keys), *grouping.arguments]
    read = {
        slots[node.name]
        for condition in conditions
        for node in ast.walk(condition.expression)
        if isinstance(node, ast.Var) and node.name in slots
    }
    return ResultReader(
        groups,
        native.maker_of_events(MatchMaker),
        native.decoder([]),
        values,
        sorted(read),
        native.tables.cells,
        [key.name for key in grouping.keys],
        native.matchers.calls,
    )


def _value(condition: Condition, slots: dict[str, int]) -> int | ExpressionCode:
    expression = condition.expression
    if isinstance(expression, ast.Var) and expression.name in slots:
        return slots[expression.name]
    return compile_code(expression, slots).code


def match_columns(query: CompiledQuery) -> GroupColumns:
    """The columns of the matches of a query whose results the core reads."""
    output, grouping = query.plan.output, query.plan.output.grouping
    assert grouping is not None
    names = [column.name for column in output.columns]
    values = AggregateValues(Measured(grouping.aggregates, len(grouping.arguments)))
    return GroupColumns(query.plan.shown, names, _plain_columns(output, grouping), values)


def _plain_columns(output: Output, grouping: Grouping) -> list[tuple[bool, int]] | None:
    """Per column, whether it is a key, and the number of its key or aggregate.

    None if the output stage computes the solutions: if a clause compares their values, if a column
    is computed or is a GROUP_CONCAT, or for a template.
    """
    if grouping.having or output.distinct or output.per:
        return None
    if output.form == "construct":
        return None
    if any(aggregate.function == "GROUP_CONCAT" for aggregate in grouping.aggregates):
        return None
    named = {let.name: let.value.expression for let in grouping.lets}
    aggregates = [aggregate.name for aggregate in grouping.aggregates]
    keys = [key.name for key in grouping.keys]
    columns: list[tuple[bool, int]] = []
    for column in output.columns:
        expression = column.value.expression
        while isinstance(expression, ast.Var) and expression.name in named:
            expression = named[expression.name]
        if not isinstance(expression, ast.Var):
            return None
        if expression.name in aggregates:
            columns.append((False, aggregates.index(expression.name)))
        elif expression.name in keys:
            columns.append((True, keys.index(expression.name)))
        else:
            return None
    return columns


# ------------------------------------------------------------------ conditions


def _conditions(
    output: Output, grouping: Grouping, measured: Measured
) -> Iterator[tuple[str, int | None, str, float, bool]]:
    """The comparisons of an aggregate with a number, as `NativeGroups` takes them."""
    named = {
        item.name: item.value.expression
        for item in (*output.columns, *grouping.lets)
        if item.value.expression != ast.Var(item.name)  # a key
    }
    aggregates = {aggregate.name: aggregate for aggregate in grouping.aggregates}
    for condition in grouping.having:
        for part in _conjuncts(condition):
            if not isinstance(part, ast.Binary) or part.operator not in _MIRRORED:
                continue
            left, right = part.left, part.right
            operator: str = part.operator
            if isinstance(left, ast.Literal):
                left, right, operator = right, left, _MIRRORED[operator]
            while isinstance(left, ast.Var) and left.name in named:
                left = named[left.name]
            if not (isinstance(left, ast.Var) and isinstance(right, ast.Literal)):
                continue
            aggregate, number = aggregates.get(left.name), _number(right)
            if aggregate is None or number is None:
                continue
            if aggregate.function in ("COUNT", *_SUMS, *_BESTS):
                yield aggregate.function, measured.place(aggregate), operator, *number


def _number(literal: ast.Literal) -> tuple[float, bool] | None:
    """The double nearest to a number, and whether it is the same number, and an integer."""
    value = decode(constant(literal))
    if not INTEGER <= value.kind <= DOUBLE:
        return None
    if value.kind in (FLOAT, DOUBLE):
        return (value.real, False) if isfinite(value.real) else None
    number = exact_of(value)
    if abs(number) > 2**53:
        return None
    return float(number), number == int(number)


def _conjuncts(expression: ast.Expr) -> Iterator[ast.Expr]:
    if isinstance(expression, ast.Binary) and expression.operator == "&&":
        yield from _conjuncts(expression.left)
        yield from _conjuncts(expression.right)
    else:
        yield expression
