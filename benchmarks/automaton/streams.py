"""Streams with one triple per event, the same for every engine.

An event is (kind, key, value): the triple `:k<key> :<kind> <value>`. Its time in seconds is the
number of events before it, so a window of n seconds contains n + 1 events. The seeds and the order
of the draws are fixed, so the published numbers of matches (W1 to W4) hold for every generation.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import cache

import pyoxigraph as ox

import spaseq
from spaseq.generate.chance import Fractal
from spaseq.rdf.native._terms import EventBatch

EX = "http://example.org/"
STREAM = EX + "s"
DECIMAL = "http://www.w3.org/2001/XMLSchema#decimal"
SECOND = 1_000_000
BATCH = 1000

Happening = tuple[str, int, float]
"""(kind, key, value) of an event; a decimal value has two digits of fraction."""

NOISE = [f"B{number}" for number in range(1, 7)]
SEEDS = {"w1_3": 1000, "w1_5": 1001, "w1_7": 1002, "w1_9": 1003, "w2": 1004, "w3": 1005, "w4": 1006}


@cache
def steps(length: int, count: int) -> Sequence[Happening]:
    """W1: A1 … An and six kinds of noise, all equally likely."""
    kinds = [f"A{number}" for number in range(1, length + 1)] + NOISE
    return _uniform(kinds, SEEDS[f"w1_{length}"], count)


@cache
def unfinished(count: int) -> Sequence[Happening]:
    """W2: A1, A2 and six kinds of noise; A3 never occurs."""
    return _uniform(["A1", "A2", *NOISE], SEEDS["w2"], count)


@cache
def repeated(count: int) -> Sequence[Happening]:
    """W3: A, B, C and six kinds of noise."""
    return _uniform(["A", "B", "C"] + [f"N{n}" for n in range(1, 7)], SEEDS["w3"], count)


@cache
def dealing(names: int, count: int) -> Sequence[Happening]:
    """W4: purchases and sales under one of several names, at prices of 70 to 130."""
    chance = random.Random(SEEDS["w4"])
    prices = [100] * names
    found = []
    for _ in range(count):
        name = chance.choice(range(names))
        price = prices[name] + chance.choice((-3, -2, -1, 1, 2, 3))
        prices[name] = min(130, max(70, price))
        found.append((chance.choice(("BUY", "SELL")), name, prices[name]))
    return found


@cache
def dealing_in_parts(names: int, count: int) -> Sequence[Happening]:
    """W4 with uniformly distributed hundredths of prices."""
    chance = random.Random(6)
    return [
        (kind, name, round(price + chance.randrange(100) / 100, 2))
        for kind, name, price in dealing(names, count)
    ]


@cache
def prices(companies: int, count: int) -> Sequence[Happening]:
    """Prices of companies, each following a fractal curve."""
    chance = random.Random(1)
    curves = [Fractal(chance) for _ in range(companies)]
    found = []
    for _ in range(count):
        company = int(companies * chance.random())
        found.append(("price", company, int(10_000 * (1 + 0.4 * curves[company].step()))))
    return found


@cache
def rare_end(count: int) -> Sequence[Happening]:
    """A, B and noise at a million prices; one event in a thousand is a C at a high price."""
    chance = random.Random(2)
    found = []
    for _ in range(count):
        if chance.random() < 0.001:
            found.append(("C", 0, 900_000 + int(100_000 * chance.random())))
        else:
            kind = chance.choice(["A", "B", *(f"N{n}" for n in range(1, 7))])
            found.append((kind, 0, int(1_000_000 * chance.random())))
    return found


@cache
def rarely(frequent: str, rare: str, count: int) -> Sequence[Happening]:
    """Equally likely kinds with values up to a thousand; one event in 10,000 has a rare kind."""
    chance = random.Random(5)
    return [
        (rare if chance.random() < 0.0001 else chance.choice(frequent), 0, chance.randint(1, 1000))
        for _ in range(count)
    ]


@cache
def keyed(keys: int, count: int) -> Sequence[Happening]:
    """A and B, equally likely, of several keys."""
    chance = random.Random(3)
    return [(chance.choice("AB"), int(keys * chance.random()), 0) for _ in range(count)]


@cache
def dense(count: int) -> Sequence[Happening]:
    """A, B and C, equally likely, without noise."""
    return _uniform(["A", "B", "C"], 4, count)


def _uniform(kinds: Sequence[str], seed: int, count: int) -> Sequence[Happening]:
    chance = random.Random(seed)
    return [(chance.choice(kinds), 0, 0) for _ in range(count)]


# ------------------------------------------------------------------ for the engine


def _literal(value: float) -> ox.Literal:
    if isinstance(value, int):
        return ox.Literal(value)
    return ox.Literal(f"{value:.2f}", datatype=ox.NamedNode(DECIMAL))


class Triples:
    """The triple of an event; repeated terms are cached."""

    def __init__(self) -> None:
        self.predicate = cache(lambda kind: ox.NamedNode(EX + kind))
        self.value = cache(_literal)

    def of(self, event: Happening) -> tuple[ox.NamedNode, ox.NamedNode, ox.Literal]:
        kind, key, value = event
        return ox.NamedNode(f"{EX}k{key}"), self.predicate(kind), self.value(value)


def encoded(
    run: spaseq.Run, events: Iterable[Happening], size: int = BATCH, first: int = 0
) -> list[EventBatch]:
    """Events in encoded batches of a run, without pruning."""
    triples = Triples()
    dictionary = run.relevance.dictionary
    batches: list[EventBatch] = []
    for number, event in enumerate(events, first):
        if not batches or len(batches[-1]) == size:
            batches.append(EventBatch(dictionary, stream=STREAM))
        batches[-1].add([triples.of(event)], number * SECOND)
    return batches
