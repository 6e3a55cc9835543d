"""Which queries run on the compiled core, and why the others do not."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.engine.aggregates import RunningAggregates
from spaseq.engine.compiled import CompiledQueries, CompiledQuery
from spaseq.gpm.bytecode import Compiled, NotNative, compile_code
from spaseq.nfa import native
from spaseq.nfa.registers import RegisterFile
from spaseq.plan.logical import QueryPlan


def unfit(program: CompiledQueries, query: CompiledQuery) -> str | None:
    """Why a query of a program runs on `AutomatonRun`; None where the core takes it."""
    plan = query.plan
    reason = native.unfit(plan, query.automaton)
    if reason is not None:
        return reason
    if (plan.window.kind == "events") != counts_events(program):
        return "a window that counts events beside queries that do not count the same"
    try:
        assigned = assigned_codes(plan, RegisterFile(plan, RunningAggregates()))
    except NotNative as unknown:
        return str(unknown)
    if any(code.exists for some in assigned for code in some):
        return "EXISTS in a BIND that needs a partial match"
    return None


def choosing(query: CompiledQuery) -> str:
    """What chooses among the matches of an instant by what they share: of EMIT, or `LIMIT`.

    Nothing where a match may come up again when its window closes, for it is no choice then,
    nor where DISTINCT, or STRICT in the end, may drop what LIMIT would have kept, nor for steps of
    several events.
    """
    plan = query.plan
    conjoined = any(atom.kind != "single" for atom in query.automaton.atoms)
    if query.automaton.waits or conjoined:
        return ""
    if plan.emit not in ("ALL", "STRICT"):
        return plan.emit
    if plan.emit == "STRICT" and not native.joins_strictly(plan, query.automaton):
        return ""
    output = plan.output
    limited = output.limit is not None and not output.distinct and output.form != "ask"
    return "LIMIT" if limited else ""


def chooses(query: CompiledQuery, compiled: bool) -> dict[str, str | bool] | None:
    """The clause that lets some matches of an instant through; whether it needs a list of all."""
    emit, limit = query.plan.emit, query.plan.output.limit
    if emit == "ALL" and limit is None:
        return None
    strictly = native.joins_strictly(query.plan, query.automaton) and limit is None
    listed = not compiled or not (choosing(query) or strictly)
    return {"clause": f"LIMIT {limit}" if emit == "ALL" else f"EMIT {emit}", "lists_all": listed}


def counts_events(program: CompiledQueries) -> bool:
    """Whether the windows of all queries count events, and all of them the same ones."""
    plans = [query.plan for query in program.queries]
    streams = set(plans[0].streams)
    return all(plan.window.kind == "events" and set(plan.streams) == streams for plan in plans)


def assigned_codes(plan: QueryPlan, registers: RegisterFile) -> Sequence[Sequence[Compiled]]:
    """The bytecode of the stateful BINDs of each occurrence, over its registers.

    Raises:
        NotNative: where one has none.
    """
    slots = registers.slots()
    return [
        [compile_code(assignment.value.expression, slots) for assignment in occurrence.assignments]
        for occurrence in plan.occurrences
    ]
