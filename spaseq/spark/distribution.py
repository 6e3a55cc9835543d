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

from spaseq.engine.compiled import CompiledQueries
from spaseq.parser import ast
from spaseq.plan.key_division import ByKey, by_key, steps_of
from spaseq.plan.logical import QueryPlan
from spaseq.records import dataclass


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


def lookback(plan: QueryPlan) -> int | str:
    """The bound on the time from the earliest event that a match depends on to its end, in
    microseconds; or the reason why there is no bound.

    A bound also permits dividing the matches of one key by time.
    """
    reason = _not_by_time(plan)
    if reason:
        return f"not by time: {reason}"
    absences = _leading_absences(plan.sequence)
    return plan.window.size * (1 + absences) + (_longest_absence(plan.sequence) if absences else 0)


# ------------------------------------------------------------------ time


def _not_by_time(plan: QueryPlan) -> str:
    if not plan.window.is_of_time:
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
    return sum(_may_be_absent(step) for step in steps_of(sequence))


def _longest_absence(sequence: ast.Sequence) -> int:
    """The longest bound of a negation, in microseconds: in front it may exceed the window."""
    bounds = (step.bound for step in steps_of(sequence) if step.negated)
    return max((bound.microseconds for bound in bounds if bound is not None), default=0)


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
