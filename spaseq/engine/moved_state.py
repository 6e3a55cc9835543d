"""Saved state of other queries → saved state of a program.

Queries that are kept continue the partial matches found so far as if their new versions had found
them; `spaseq.engine.continuing` decides whether they fit. Queries that drain also continue them,
but begin no others. All other queries begin at the time of the run.

The result is data like the argument, so resuming from it validates it like any saved state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from spaseq.engine.checkpoint import save
from spaseq.engine.envelope import seal, unseal
from spaseq.engine.evaluation import Evaluation
from spaseq.errors import StateError
from spaseq.rdf.checked import LEAST


def moved(
    blob: bytes, fresh: Evaluation, kept: Mapping[str, str], draining: Collection[str] = ()
) -> bytes:
    """The state of a run of other queries, for a run of the program of `fresh`.

    Args:
        blob: The saved state.
        fresh: A run of the program that has had no event.
        kept: The names of the queries that keep their state, and their names in the saved run; all
            must fit (`spaseq.engine.continuing.saved_difference`).
        draining: Those among them that begin no further partial matches.

    Raises:
        StateError: if the blob is damaged, if a query that drains registers a stream or reads a
            registered one, or if queries of either run are evaluated as one.
    """
    old, new = unseal(blob), unseal(save(fresh))
    try:
        return seal(_moved(old, new, fresh, kept, draining))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise StateError(f"the saved state is damaged: {error!r}") from error


def _moved(
    old: dict[str, Any],
    new: dict[str, Any],
    fresh: Evaluation,
    kept: Mapping[str, str],
    draining: Collection[str],
) -> dict[str, Any]:
    if old["templates"] or fresh.listed.divisions:
        raise StateError("queries that are evaluated as one have no states of their own")
    streams = fresh.listed.program.streams
    ordinals = {iri: number for iri, number in old["ordinals"].items() if iri in streams}
    places = {name: number for number, name in enumerate(_names(old))}
    is_open = old["time"] is not None and old["time"][0] == old["closed"]
    queries, delayed = [], []
    for number, name in enumerate(_names(new)):
        query = fresh.listed.entries[number]
        own = query.plan.streams
        if name in kept:
            place = places[kept[name]]
            part = old["queries"][place]
            if name in draining:
                if old["delayed"][place] or query.plan.registers_stream is not None:
                    raise StateError(
                        f"the query {kept[name]} cannot drain, since it registers a stream or "
                        "reads a registered one"
                    )
                part = _draining(part, old["closed"])
            queries.append(part)
            delayed.append(old["delayed"][place])
            continue
        is_read = is_open and query.executor.direct and not ordinals.keys().isdisjoint(own)
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
        "order": new["order"],
        "entail": new["entail"],
        "bound": {name: first + number for name, number in new["bound"].items()},
        "ordinals": ordinals,
        **{
            part: {iri: number for iri, number in old[part].items() if iri in fresh.listed.written}
            for part in ("derived time", "derived ordinal")
        },
        "per stream": {iri: old["per stream"].get(iri, 0) for iri in streams},
        "delayed": delayed,
        "queries": queries,
        "tables": {
            "terms": [*terms, *new["tables"]["terms"]],
            "events": old["tables"]["events"],
        },
    }


def _names(state: dict[str, Any]) -> list[str]:
    """The names of the queries, in the order of their states: writers of streams come first."""
    return [state["program"][position][0] for position in state["order"]]


def _draining(query: dict[str, Any], closed: int | None) -> dict[str, Any]:
    """The state of a query that begins no further partial matches, as `QueryRun.drain` makes it."""
    automaton = query["automaton"]
    instant = automaton["clock"][0] + len(query["queued"])
    last = [instant, LEAST if closed is None else closed]
    return query | {"automaton": automaton | {"last start": last}}
