"""The window's terms against a five-line model, and their memory on a long stream."""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest

from spaseq.rdf.native._terms import Dictionary, EventBatch, WindowTerms

P = ox.NamedNode("http://e/p")
EPOCH_MIN_TERMS = 256
"""So many terms are not sorted by when they were used last."""


def _batch(dictionary: Dictionary, terms: list[ox.NamedNode]) -> tuple[EventBatch, list[int]]:
    """A batch with these terms, and their numbers there."""
    batch = EventBatch(dictionary)
    batch.add([(term, P, term) for term in terms])
    numbers = {batch.term(n): n for n in map(batch.number, terms)}
    return batch, [numbers[term] for term in terms]


def test_equal_terms_of_different_batches_are_one_object() -> None:
    window = WindowTerms(100)
    term = ox.NamedNode("http://e/a")
    seen = []
    for position in range(3):
        window.advance(position)
        batch, (number,) = _batch(Dictionary(), [term])
        seen.append(window.intern_term(batch, number))
    assert seen[0] == term
    assert seen[1] is seen[0] is seen[2]
    assert window.live == 1
    assert window.entered == 3


def test_permanent_terms_are_not_entered() -> None:
    dictionary = Dictionary()
    term = ox.NamedNode("http://e/a")
    dictionary.intern(term)
    batch, (number,) = _batch(dictionary, [term])
    window = WindowTerms(100)
    assert window.intern_term(batch, number) == term
    assert window.entered == 0


@pytest.mark.parametrize("seed", range(5))
def test_nothing_in_the_window_is_forgotten_and_nothing_old_is_kept(seed: int) -> None:
    chance = random.Random(seed)
    horizon = chance.choice([0, 3, 50, 1000])
    window = WindowTerms(horizon)
    names = [ox.NamedNode(f"http://e/{'x' * chance.randrange(40)}{n}") for n in range(3000)]
    last: dict[ox.NamedNode, tuple[int, object]] = {}
    position = 0
    for _ in range(400):
        position += chance.choice([0, 1, 2, 30, horizon // 3 + 1])
        window.advance(position)
        some = chance.sample(names, chance.randrange(1, 60))
        batch, numbers = _batch(Dictionary(), some)
        for term, number in zip(some, numbers, strict=True):
            found = window.intern_term(batch, number)
            assert found == term
            before = last.get(term)
            if before is not None and position - before[0] <= horizon:
                assert found is before[1]
            last[term] = position, found
        reached = [term for term, (at, _) in last.items() if position - at <= horizon]
        ever = [term for term, (at, _) in last.items() if position - at <= 2 * horizon + 60]
        assert len(reached) <= window.live <= len(ever) + EPOCH_MIN_TERMS


def test_memory_is_that_of_the_window_however_long_the_stream() -> None:
    window = WindowTerms(2000)
    dictionary = Dictionary()
    batch = EventBatch(dictionary)
    greatest = []
    for part in range(4):
        most = 0
        for step in range(8_000):
            position = part * 8_000 + step
            window.advance(position)
            batch.clear()
            term = ox.NamedNode(f"http://example.org/reading/{position:08}")
            batch.add([(term, P, term)])
            window.intern_term(batch, batch.number(term))
            most = max(most, window.live, window.bytes // 48)
        greatest.append(most)
    assert greatest[-1] <= greatest[0]
    assert greatest[0] <= 3_200
    assert len(dictionary) == 0


def test_long_texts_go_with_the_window_though_they_are_few() -> None:
    window = WindowTerms(10)
    for position in range(100):
        window.advance(position)
        batch, (number,) = _batch(Dictionary(), [ox.NamedNode(f"http://e/{position:010000}")])
        window.intern_term(batch, number)
        assert window.bytes < 30 * 10_100


def test_what_comes_again_and_again_is_copied_once() -> None:
    window = WindowTerms(4)
    terms = [ox.NamedNode(f"http://e/{n}") for n in range(EPOCH_MIN_TERMS - 1)]
    batch, numbers = _batch(Dictionary(), terms)
    for position in range(100):
        window.advance(position)
        for number in numbers:
            window.intern_term(batch, number)
    assert window.live == len(terms)
    assert window.bytes <= 32 * len(terms)


@pytest.mark.parametrize("seed", range(5))
def test_a_batch_that_lives_longer_than_the_window_may_be_asked_again(seed: int) -> None:
    """What a batch was told of a term's number does not outlive it, and is not another window's."""
    chance = random.Random(seed)
    horizon = chance.choice([0, 3, 50, 1000])
    windows = [WindowTerms(horizon) for _ in range(2)]
    names = [ox.NamedNode(f"http://e/{'x' * (n % 40)}{n}") for n in range(600)]
    batches = [_batch(Dictionary(), chance.sample(names, 400)) for _ in range(4)]
    position = 0
    last: dict[tuple[int, ox.NamedNode], tuple[int, object]] = {}
    for _ in range(600):
        position += chance.choice([0, 0, 1, horizon // 4 + 1, 3 * horizon])
        which = chance.randrange(2)
        windows[which].advance(position)
        batch, numbers = chance.choice(batches)
        for number in chance.sample(numbers, chance.choice([1, 6, 300])):
            found = windows[which].intern_term(batch, number)
            assert found == batch.term(number)
            before = last.get((which, found))
            if before is not None and position - before[0] <= horizon:
                assert found is before[1]
            last[which, found] = position, found
