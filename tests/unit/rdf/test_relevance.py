"""What readers keep of an event: by predicate, by predicate and object, or all of it."""

from __future__ import annotations

import random
from pathlib import Path

import pyoxigraph as ox
import pytest

from spaseq.io.source import Source
from spaseq.rdf.native._terms import Dictionary, Relevance

EX = "http://e/"
PREDICATES = tuple(ox.NamedNode(f"{EX}p{n}") for n in range(12))
VALUES = (
    *(ox.NamedNode(f"{EX}v{n}") for n in range(6)),
    *map(ox.Literal, range(6)),
    ox.Literal("1", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#decimal")),
    ox.Literal("v"),
    ox.Literal("v", language="en"),
)
A = ox.NamedNode(EX + "a")


def kept(uses, facts, folder: Path) -> list:
    """What a reader keeps of one event for these uses."""
    graph = ox.NamedNode(EX + "g")
    stamp = ox.Quad(graph, ox.NamedNode("http://www.w3.org/ns/prov#generatedAtTime"), ox.Literal(1))
    lines = [stamp, *(ox.Quad(*fact, graph) for fact in facts)]
    path = folder / "events.nq"
    path.write_text("".join(f"{line} .\n" for line in lines), "utf-8")
    relevance = Relevance(Dictionary(), uses)
    (batch,) = Source("urn:s", [str(path)], relevance=relevance).batches()
    assert batch.size(0) == len(facts)
    return batch.facts(0)


def useful(uses, fact) -> bool:
    """The same, from the definition."""
    return uses is None or (fact[1], None) in uses or (fact[1], fact[2]) in uses


@pytest.mark.parametrize("seed", range(8))
def test_a_triple_is_kept_if_some_use_is_of_it(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    facts = [(A, p, value) for p in PREDICATES for value in VALUES]
    uses = {
        (chance.choice(PREDICATES[:9]), chance.choice((None, *VALUES * 2)))
        for _ in range(chance.choice((1, 4, 40)))
    }
    expected = [fact for fact in facts if useful(uses, fact)]
    assert kept(uses, facts, tmp_path) == expected
    assert len(expected) < len(facts)


def test_every_object_wins_over_some_whatever_comes_first(tmp_path: Path) -> None:
    p, q = PREDICATES[:2]
    facts = [(A, p, value) for value in VALUES] + [(A, q, value) for value in VALUES]
    for uses in ([(p, None), (p, VALUES[0])], [(p, VALUES[0]), (p, None)]):
        assert kept(uses, facts, tmp_path) == facts[: len(VALUES)]


def test_nothing_and_everything(tmp_path: Path) -> None:
    facts = [(A, PREDICATES[0], VALUES[0]), (A, PREDICATES[1], VALUES[1])]
    assert kept((), facts, tmp_path) == []
    assert kept(None, facts, tmp_path) == facts
    assert Relevance(Dictionary()).everything
    assert not Relevance(Dictionary(), ()).everything


def test_a_term_that_is_permanent_for_another_reason_is_not_kept(tmp_path: Path) -> None:
    """An object of a use is no predicate of one, though its number is as small."""
    p, q = PREDICATES[:2]
    facts = [(A, p, q), (A, q, p), (A, p, p)]
    assert kept([(p, q)], facts, tmp_path) == [(A, p, q)]


def test_what_is_named_becomes_permanent() -> None:
    dictionary = Dictionary()
    Relevance(dictionary, [(PREDICATES[0], None), (PREDICATES[0], VALUES[0])])
    assert len(dictionary) == 2
