"""Short programs and events for the tests of the engine."""

from __future__ import annotations

from collections.abc import Iterable

import pyoxigraph as ox

import spaseq
from spaseq.results import Match

EX = "http://example.org/"
S, R = EX + "s", EX + "r"

AB = "SEQ(A ; B)"
GPMS = "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?k :b ?y }"


def text(
    seq: str = AB,
    gpms: str = GPMS,
    head: str = "SELECT *",
    clauses: str = "WITHIN 10 SECONDS",
    streams: str = "FROM STREAM s :s",
) -> str:
    """A query; by default an `a` and the next `b` of the same subject within 10 seconds."""
    return f"PREFIX : <{EX}> {head} {clauses} {streams} WHERE {{ {seq} {gpms} }}"


def program(*args: str, **kwargs: str) -> spaseq.Program:
    return spaseq.compile(text(*args, **kwargs))


def triples(facts: str) -> list[ox.Triple]:
    """`k a 1, k b 2`: triples of names and numbers, separated by commas."""
    out = []
    for fact in filter(None, (part.split() for part in facts.split(","))):
        subject, predicate, object_ = fact
        value: ox.NamedNode | ox.Literal
        try:
            value = ox.Literal(int(object_))
        except ValueError:
            value = ox.NamedNode(EX + object_)
        out.append(ox.Triple(ox.NamedNode(EX + subject), ox.NamedNode(EX + predicate), value))
    return out


def push(run: spaseq.Run, time: object, facts: str, stream: str = S) -> list[str]:
    """What an event gives at once, as `shown`."""
    return shown(run.push(stream, time, triples(facts)))


def shown(matches: Iterable[Match]) -> list[str]:
    """Each match as `A@1 B@2` with the seconds of its events; unordered."""
    return sorted(
        " ".join(f"{event.gpm}@{event.time.micros / 1e6:g}" for event in match.events)
        for match in matches
    )
