"""Saved state of other queries → saved state of a program.

Queries that are kept continue the partial matches found so far as if their new versions had found
them; `spaseq.engine.continuing` says where these fit. Other queries begin at the time of the run.

The result is data like the argument, so resuming it validates it as any saved state.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from spaseq.engine.checkpoint import save
from spaseq.engine.envelope import seal, unseal
from spaseq.engine.evaluation import Evaluation
from spaseq.errors import StateError


def moved(blob: bytes, fresh: Evaluation, kept: Collection[str]) -> bytes:
    """The state of a run of other queries, for a run of the program of `fresh`.

    Args:
        blob: The saved state.
        fresh: A run of the program that has had no event.
        kept: The names of the queries that keep their state; all must fit
            (`spaseq.engine.continuing.saved_difference`).

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
