"""Whether the state of a query can continue under another query, for `keep`.

The partial matches of a query are groups in places, with registers and rows. They fit another query
whose automaton, registers and rows are the same. Filters may differ in their constants, and graph
patterns in what they match. Existing partial matches stay as they are, and the new query matches
later events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spaseq.engine.compiled import CompiledQuery
from spaseq.parser import ast
from spaseq.plan.logical import Condition, GpmPlan, Occurrence, Output, QueryPlan


def difference(before: CompiledQuery, after: CompiledQuery) -> str:
    """Why the state of a query cannot continue under another one; empty if it can."""
    return next(_differences(before, after), "")


def _differences(before: CompiledQuery, after: CompiledQuery) -> Iterator[str]:
    old, new = before.plan, after.plan
    yield from (f"{clause} differs" for clause in _other_clauses(old, new))
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
    if before.automaton != after.automaton:
        yield "the automaton has other places, operators or registers"
    elif old.registers != new.registers or old.units != new.units:
        yield "the values that partial matches store differ"
    elif before.automaton.waits and _shown(old.output) != _shown(new.output):
        yield "the results differ, which tell apart the matches that wait for their window"


def _other_clauses(before: QueryPlan, after: QueryPlan) -> Iterator[str]:
    """The clauses that give the state of one query another meaning under the other query."""
    for part, clause in _CLAUSES:
        if getattr(before, part) != getattr(after, part):
            yield clause
    old, new = before.output, after.output
    if old.distinct != new.distinct:
        yield "DISTINCT"
    if _limit(old) != _limit(new):
        yield "LIMIT"
    if old.grouping != new.grouping:
        yield "GROUP"
    elif old.grouping is not None and old != new:
        yield "what is computed of the groups"


_CLAUSES = (
    ("streams", "FROM STREAM"),
    ("window", "WITHIN"),
    ("partition", "PARTITION BY"),
    ("emit", "EMIT"),
    ("skip_past_last", "AFTER MATCH"),
    ("skip_to", "AFTER MATCH"),
    ("registers_stream", "REGISTER STREAM"),
)


def _limit(output: Output) -> tuple[object, ...]:
    """The LIMIT, and the columns that PER names by their aliases."""
    aliases = set(output.per).difference(name for name, _ in output.order)
    counted = tuple(column for column in output.columns if column.name in aliases)
    return output.limit, output.per, output.every, counted


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


def _shown(output: Output) -> tuple[object, ...]:
    return output.form, output.columns, output.template, output.template_registers


def saved_difference(before: CompiledQuery, after: CompiledQuery) -> str:
    """Like `difference`, for a saved state, including the solutions that DISTINCT remembers."""
    old, new = before.plan.output, after.plan.output
    if old.form != new.form:
        return "the form of its results differs"
    if new.distinct and _shown(old) != _shown(new):
        return "the results differ, which DISTINCT remembers"
    return difference(before, after)


def same_solutions(before: QueryPlan, after: QueryPlan) -> bool:
    """Whether the solutions that DISTINCT remembers have the same meaning."""
    return _shown(before.output) == _shown(after.output)
