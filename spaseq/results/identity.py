"""Identifiers of matches and events: digests and labels that are the same in every run.

The label of a blank node is derived from its event, or for CONSTRUCT from the match. The digest of
a match covers its query, end, witnesses and solution. Stream, time and ordinal identify an event;
where ordinals count within parts of a stream, a text `origin` identifies it as well. Cost: constant
per term of a match.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyoxigraph as ox

from spaseq.rdf.event import Term, n_triples, nodes_of, with_nodes

if TYPE_CHECKING:
    from spaseq.results.native._match import Match
    from spaseq.results.witness import Witness

MINTED = re.compile(r"s[0-9]+e[0-9]+b([0-9]+)")
"""The label of a blank node of an event of a source; it depends on the events before."""
_CONSTRUCTED = re.compile(r"m[0-9]+n([0-9]+)")
_NONE: Mapping[Term, Term] = {}


def match_id(match: Match) -> str:
    """The identifier of a match: the digest of it with the labels below."""
    places, names = [], dict[Term, Term]()
    for witness in match.events:
        own = new_labels(witness)
        bound = renamed(witness.bindings, own) if own else witness.bindings
        places.append(place_of(witness, bound, list(map(n_triples, bound.values()))))
        names |= own
    match = relabelled(match, places, names)
    return match_digest(match, places, list(map(n_triples, match.bindings.values())))


def place_of(
    witness: Witness, bound: Mapping[str, Term], texts: Sequence[str], origin: str = ""
) -> str:
    """The contribution of a witness to the digest of its match.

    Args:
        witness: the witness.
        bound: its bindings with the labels of `new_labels`.
        texts: the terms of these bindings in N-Triples.
        origin: what identifies the event besides.
    """
    pairs = "".join([f" {name} {text}" for name, text in sorted(zip(bound, texts, strict=True))])
    ordinal = f"{witness.ordinal} {origin}" if origin else witness.ordinal
    return f"\n{witness.gpm} {witness.stream} {witness.time.micros} {ordinal}{pairs}"


def new_labels(witness: Witness, origin: str = "") -> Mapping[Term, Term]:
    """The blank nodes of a witness → blank nodes with labels derived from its event."""
    for term in witness.bindings.values():
        if isinstance(term, ox.BlankNode | ox.Triple):
            break
    else:
        return _NONE
    names: dict[Term, Term] = {}
    event = event_digest(witness.stream, witness.time.micros, witness.ordinal, origin)
    for term in witness.bindings.values():
        for node in nodes_of(term):
            found = MINTED.fullmatch(node.value)
            if found is not None:
                names[node] = ox.BlankNode(f"e{event}b{found[1]}")
    return names


def relabelled(match: Match, parts: Sequence[str], names: Mapping[Term, Term]) -> Match:
    """The match with blank nodes renamed by `names`, and by the match for a graph of CONSTRUCT."""
    if names:
        match = match.__replace__(bindings=renamed(match.bindings, names))
    if match.graph is not None:
        own = f"m{match_digest(match, parts, list(map(n_triples, match.bindings.values())))}n"
        graph = tuple((_named(s, own, names), p, _named(o, own, names)) for s, p, o in match.graph)
        match = match.__replace__(graph=graph)
    return match


def _named(term: Term, own: str, names: Mapping[Term, Term]) -> Term:
    def change(node: ox.BlankNode) -> ox.BlankNode:
        made = _CONSTRUCTED.fullmatch(node.value)
        return _of(names, node) if made is None else ox.BlankNode(own + made[1])

    return with_nodes(term, change)


def renamed(bindings: Mapping[str, Term], names: Mapping[Term, Term]) -> dict[str, Term]:
    """The bindings with other blank nodes."""
    return {
        variable: with_nodes(term, lambda node: _of(names, node))
        for variable, term in bindings.items()
    }


def _of(names: Mapping[Term, Term], node: ox.BlankNode) -> ox.BlankNode:
    return names.get(node, node)  # type: ignore[return-value]


def event_digest(stream: str, micros: int, ordinal: int, origin: str = "") -> str:
    """An identifier of an event, from its place in its stream."""
    return _digest(f"{stream} {micros} {ordinal}{origin and ' '}{origin}", 8)


def match_digest(match: Match, places: Sequence[str], texts: Sequence[str]) -> str:
    """An identifier of a match.

    Args:
        match: the match.
        places: the contributions of its witnesses, from `place_of`.
        texts: the terms of its solution in N-Triples.
    """
    parts = [f"{match.query} {match.end.micros}"]
    if match.boolean is None:
        parts += places
        parts += [f"\n{name} {text}" for name, text in zip(match.bindings, texts, strict=True)]
    return _digest("".join(parts), 12)


def _digest(text: str, size: int) -> str:
    # Imported here, because it loads OpenSSL, and most runs on the command line need no digest.
    from hashlib import blake2b

    return blake2b(text.encode(), digest_size=size).hexdigest()
