"""A compiled program → a division of its work that does not change a result.

There are three divisions. A job uses the first that is exact for the query:

* `ByKey`: divides the events by the value of a variable that is equal in all events of a match. A
  part receives all events of its keys, and a match belongs to the part of its key; events of other
  keys change nothing.
* `ByTime`: divides the matches by the time of their last event. The task of a slice also reads the
  events of the `lookback` before the slice.
* `Single`: one task evaluates all events; names the reasons.

The functions depend on the plan alone, not on data or Spark. `tests/spark/test_distribution.py`
compares divided results with a run over whole streams. Cost: one walk over the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spaseq.engine.compiled import CompiledQueries
from spaseq.parser import ast
from spaseq.plan.logical import GpmPlan, Grouping, QueryPlan


@dataclass(frozen=True, slots=True)
class ByKey:
    """Divided by the values of `variables`; `why` names the reason for choosing them."""

    variables: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class ByTime:
    """Divided by the time of the last event; `lookback` in microseconds."""

    lookback: int
    why_not_by_key: str


@dataclass(frozen=True, slots=True)
class Single:
    """Not divided, for a reason."""

    reason: str


Distribution = ByKey | ByTime | Single


def distribution(program: CompiledQueries) -> Distribution:
    """The division of the work of a program."""
    if len(program.queries) > 1:
        return Single("several queries run together: match each by itself to divide its work")
    plan = program.queries[0].plan
    keys = by_key(plan)
    if isinstance(keys, ByKey):
        return keys
    back = lookback(plan)
    if isinstance(back, str):
        return Single(f"{keys}; and {back}")
    return ByTime(back, keys)


def by_key(plan: QueryPlan) -> ByKey | str:
    """The variables to divide by, or the reason why there are none."""
    reason = _not_by_any_key(plan)
    if reason:
        return f"not by key: {reason}"
    if plan.partition:
        return _partition(plan)
    return _shared(plan)


def lookback(plan: QueryPlan) -> int | str:
    """The bound on the time from the earliest event that a match depends on to its end, in
    microseconds; or the reason why there is no bound.

    A bound also permits dividing the matches of one key by time.
    """
    reason = _not_by_time(plan)
    if reason:
        return f"not by time: {reason}"
    return plan.window.size * (1 + _leading_absences(plan.sequence))


def needs_every_event(plan: QueryPlan) -> bool:
    """Whether an event that no graph pattern accepts can change a result."""
    return plan.window.kind == "events" or _strict(plan)


# ------------------------------------------------------------------ keys


def _not_by_any_key(plan: QueryPlan) -> str:
    """The reason why no variable can divide the work; "" if there is none."""
    if plan.window.kind == "events":
        return "WITHIN n EVENTS counts the events of all keys"
    if plan.output.limit is not None and not plan.output.per:
        return "LIMIT counts the matches of all keys"
    if plan.output.form == "ask":
        return "ASK answers once per instant, for all keys together"
    return ""


def _partition(plan: QueryPlan) -> ByKey | str:
    variables = plan.partition
    if plan.output.grouping is not None:
        variables = tuple(name for name in variables if name in _group_keys(plan.output.grouping))
        if not variables:
            return "not by key: GROUP gathers results of all partitions"
    if plan.output.distinct:
        variables = tuple(name for name in variables if name in _projected(plan))
        if not variables:
            return "not by key: DISTINCT compares solutions that do not show a partition variable"
    if plan.output.per:
        variables = tuple(name for name in variables if name in plan.output.per)
        if not variables:
            return "not by key: LIMIT … PER names no partition variable"
    # A variable that a negated pattern leaves unbound would send its events to all parts.
    closed = tuple(name for name in variables if all(name in gpm.certain for gpm in plan.gpms))
    return ByKey(closed or variables, "PARTITION BY")


def _shared(plan: QueryPlan) -> ByKey | str:
    """A join variable that every step binds, if a match depends only on its own events."""
    if _strict(plan):
        return "not by key: contiguity depends on the events of all keys (no PARTITION BY)"
    if plan.emit != "ALL":
        return f"not by key: EMIT {plan.emit} compares matches of all keys (no PARTITION BY)"
    if plan.skip_past_last or plan.skip_to is not None:
        return "not by key: AFTER MATCH SKIP drops partial matches of all keys (no PARTITION BY)"
    used = {occurrence.gpm for occurrence in plan.occurrences if not occurrence.negated}
    positive = [plan.gpms[number] for number in sorted(used)]
    joined = {r.variable for r in plan.registers if r.kind == "value" and r.unit is None}
    shared = joined.intersection(*(gpm.certain for gpm in positive))
    if plan.output.grouping is not None:
        shared &= _group_keys(plan.output.grouping)
        if not shared:
            return "not by key: no key of GROUP BY is bound by every step"
    if plan.output.distinct:
        shared &= _projected(plan)
    if plan.output.per:
        shared &= set(plan.output.per)
        if not shared:
            return "not by key: LIMIT … PER names no variable that every step binds"
    if not shared:
        return "not by key: no variable is bound by every step, and there is no PARTITION BY"
    negated = [gpm for number, gpm in enumerate(plan.gpms) if number not in used]
    best = min(
        shared,
        key=lambda name: (_unbound_count(negated, name), name in _time_variables(plan), name),
    )
    return ByKey((best,), "every step shares it")


def _unbound_count(gpms: list[GpmPlan], name: str) -> int:
    """The number of patterns that do not always bind a variable."""
    return sum(name not in gpm.certain for gpm in gpms)


def _time_variables(plan: QueryPlan) -> set[str | None]:
    """The variables bound to timestamps, which are poor keys: events rarely share one."""
    return {gpm.at for gpm in plan.gpms}


def _group_keys(grouping: Grouping) -> set[str]:
    """The variables of a match that are keys of its groups."""
    return {
        key.name
        for key in grouping.keys
        if isinstance(key.value.expression, ast.Var) and key.value.expression.name == key.name
    }


def _projected(plan: QueryPlan) -> set[str]:
    """The variables that are columns of every solution under their own names."""
    return {
        column.name
        for column in plan.output.columns
        if isinstance(column.value.expression, ast.Var)
        and column.value.expression.name == column.name
    }


# ------------------------------------------------------------------ time


def _not_by_time(plan: QueryPlan) -> str:
    if plan.window.kind not in ("span", "tumbling"):
        return "the window has no length in time"
    if plan.skip_past_last or plan.skip_to is not None:
        return "AFTER MATCH SKIP depends on all matches before"
    if plan.output.distinct:
        return "DISTINCT depends on all solutions before"
    if plan.output.grouping is not None:
        return "GROUP gathers results over time"
    if plan.output.every is not None:
        return "LIMIT … EVERY counts the results before"
    return ""


def _leading_absences(sequence: ast.Sequence) -> int:
    """An upper bound on the number of steps that may be absent before the first event of a match.

    Each of them, optional or negated, looks back by one window. The bound counts all such steps if
    one of them can be the first.
    """
    if not any(_may_be_first_and_absent(sequence)):
        return 0
    return sum(_may_be_absent(step) for step in _steps(sequence))


def _may_be_absent(step: ast.Step) -> bool:
    return step.negated or (step.quantifier is not None and step.quantifier.least == 0)


def _may_be_first_and_absent(unit: ast.Unit) -> Iterator[bool]:
    """For each step that may be the first: whether it may be absent."""
    match unit:
        case ast.Sequence():
            for step in unit.steps:
                absent = _may_be_absent(step)
                yield absent
                yield from _may_be_first_and_absent(step.unit)
                if not absent:
                    return
        case ast.Disjunction() | ast.Conjunction() | ast.AnyOrder():
            for operand in unit.operands:
                yield from _may_be_first_and_absent(operand)


# ------------------------------------------------------------------ sequences


def _strict(plan: QueryPlan) -> bool:
    return plan.emit == "STRICT" or any(step.operator == "," for step in _steps(plan.sequence))


def _steps(sequence: ast.Sequence) -> Iterator[ast.Step]:
    return (node for node in ast.walk(sequence) if isinstance(node, ast.Step))
