"""Witnesses: the events of a match."""

from __future__ import annotations

from collections.abc import Mapping

from spaseq.rdf.event import Term, Timestamp
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class Witness:
    """One event of a match: the GPM that matched it, the event, and the GPM's solution."""

    gpm: str
    stream: str
    time: Timestamp
    ordinal: int
    graph: Term | None
    bindings: Mapping[str, Term]
