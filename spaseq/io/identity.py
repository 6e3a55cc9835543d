"""What rows say of matches and events, whichever task says it: texts, names and digests.

Blank nodes are named by their event, those of CONSTRUCT by the match; a digest is of all that a
match is made of. Cost: constant per term of a match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

import pyoxigraph as ox

from spaseq.io import time_column
from spaseq.io.time_column import TimeKind
from spaseq.rdf.event import Term, Timestamp
from spaseq.results import Match, Witness

_MINTED = re.compile(r"s[0-9]+e[0-9]+b([0-9]+)")
_MADE = re.compile(r"m[0-9]+n([0-9]+)")
_NONE: Mapping[Term, Term] = {}

Shown: TypeAlias = tuple[str, str, Any, int, "str | None", Iterable[str], Iterable[str]]
"""A witness in a row: GPM, stream, time, ordinal, name; its variables and their texts."""


def plain(term: Term) -> str:
    """A term as people read it: an IRI or a lexical form alone, `_:label`."""
    return str(term) if isinstance(term, ox.BlankNode) else term.value


def shown_time(time: Timestamp, kind: TimeKind) -> Any:
    """A time in a column of some kind: microseconds, or the literal."""
    return time_column.written(time, kind) if kind == "string" else time.micros


def witness_shown(witness: Witness, kind: TimeKind) -> tuple[Shown, str, Mapping[Term, Term]]:
    """What a row shows of a witness and a digest has of it, blank nodes named by the event; and
    those names by the ones that its task made up.
    """
    bound, nodes = witness.bindings, _nodes(witness)
    if nodes:
        bound = _renamed(bound, nodes)
    texts = list(map(str, bound.values()))
    pairs = "".join([f" {name} {text}" for name, text in sorted(zip(bound, texts, strict=True))])
    place = f"\n{witness.gpm} {witness.stream} {witness.time.micros} {witness.ordinal}{pairs}"
    time, name = shown_time(witness.time, kind), _name(witness)
    shown = (witness.gpm, witness.stream, time, witness.ordinal, name, tuple(bound), texts)
    return shown, place, nodes


def decoded(witness: Witness) -> tuple[Shown, str, Mapping[str, str], Mapping[str, str]]:
    """The same for compiled code, and the bindings as texts and as people read them."""
    shown, place, nodes = witness_shown(witness, "timestamp")
    bound = _renamed(witness.bindings, nodes)
    texts = {name: str(term) for name, term in bound.items()}
    return shown, place, texts, {name: plain(term) for name, term in bound.items()}


def _nodes(witness: Witness) -> Mapping[Term, Term]:
    for term in witness.bindings.values():
        if isinstance(term, ox.BlankNode):
            break
    else:
        return _NONE
    names: dict[Term, Term] = {}
    event = event_digest(witness.stream, witness.time.micros, witness.ordinal)
    for term in witness.bindings.values():
        found = _MINTED.fullmatch(term.value) if isinstance(term, ox.BlankNode) else None
        if found is not None:
            names[term] = ox.BlankNode(f"e{event}b{found[1]}")
    return names


def _name(witness: Witness) -> str | None:
    """The name of an event; a blank node is named by the event, wherever it was read."""
    if witness.graph is None:
        return None
    name = plain(witness.graph)
    if isinstance(witness.graph, ox.BlankNode) and _MINTED.fullmatch(witness.graph.value):
        return f"_:e{event_digest(witness.stream, witness.time.micros, witness.ordinal)}"
    return name


def settled(match: Match, parts: Sequence[str], names: Mapping[Term, Term]) -> Match:
    """The match with blank nodes that are named by what they belong to."""
    if names:
        match = match.__replace__(bindings=_renamed(match.bindings, names))
    if match.graph is not None:
        own = f"m{match_digest(match, parts, list(map(str, match.bindings.values())))}n"
        graph = tuple((_named(s, own, names), p, _named(o, own, names)) for s, p, o in match.graph)
        match = match.__replace__(graph=graph)
    return match


def _named(term: Term, own: str, names: Mapping[Term, Term]) -> Term:
    made = _MADE.fullmatch(term.value) if isinstance(term, ox.BlankNode) else None
    return names.get(term, term) if made is None else ox.BlankNode(own + made[1])


def _renamed(bindings: Mapping[str, Term], names: Mapping[Term, Term]) -> dict[str, Term]:
    return {variable: names.get(term, term) for variable, term in bindings.items()}


def event_digest(stream: str, micros: int, ordinal: int) -> str:
    """What tells an event from all others: its place in its stream."""
    return blake2b(f"{stream} {micros} {ordinal}".encode(), digest_size=8).hexdigest()


def match_digest(match: Match, places: Sequence[str], texts: Sequence[str]) -> str:
    """What tells a match from all others: its query, its end, and what it is made of.

    That is what `_shown` has of its witnesses, and the values of its solution.
    """
    parts = [f"{match.query} {match.end.micros}"]
    if match.boolean is None:
        parts += places
        parts += [f"\n{name} {text}" for name, text in zip(match.bindings, texts, strict=True)]
    return blake2b("".join(parts).encode(), digest_size=12).hexdigest()
