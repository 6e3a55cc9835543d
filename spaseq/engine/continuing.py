"""Whether the state of a query can continue under another query: `keep`, of runs and saved states.

The partial matches of a query are groups in places, with registers and rows. They fit another query
whose automaton, registers and rows are the same. Filters may differ in their constants, and graph
patterns in what they match: partial matches stay as they were found, and later events are matched
by the new query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spaseq.engine.compiled import CompiledQuery
from spaseq.parser import ast
from spaseq.plan.logical import Condition, GpmPlan, Occurrence, Output, QueryPlan


def difference(before: CompiledQuery, after: CompiledQuery) -> str:
    """What keeps the state of a query from continuing under another one; empty if nothing does."""
    return next(_differences(before, after), "")


def _differences(before: CompiledQuery, after: CompiledQuery) -> Iterator[str]:
    old, new = before.plan, after.plan
    for part, text in _CLAUSES:
        if getattr(old, part) != getattr(new, part):
            yield text
    if len(old.gpms) != len(new.gpms) or len(old.occurrences) != len(new.occurrences):
        yield "SEQ has other steps"
        return
    for gpm, other in zip(old.gpms, new.gpms, strict=True):
        if _columns(gpm) != _columns(other):
            yield f"the graph pattern {other.name} has other streams or binds other variables"
    for step, later in zip(old.occurrences, new.occurrences, strict=True):
        name = new.gpms[later.gpm].name
        if _joined(step) != _joined(later):
            yield f"filters or BINDs of {name} relate it to other steps in another way"
    if _limit(old.output) != _limit(new.output):
        yield "PER or EVERY differs"
    if before.automaton != after.automaton:
        yield "the automaton has other places, operators or registers"
    elif old.registers != new.registers or old.units != new.units:
        yield "the values that partial matches store differ"
    elif before.automaton.waits and _shown(old.output) != _shown(new.output):
        yield "the results differ, which tell apart the matches that wait for their window"
    if old.output.grouping != new.output.grouping or (
        old.output.grouping is not None and old.output != new.output
    ):
        yield "GROUP BY or what is computed of groups differs"


_CLAUSES = (
    ("streams", "it reads other streams"),
    ("window", "WITHIN differs"),
    ("partition", "PARTITION BY differs"),
    ("emit", "EMIT differs"),
    ("skip_past_last", "AFTER MATCH differs"),
    ("skip_to", "AFTER MATCH differs"),
    ("registers_stream", "it registers another stream"),
)


def _columns(gpm: GpmPlan) -> tuple[object, ...]:
    return gpm.streams, gpm.variables, gpm.certain, gpm.at, gpm.positive


def _joined(occurrence: Occurrence) -> Occurrence:
    """An occurrence whose filters and BINDs have no constants."""
    return replace(
        occurrence,
        residual=tuple(map(_without_constants, occurrence.residual)),
        assignments=tuple(
            replace(one, value=_without_constants(one.value)) for one in occurrence.assignments
        ),
    )


def _without_constants(condition: Condition) -> Condition:
    def change(node: object) -> object:
        return replace(node, lexical="") if isinstance(node, ast.Literal) else None

    return replace(condition, expression=ast.rebuilt(condition.expression, change), text="")


def _limit(output: Output) -> tuple[object, ...]:
    """What the counts of `LIMIT … EVERY` mean; their number may differ."""
    return output.limit is not None, output.per, output.every


def _shown(output: Output) -> tuple[object, ...]:
    return output.form, output.columns, output.template, output.template_registers


def saved_difference(before: CompiledQuery, after: CompiledQuery) -> str:
    """As `difference`, for a saved state, which is adopted as a whole.

    So what `DISTINCT` remembers and `LIMIT` counts must mean the same as well.
    """
    old, new = before.plan.output, after.plan.output
    if old.form != new.form:
        return "the form of its results differs"
    if old.distinct != new.distinct or (new.distinct and _shown(old) != _shown(new)):
        return "DISTINCT differs, or the results that it remembers"
    if old.limit != new.limit:
        return "LIMIT differs"
    return difference(before, after)


def same_solutions(before: QueryPlan, after: QueryPlan) -> bool:
    """Whether solutions that DISTINCT remembers mean the same."""
    return _shown(before.output) == _shown(after.output)
