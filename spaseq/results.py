"""Matches as the user meets them: bindings, provenance, and nothing of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spaseq.rdf.event import Fact, Term, Timestamp


@dataclass(frozen=True, slots=True)
class Witness:
    """One event of a match: which GPM accepted which event, with which mapping."""

    gpm: str
    stream: str
    time: Timestamp
    ordinal: int
    graph: Term | None
    bindings: Mapping[str, Term]


@dataclass(frozen=True, slots=True)
class Match:
    """One result of one query.

    `bindings` is the solution of a SELECT (unbound variables left out), `graph` the triples
    of a CONSTRUCT, `boolean` True for an ASK. `start` is the time of the first event, `end`
    that of the last, or the closing time for a match that had to wait for its window to close.
    `variables` names the projected columns in order.
    """

    query: str
    start: Timestamp
    end: Timestamp
    bindings: Mapping[str, Term]
    events: tuple[Witness, ...]
    variables: tuple[str, ...] = ()
    graph: tuple[Fact, ...] | None = None
    boolean: bool | None = None
