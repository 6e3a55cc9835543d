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
from dataclasses import replace
from typing import Protocol

from spaseq.engine.changes import Change, beside_templates, free_name, unregistered
from spaseq.engine.compiled import CompiledQueries
from spaseq.engine.evaluation import Evaluation
from spaseq.engine.listing import Entry, Listed, Listing
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
    closed = run.clock.closed
    idle = {n for n, query in enumerate(run.queries) if query.is_idle(closed)}
    alone = {run.shared.places[n] for n in idle if n not in run.divisions}
    whole = {n: run.divisions[n] for n in idle if n in run.divisions}
    together = {q for each in whole.values() for q in each.template.queries if q not in each.silent}
    found = _fitting(run, compiler, alone | together)
    if together and not together <= _covered(found):
        whole, together = {}, set()
        found = _fitting(run, compiler, alone)
    if alone.isdisjoint(_covered(found)):
        return None
    change = beside_templates(run)
    listing = change.keep_templates()
    entries = {n: listing.queries[n].entry for n in _covered(found)}
    replaced = set(map(id, entries.values()))
    for fit, program in found:
        compiled = change.numbered(fit.compiled, program, False)
        source = fit.template.query
        entry = Entry(source, compiled.plan.name, source, compiled, None, template=fit.template)
        change.entries.append(entry)
        for number in fit.template.queries:
            listing.queries[number].entry = entry
            # A query that shared its first steps may now share all of them.
            listing.embeddings.pop(number, None)
        listing.embeddings |= fit.embeddings
    change.entries = [entry for entry in change.entries if id(entry) not in replaced]
    # The queries that still refer to a replaced template have left it before.
    listing.queries = [one for one in listing.queries if id(one.entry) not in replaced]
    return change


def _fitting(
    run: Evaluation, compiler: _Compiler, numbers: set[int]
) -> list[tuple[Fitting, CompiledQueries]]:
    """The templates of some queries, with the program that has their patterns."""
    chosen = templates_of(run.public, numbers=sorted(numbers))
    names = [run.public.queries[template.queries[0]].plan.name for template in chosen]
    if not chosen:
        return []
    program = compiler.compile_templates(chosen, names)
    return [(each, program) for each in fitting(run.public, chosen, program)]


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
    names = run.listed.names
    if name not in names or names.executed(name) is not None:
        return None
    number = names.number(name)
    division = run.divisions[run.shared.executors[number]]
    change = beside_templates(run)
    listing = change.keep_templates()
    queries, parts = division.template.queries, dict(division.parts())
    ends = 2 * (len(division.silent) + 1) >= len(queries)
    left = listing.queries[number].entry
    for leaving in [n for n in queries if n not in division.silent] if ends else [number]:
        one = listing.queries[leaving]
        kept = parts[leaving] if keeps or leaving != number else None
        entry = Entry(one.source, one.name, one.unbound, one.compiled, None, kept)
        entry = change.part(entry)
        change.entries.append(entry)
        if ends:
            one.entry = entry
        else:
            listing.queries.append(replace(one, entry=entry, before=None))
    if ends:
        change.entries = [entry for entry in change.entries if entry is not left]
        listing.queries = [one for one in listing.queries if one.entry is not left]
        return change, None
    return change, _stays(listing, number)


def _stays(listing: Listing, number: int) -> str:
    """Rename a query that leaves, in its template. Returns the new name."""
    one = listing.queries[number]
    name = free_name(one.compiled.plan.shown, "evaluated with others", listing.names)
    plan = replace(one.compiled.plan, name=name, shown_as=one.compiled.plan.shown)
    listing.queries[number] = Listed(
        unregistered(one.source), name, unregistered(one.unbound),
        replace(one.compiled, plan=plan), one.entry, number,
    )  # fmt: skip
    return name
