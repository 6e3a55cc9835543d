"""Texts, names and digests of matches and events that are the same in every task.

The label of a blank node is derived from its event, or for CONSTRUCT from the match. The digest of
a match covers its query, end, witnesses and solution. Cost: constant per term of a match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

import pyoxigraph as ox

from spaseq.io import time_column
from spaseq.io.time_column import TimeKind
from spaseq.rdf.event import Term, Timestamp, n_triples, nodes_of, with_nodes
from spaseq.results import Match, Witness

_MINTED = re.compile(r"s[0-9]+e[0-9]+b([0-9]+)")
_CONSTRUCTED = re.compile(r"m[0-9]+n([0-9]+)")
_NONE: Mapping[Term, Term] = {}

Shown: TypeAlias = tuple[str, str, Any, int, "str | None", Iterable[str], Iterable[str]]
"""A witness in a row: GPM, stream, time, ordinal, name, variables, texts of their terms."""


def plain(term: Term) -> str:
    """A term without delimiters: an IRI, a lexical form, `_:label`; a triple term in N-Triples."""
    if isinstance(term, ox.NamedNode | ox.Literal):
        return term.value
    return n_triples(term)


def shown_time(time: Timestamp, kind: TimeKind) -> Any:
    """A time as a value of a column: microseconds, or the lexical form for the kind "string"."""
    return time_column.written(time, kind) if kind == "string" else time.micros


def witness_shown(witness: Witness, kind: TimeKind) -> tuple[Shown, str, Mapping[Term, Term]]:
    """A witness in a row, its contribution to the digest, and the renaming of its blank nodes from
    the labels of this task to labels derived from the event.
    """
    bound, nodes = witness.bindings, _nodes(witness)
    if nodes:
        bound = _renamed(bound, nodes)
    texts = list(map(n_triples, bound.values()))
    pairs = "".join([f" {name} {text}" for name, text in sorted(zip(bound, texts, strict=True))])
    place = f"\n{witness.gpm} {witness.stream} {witness.time.micros} {witness.ordinal}{pairs}"
    time, name = shown_time(witness.time, kind), _name(witness)
    shown = (witness.gpm, witness.stream, time, witness.ordinal, name, tuple(bound), texts)
    return shown, place, nodes


def decoded(witness: Witness) -> tuple[Shown, str, Mapping[str, str], Mapping[str, str]]:
    """For compiled code: a witness in a row, its contribution to the digest, and its bindings as
    N-Triples and without delimiters.
    """
    shown, place, nodes = witness_shown(witness, "timestamp")
    bound = _renamed(witness.bindings, nodes)
    texts = {name: n_triples(term) for name, term in bound.items()}
    return shown, place, texts, {name: plain(term) for name, term in bound.items()}


def _nodes(witness: Witness) -> Mapping[Term, Term]:
    for term in witness.bindings.values():
        if isinstance(term, ox.BlankNode | ox.Triple):
            break
    else:
        return _NONE
    names: dict[Term, Term] = {}
    event = event_digest(witness.stream, witness.time.micros, witness.ordinal)
    for term in witness.bindings.values():
        for node in nodes_of(term):
            found = _MINTED.fullmatch(node.value)
            if found is not None:
                names[node] = ox.BlankNode(f"e{event}b{found[1]}")
    return names


def _name(witness: Witness) -> str | None:
    """The name of an event; the label of a blank node is derived from the event."""
    if witness.graph is None:
        return None
    name = plain(witness.graph)
    if isinstance(witness.graph, ox.BlankNode) and _MINTED.fullmatch(witness.graph.value):
        return f"_:e{event_digest(witness.stream, witness.time.micros, witness.ordinal)}"
    return name


def relabelled(match: Match, parts: Sequence[str], names: Mapping[Term, Term]) -> Match:
    """The match with blank nodes renamed by `names`, and by the match for a graph of CONSTRUCT."""
    if names:
        match = match.__replace__(bindings=_renamed(match.bindings, names))
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


def _renamed(bindings: Mapping[str, Term], names: Mapping[Term, Term]) -> dict[str, Term]:
    return {
        variable: with_nodes(term, lambda node: _of(names, node))
        for variable, term in bindings.items()
    }


def _of(names: Mapping[Term, Term], node: ox.BlankNode) -> ox.BlankNode:
    return names.get(node, node)  # type: ignore[return-value]


def event_digest(stream: str, micros: int, ordinal: int) -> str:
    """An identifier of an event, from its place in its stream."""
    return blake2b(f"{stream} {micros} {ordinal}".encode(), digest_size=8).hexdigest()


def match_digest(match: Match, places: Sequence[str], texts: Sequence[str]) -> str:
    """An identifier of a match.

    Args:
        match: the match.
        places: the contributions of its witnesses, from `witness_shown`.
        texts: the terms of its solution in N-Triples.
    """
    parts = [f"{match.query} {match.end.micros}"]
    if match.boolean is None:
        parts += places
        parts += [f"\n{name} {text}" for name, text in zip(match.bindings, texts, strict=True)]
    return blake2b("".join(parts).encode(), digest_size=12).hexdigest()
