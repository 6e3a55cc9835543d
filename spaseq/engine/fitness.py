"""What the compiled core can do for a query beside finding its matches: choose, count events."""

from __future__ import annotations

from spaseq.engine.compiled import CompiledQueries, CompiledQuery
from spaseq.nfa.native import tables

_CHOOSES_BY_SHARING = frozenset(("ANY", "NEXT", "LAST", "MAX"))
"""The modes of EMIT that the compiled core computes from the parts that matches share."""


def choosing(query: CompiledQuery) -> str:
    """What chooses among the matches of an instant by what they share: of EMIT, or `LIMIT`.

    Nothing where a match may come up again when its window closes, for it is no choice then,
    nor where DISTINCT, or STRICT in the end, may drop what LIMIT would have kept, nor where the
    matches that LIMIT drops end partial matches of their partitions, nor for steps of several
    events.
    """
    plan = query.plan
    conjoined = any(atom.kind != "single" for atom in query.automaton.atoms)
    if query.automaton.waits or conjoined:
        return ""
    if plan.emit in _CHOOSES_BY_SHARING:
        return plan.emit
    if plan.emit not in ("ALL", "STRICT"):
        return ""
    if plan.emit == "STRICT" and not tables.joins_strictly(plan, query.automaton):
        return ""
    output = plan.output
    limited = output.limit is not None and not output.distinct and output.form != "ask"
    return "LIMIT" if limited and not (plan.skip_past_last and plan.partition) else ""


def chooses(query: CompiledQuery) -> dict[str, str | bool] | None:
    """The clause that lets some matches of an instant through; whether it needs a list of all."""
    emit, limit = query.plan.emit, query.plan.output.limit
    if emit == "ALL" and limit is None:
        return None
    strictly = tables.joins_strictly(query.plan, query.automaton) and limit is None
    listed = not (choosing(query) or strictly)
    return {"clause": f"LIMIT {limit}" if emit == "ALL" else f"EMIT {emit}", "lists_all": listed}


def counts_events(program: CompiledQueries) -> bool:
    """Whether the windows of all queries count events, and all of them the same ones."""
    plans = [query.plan for query in program.queries]
    streams = set(plans[0].streams)
    return all(plan.window.kind == "events" and set(plan.streams) == streams for plan in plans)
