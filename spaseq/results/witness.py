"""What a match is made of: one event for each step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spaseq.rdf.event import Term, Timestamp


@dataclass(frozen=True, slots=True)
class Witness:
    """One event of a match: which GPM accepted which event, with which mapping."""

    gpm: str
    stream: str
    time: Timestamp
    ordinal: int
    graph: Term | None
    bindings: Mapping[str, Term]
