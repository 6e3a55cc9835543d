"""Queries of a run that join a template later, or leave it.

An idle query has no partial match that can continue, so it can begin again at any time. `regrouped`
lets idle queries begin together, as one template. `separated` lets one query leave its template
with its part of the state. The template still evaluates this query, under another name and without
its matches, because the automaton and the saved state belong to all queries of the template. When
half of the queries of a template have left, the others leave too, and the template ends.

Cost: `regrouped` compiles the templates, in about 0.2 milliseconds per query; `separated` takes
time linear in the state and in the queries of the template.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from spaseq.engine.changes import Change
from spaseq.engine.compiled import CompiledQueries
from spaseq.engine.evaluation import Evaluation
from spaseq.engine.sharing import Fitting, fitting, templates_of
from spaseq.engine.tracing import traced
from spaseq.plan.templates import Template


class _Compiler(Protocol):
    """The part of `Program` that compiles templates."""

    def compile_templates(
        self, chosen: Sequence[Template], names: Sequence[str]
    ) -> CompiledQueries: ...


def regrouped(run: Evaluation, compiler: _Compiler) -> Change | None:
    """The run with idle queries in templates; None if no query can join others.

    Idle templates are compiled again, together with the queries that join them. Matches, and the
    time that the run has reached, do not change. The counters of places begin at zero.
    """
    if traced():
        return None
    run.sync()
    closed, queries = run.clock.closed, run.listed.queries
    idle = {executor for executor in run.listed.executors if executor.state.is_idle(closed)}
    alone, together, left = set[int](), set[int](), list[str]()
    for number, query in enumerate(queries):
        division = query.executor.division
        if query.executor not in idle:
            continue
        if division is None:
            alone.add(number)
        elif query.serial in division.silent:
            left.append(query.plan.name)
        else:
            together.add(number)
    found = _fitting(run, compiler, alone | together)
    if together and not together <= _covered(found):
        left = []
        found = _fitting(run, compiler, alone)
    if alone.isdisjoint(_covered(found)):
        return None
    change = Change(run)
    for fit, program in found:
        change.combine(queries, fit, program.patterns)
    for name in left:
        change.drop(name)
    return change


def _fitting(
    run: Evaluation, compiler: _Compiler, numbers: set[int]
) -> list[tuple[Fitting, CompiledQueries]]:
    """The templates of some queries, with the program that has their patterns."""
    chosen = templates_of(run.listed.public, numbers=sorted(numbers))
    names = [run.listed.public.queries[template.queries[0]].plan.name for template in chosen]
    if not chosen:
        return []
    program = compiler.compile_templates(chosen, names)
    return [(each, program) for each in fitting(run.listed.public, chosen, program)]


def _covered(found: Sequence[tuple[Fitting, CompiledQueries]]) -> set[int]:
    return {number for fit, _ in found for number in fit.template.queries}


def separated(run: Evaluation, name: str, keeps: bool = True) -> tuple[Change, str | None] | None:
    """The run with a separate automaton for a query of a template.

    Args:
        run: The run.
        name: The query.
        keeps: Whether the query keeps its partial matches; the other queries always do.

    Returns:
        The change, and the name under which the template still evaluates the query, or None if the
        template ends. None in place of both if the query is not part of a template.
    """
    query = run.listed.by_name.get(name)
    division = None if query is None else query.executor.division
    if query is None or division is None:
        return None
    change = Change(run)
    if 2 * (len(division.silent) + 1) >= len(query.executor.members):
        change.divide(query.executor)
        if not keeps:
            change.begin(change.query(name).executor)
        return change, None
    left = change.rename(query, "evaluated with others")
    kept = division.parts()[query.serial] if keeps else None
    change.separate(query, kept, change.serial())
    return change, left
