"""The variable by whose values the events of a query can be divided without changing a result.

If a variable is equal in all events of a match, a part that receives all events of some of its
values finds all matches of these values; events of other values have no effect. Spark
(spaseq/spark) and the threads of a run (spaseq/keyed_runs.py) divide their work in this way.

The functions depend on the plan alone. Cost: one walk over the plan.
"""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.parser import ast
from spaseq.plan.logical import GpmPlan, Grouping, QueryPlan
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class ByKey:
    """Divided by the values of `variables`; `why` names the reason for choosing them."""

    variables: tuple[str, ...]
    why: str


def by_key(plan: QueryPlan) -> ByKey | str:
    """The variables to divide by, or the reason why there are none."""
    reason = _not_by_any_key(plan)
    if reason:
        return f"not by key: {reason}"
    if plan.partition:
        return _partition(plan)
    return _shared(plan)


def needs_every_event(plan: QueryPlan) -> bool:
    """Whether an event that no graph pattern accepts can change a result."""
    return plan.window.counts_events or _strict(plan)


def steps_of(sequence: ast.Sequence) -> Iterator[ast.Step]:
    """All steps of a sequence, nested ones too."""
    return (node for node in ast.walk(sequence) if isinstance(node, ast.Step))


def _not_by_any_key(plan: QueryPlan) -> str:
    """The reason why no variable can divide the work; "" if there is none."""
    if plan.window.counts_events:
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


def _strict(plan: QueryPlan) -> bool:
    return plan.emit == "STRICT" or any(step.operator == "," for step in steps_of(plan.sequence))
