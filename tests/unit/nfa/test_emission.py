"""EMIT over sets of events written as strings: `a` is an earlier event than `b`."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from model.contiguity import Contiguity
from nfa_queries import planned, register_file

from spaseq.nfa.automaton import Edge
from spaseq.nfa.match_path import Path, Step, Witnessed
from spaseq.nfa.selection import choose
from spaseq.rdf.event import NUMBER, Event, Timestamp

STREAMS = {"urn:first": 0, "urn:second": 1}


def path(events: str, key: str = "") -> Path:
    """A match of these events; capitals are events of the second stream."""
    witnesses = []
    for letter in events:
        stream = "urn:second" if letter.isupper() else "urn:first"
        instant = ord(letter.lower()) - ord("a")
        time = Timestamp(instant, NUMBER, ox.Literal(instant))
        witnesses.append(Witnessed(0, Event(stream, time, 0, ()), (), instant))
    return Path(0, (key,), tuple(Step(Edge(0), (witness,)) for witness in witnesses))


def chosen(mode: str, *matches: str) -> set[str]:
    paths = {path(events): events for events in matches}
    contiguity = Contiguity(register_file(planned("A")))
    return {paths[one] for one in choose(paths, mode, STREAMS, contiguity)}


@pytest.mark.parametrize(
    ("mode", "matches", "expected"),
    [
        ("ALL", "ad bd cd", "ad bd cd"),
        ("NEXT", "ad bd cd", "ad"),
        ("NEXT", "ad abd acd", "abd"),
        ("LAST", "ad bd cd", "cd"),
        ("LAST", "ad abd acd", "acd"),
        ("LAST", "abd cd", "cd"),
        ("MAX", "ad abd acd cd", "abd acd"),
        ("MAX", "ab cd", "ab cd"),
        ("STRICT", "abc ac bc", "abc bc"),
        ("NEXT", "ac Ac", "ac"),
        ("LAST", "ac Ac", "ac"),
    ],
)
def test_modes(mode: str, matches: str, expected: str) -> None:
    assert chosen(mode, *matches.split()) == set(expected.split())


@pytest.mark.parametrize(
    ("matches", "first"),
    [("ad bd cd", "ad"), ("abd acd bd", "abd"), ("ad abd", "abd"), ("ac Ac", "ac"),
     ("Ac ad", "Ac"), ("aBd aCd abD", "abD")],
)  # fmt: skip
def test_any_takes_the_first_in_the_order_of_results(matches: str, first: str) -> None:
    """All instants come before all streams: of `Ac` and `ad` the former, unlike with NEXT."""
    assert chosen("ANY", *matches.split()) == {first}
    assert (chosen("NEXT", *matches.split()) == {first}) == (matches != "Ac ad")


def test_matches_of_the_same_events_stay_together() -> None:
    twins = [path("ad"), path("ad"), path("cd")]
    contiguity = Contiguity(register_file(planned("A")))
    assert len(choose(twins, "NEXT", STREAMS, contiguity)) == 2


def test_partitions_do_not_compete() -> None:
    paths = [path("ad", "x"), path("bd", "x"), path("cd", "y")]
    contiguity = Contiguity(register_file(planned("A")))
    assert choose(paths, "NEXT", STREAMS, contiguity) == [paths[0], paths[2]]
