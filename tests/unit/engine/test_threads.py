"""Threads that share a program, or the matches of a run, with the interpreter's lock or without."""

from __future__ import annotations

import random
from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.results import Match

STREAM = "http://example.org/S"
TEXT = (
    f"PREFIX : <http://example.org/> SELECT ?k ?a ?b WITHIN 30 SECONDS FROM STREAM S <{STREAM}> "
    "WHERE { SEQ(A : B) DEFINE GPM A ON S { ?k :pA ?a } DEFINE GPM B ON S { ?k :pB ?b } }"
)
GROUPED = (
    "PREFIX : <http://example.org/> SELECT ?k (AVG(?a) AS ?mean) WITHIN 1 HOUR "
    f"FROM STREAM S <{STREAM}> "
    "WHERE { SEQ(A) DEFINE GPM A ON S { ?k :pA ?a } } GROUP BY ?k OVER 30 SECONDS"
)
THREADS = 4


def in_threads(work: Callable[[int], Any]) -> list[Any]:
    """The results of threads that begin together."""
    results: list[Any] = [None] * THREADS
    barrier = Barrier(THREADS)

    def begin(number: int) -> None:
        barrier.wait()
        results[number] = work(number)

    threads = [Thread(target=begin, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def matched(program: spaseq.Program) -> list[Match]:
    run, found = program.start(), list[Match]()
    for number in range(150):
        about = ox.NamedNode(f"http://example.org/k{number % 3}")
        predicate = ox.NamedNode(f"http://example.org/p{'AB'[number // 2 % 2]}")
        fact = ox.Triple(about, predicate, ox.Literal(number))
        found += run.push(STREAM, number, [fact], f"http://example.org/g{number}")
    return found + run.finish()


def shown(match: Match) -> tuple[Any, ...]:
    return (match.start, match.end, match.bindings, match.events, match.to_json())


@pytest.mark.parametrize("text", [TEXT, GROUPED])
def test_threads_share_a_program(text: str) -> None:
    program = spaseq.compile(text)
    expected = [match.to_json() for match in matched(program)]
    assert len(expected) > 50
    for found in in_threads(lambda _: [match.to_json() for match in matched(program)]):
        assert found == expected


@pytest.mark.parametrize("text", [TEXT, GROUPED])
def test_threads_read_the_same_matches(text: str) -> None:
    """Matches are decoded when they are read first; those of one event share it."""
    program = spaseq.compile(text)
    expected = list(map(shown, matched(program)))
    matches = matched(program)

    def read(number: int) -> list[tuple[Any, ...]]:
        order = list(range(len(matches)))
        random.Random(number % 2).shuffle(order)
        found = {place: shown(matches[place]) for place in order}
        return [found[place] for place in range(len(matches))]

    assert in_threads(read) == [expected] * THREADS
