"""The texts and names of events and terms in rows, which are the same in every task.

The labels of blank nodes are those of `spaseq.results.identity`. Cost: constant per term.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import pyoxigraph as ox

from spaseq.rdf.event import Term, Timestamp, n_triples
from spaseq.rdf.time import canonical_literal
from spaseq.results import Match, Witness
from spaseq.results.identity import (
    MINTED,
    event_digest,
    new_labels,
    place_of,
    relabelled,
    renamed,
)

TimeKind: TypeAlias = Literal["timestamp", "decimal", "string"]
"""How a column contains times: dates, numbers of seconds, or lexical forms."""

Shown: TypeAlias = tuple[str, str, Any, int, "str | None", Iterable[str], Iterable[str]]
"""A witness in a row: GPM, stream, time, ordinal, name, variables, texts of their terms."""


def plain(term: Term) -> str:
    """A term without delimiters: an IRI, a lexical form, `_:label`; a triple term in N-Triples."""
    if isinstance(term, ox.NamedNode | ox.Literal):
        return term.value
    return n_triples(term)


def written_time(time: Timestamp, kind: TimeKind) -> Any:
    """A time as a value of a result."""
    if kind == "timestamp":
        return time.micros  # the value of Arrow's type
    if kind == "decimal":
        return Decimal(time.micros).scaleb(-6)
    return canonical_literal(time).value


def shown_time(time: Timestamp, kind: TimeKind) -> Any:
    """A time as a value of a column: microseconds, or the lexical form for the kind "string"."""
    return written_time(time, kind) if kind == "string" else time.micros


def witness_shown(
    witness: Witness, kind: TimeKind, origin: str = ""
) -> tuple[Shown, str, Mapping[Term, Term]]:
    """A witness in a row, its contribution to the digest, and the renaming of its blank nodes from
    the labels of this task to labels derived from the event. `spaseq.results.identity` describes
    `origin`.
    """
    bound, nodes = witness.bindings, new_labels(witness, origin)
    if nodes:
        bound = renamed(bound, nodes)
    texts = list(map(n_triples, bound.values()))
    place = place_of(witness, bound, texts, origin)
    time, name = shown_time(witness.time, kind), _name(witness, origin)
    shown = (witness.gpm, witness.stream, time, witness.ordinal, name, tuple(bound), texts)
    return shown, place, nodes


def decoded(witness: Witness) -> tuple[Shown, str, Mapping[str, str], Mapping[str, str]]:
    """For compiled code: a witness in a row, its contribution to the digest, and its bindings as
    N-Triples and without delimiters.
    """
    shown, place, nodes = witness_shown(witness, "timestamp")
    bound = renamed(witness.bindings, nodes)
    texts = {name: n_triples(term) for name, term in bound.items()}
    return shown, place, texts, {name: plain(term) for name, term in bound.items()}


def solution_shown(match: Match) -> Mapping[str, tuple[bytes, bytes]]:
    """For compiled code: the solution of a match, in N-Triples and without delimiters."""
    parts, nodes = [], dict[Term, Term]()
    for witness in match.events:
        _, part, own = witness_shown(witness, "timestamp")
        parts.append(part)
        nodes |= own
    bindings = relabelled(match, parts, nodes).bindings
    return {
        name: (n_triples(term).encode(), plain(term).encode()) for name, term in bindings.items()
    }


def _name(witness: Witness, origin: str) -> str | None:
    """The name of an event; the label of a blank node is derived from the event."""
    if witness.graph is None:
        return None
    name = plain(witness.graph)
    if isinstance(witness.graph, ox.BlankNode) and MINTED.fullmatch(witness.graph.value):
        micros = witness.time.micros
        return f"_:e{event_digest(witness.stream, micros, witness.ordinal, origin)}"
    return name
