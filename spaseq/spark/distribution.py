"""A compiled program → how its work may be divided without changing a result.

Three ways, the first that is exact for the query is taken:

* `ByKey`: the events are divided by the value of a variable on which every match agrees.
  A part has all events of its keys, others do no harm: a match belongs to the part of its key.
* `ByTime`: the matches are divided by the time they end at; who looks for those of a slice
  reads `lookback` more in front of it.
* `Single`: everything in one place, with the reasons why not otherwise.

Pure functions of the plan: no data, no Spark. What is decided here is held against the engine
on whole streams by `tests/spark/test_distribution.py`. Cost: one walk over the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spaseq.engine.compiled import CompiledQueries
from spaseq.parser import ast
from spaseq.plan.logical import GpmPlan, QueryPlan


@dataclass(frozen=True, slots=True)
class ByKey:
    """Divided by what the variables are bound to; `why` says where they come from."""

    variables: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class ByTime:
    """Divided by the time of the end; `lookback` in microseconds."""

    lookback: int
    why_not_by_key: str


@dataclass(frozen=True, slots=True)
class Single:
    """Not divided."""

    reason: str


Distribution = ByKey | ByTime | Single


def distribution(program: CompiledQueries) -> Distribution:
    """How the work of a program is divided."""
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
    """The variables to divide by, or why there are none."""
    reason = _not_by_any_key(plan)
    if reason:
        return f"not by key: {reason}"
    if plan.partition:
        return _partition(plan)
    return _shared(plan)


def lookback(plan: QueryPlan) -> int | str:
    """How far before its end, in microseconds, a match may look; or why that is not known.

    Where it is, the matches of one key can be divided by time as well.
    """
    reason = _not_by_time(plan)
    if reason:
        return f"not by time: {reason}"
    return plan.window.size * (1 + _leading_optionals(plan.sequence))


def needs_every_event(plan: QueryPlan) -> bool:
    """Whether an event that no graph pattern accepts can change a result."""
    return plan.window.kind == "events" or _strict(plan)


# ------------------------------------------------------------------ keys


def _not_by_any_key(plan: QueryPlan) -> str:
    """Why no variable at all can divide the work; "" where one may."""
    if plan.window.kind == "events":
        return "WITHIN n EVENTS counts the events of all keys"
    if plan.output.limit is not None:
        return "LIMIT counts the matches of all keys"
    if plan.output.form == "ask":
        return "ASK answers once per instant, for all keys together"
    return ""


def _partition(plan: QueryPlan) -> ByKey | str:
    variables = plan.partition
    if plan.output.distinct:
        variables = tuple(name for name in variables if name in _projected(plan))
        if not variables:
            return "not by key: DISTINCT compares solutions that do not show a partition variable"
    # Variables that a negated pattern leaves open would send its events everywhere.
    closed = tuple(name for name in variables if all(name in gpm.certain for gpm in plan.gpms))
    return ByKey(closed or variables, "PARTITION BY")


def _shared(plan: QueryPlan) -> ByKey | str:
    """A join variable that every step binds, where nothing looks beyond one match."""
    if _strict(plan):
        return "not by key: contiguity looks at the events of all keys (no PARTITION BY)"
    if plan.emit != "ALL":
        return f"not by key: EMIT {plan.emit} compares matches of all keys (no PARTITION BY)"
    if plan.skip_past_last:
        return "not by key: AFTER MATCH SKIP drops partial matches of all keys (no PARTITION BY)"
    used = {occurrence.gpm for occurrence in plan.occurrences if not occurrence.negated}
    positive = [plan.gpms[number] for number in sorted(used)]
    joined = {r.variable for r in plan.registers if r.kind == "value" and r.unit is None}
    shared = joined.intersection(*(gpm.certain for gpm in positive))
    if plan.output.distinct:
        shared &= _projected(plan)
    if not shared:
        return "not by key: no variable is bound by every step, and there is no PARTITION BY"
    negated = [gpm for number, gpm in enumerate(plan.gpms) if number not in used]
    best = min(shared, key=lambda name: (_open(negated, name), name in _times(plan), name))
    return ByKey((best,), "every step shares it")


def _open(gpms: list[GpmPlan], name: str) -> int:
    return sum(name not in gpm.certain for gpm in gpms)


def _times(plan: QueryPlan) -> set[str | None]:
    """Variables that hold times: equal ones are rare, but they do."""
    return {gpm.at for gpm in plan.gpms}


def _projected(plan: QueryPlan) -> set[str]:
    """The variables whose own value is a column of every solution."""
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
    if plan.skip_past_last:
        return "AFTER MATCH SKIP depends on all matches before"
    if plan.output.distinct:
        return "DISTINCT depends on all solutions before"
    return ""


def _leading_optionals(sequence: ast.Sequence) -> int:
    """How many optional steps may stand before a match's first event: each looks back once.

    An upper bound: counts every optional step where one can stand at the start.
    """
    if not any(_may_be_first_and_absent(sequence)):
        return 0
    return sum(
        step.quantifier is not None and step.quantifier.least == 0 for step in _steps(sequence)
    )


def _may_be_first_and_absent(unit: ast.Unit) -> Iterator[bool]:
    """Whether the steps that may come first are optional."""
    match unit:
        case ast.Sequence():
            for step in unit.steps:
                optional = step.quantifier is not None and step.quantifier.least == 0
                yield optional
                yield from _may_be_first_and_absent(step.unit)
                if not optional:
                    return
        case ast.Disjunction() | ast.Conjunction() | ast.AnyOrder():
            for operand in unit.operands:
                yield from _may_be_first_and_absent(operand)


# ------------------------------------------------------------------ sequences


def _strict(plan: QueryPlan) -> bool:
    return plan.emit == "STRICT" or any(step.operator == "," for step in _steps(plan.sequence))


def _steps(sequence: ast.Sequence) -> Iterator[ast.Step]:
    return (node for node in ast.walk(sequence) if isinstance(node, ast.Step))
