"""Saved state of other queries → saved state of a program: what is kept, and whether it fits.

A query's part of the state is its automaton, by numbers of places, registers and columns. It fits
another version of the query if these mean the same there: patterns, filters and constants may
differ, also projected columns. Then the partial matches found so far are continued as if the new
version had found them. Queries that are not kept begin at the present time of the run.

The result is data like the argument, so resuming it validates it as any saved state.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from spaseq.engine.checkpoint import save
from spaseq.engine.compiled import CompiledQuery
from spaseq.engine.envelope import seal, unseal
from spaseq.engine.evaluation import Evaluation
from spaseq.errors import StateError


def differences(old: CompiledQuery, new: CompiledQuery) -> list[str]:
    """What keeps the state of one version of a query from fitting another one, as texts."""
    before, after = old.plan, new.plan
    found = []
    for name, shown in (
        ("streams", "its streams"),
        ("window", "its window"),
        ("partition", "PARTITION BY"),
        ("emit", "EMIT"),
        ("skip_past_last", "AFTER MATCH"),
        ("registers_stream", "the stream that it registers"),
        ("units", "its iterations"),
    ):
        if getattr(before, name) != getattr(after, name):
            found.append(shown)
    for name, shown in (
        ("form", "the form of its results"),
        ("distinct", "DISTINCT"),
        ("limit", "LIMIT"),
    ):
        if getattr(before.output, name) != getattr(after.output, name):
            found.append(shown)
    one, other = before.output, after.output
    remembers = one.distinct or one.grouping is not None or other.grouping is not None
    if remembers and _results(one) != _results(other):
        found.append("its results, which it remembers")
    steps = [(o.gpm, o.units, o.negated) for o in before.occurrences]
    if len(before.gpms) != len(after.gpms) or steps != [
        (o.gpm, o.units, o.negated) for o in after.occurrences
    ]:
        return [*found, "the steps of its sequence"]
    for first, second in zip(before.gpms, after.gpms, strict=True):
        if first.variables != second.variables or first.streams != second.streams:
            found.append(f"the variables or streams of {second.name}")
    if before.registers != after.registers:
        found.append("the values that its partial matches store")
    if not found and old.automaton != new.automaton:
        found.append("its automaton")
    return found


def _results(output: Any) -> tuple[Any, ...]:
    grouping = output.grouping
    keys = () if grouping is None else tuple(str(each) for each in grouping.aggregates)
    return tuple(column.name for column in output.columns), keys


def moved(blob: bytes, fresh: Evaluation, kept: Collection[str]) -> bytes:
    """The state of a run of other queries, for a run of the program of `fresh`.

    Args:
        blob: The saved state.
        fresh: A run of the program that has had no event.
        kept: The names of the queries that keep their state; all must fit (`differences`).

    Raises:
        StateError: if the blob is damaged, or a query of either program registers a stream.
    """
    old, new = unseal(blob), unseal(save(fresh))
    try:
        return seal(_moved(old, new, fresh, kept))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise StateError(f"the saved state is damaged: {error!r}") from error


def _moved(
    old: dict[str, Any], new: dict[str, Any], fresh: Evaluation, kept: Collection[str]
) -> dict[str, Any]:
    if old["derived time"] or any(q.plan.registers_stream is not None for q in fresh.queries):
        raise StateError(
            "queries that register streams depend on each other, so their states cannot be kept "
            "apart"
        )
    streams = fresh.program.streams
    ordinals = {iri: number for iri, number in old["ordinals"].items() if iri in streams}
    places = {name: number for number, (name, _) in enumerate(old["program"])}
    is_open = old["time"] is not None and old["time"][0] == old["closed"]
    queries, delayed = [], []
    for number, (name, _) in enumerate(new["program"]):
        if name in kept:
            queries.append(old["queries"][places[name]])
            delayed.append(old["delayed"][places[name]])
            continue
        own = fresh.queries[number].plan.streams
        is_read = is_open and not ordinals.keys().isdisjoint(own)
        delivered = {iri: ordinals.get(iri, 0) if is_read else 0 for iri in own}
        queries.append(
            new["queries"][number]
            | {
                "time": old["time"] if is_read else None,
                "delivered": delivered,
                "ordinal": min(delivered.values()),
            }
        )
        delayed.append([])
    terms = old["tables"]["terms"]
    first = len(terms)
    return {
        **old,
        "program": new["program"],
        "entail": new["entail"],
        "bound": {name: first + number for name, number in new["bound"].items()},
        "ordinals": ordinals,
        "per stream": {iri: old["per stream"].get(iri, 0) for iri in streams},
        "delayed": delayed,
        "queries": queries,
        "tables": {
            "terms": [*terms, *new["tables"]["terms"]],
            "events": old["tables"]["events"],
        },
    }
