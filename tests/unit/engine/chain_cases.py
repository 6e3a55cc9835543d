"""Queries and streams for chains of steps whose correlations have no index."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

import pyoxigraph as ox
from oracle import timestamp
from strategies import DAY, EXAMPLE, Case, iri

from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Fact

PREDICATES = "pqrst"
PAIRS = (
    "?{a} + ?{b} > {n}",
    "?{a} * ?{b} < 7 - {n}",
    "ABS(?{a} - ?{b}) < 2",
    "?{a} != ?{b}",
    "?{a} * ?{b} > {n}",
    "CONTAINS(STR(?{a}), STR(?{b}))",
    "?{b} > ?{a} + 0",
    'REPLACE(STR(?{a}), "1|^$", "2") != STR(?{b})',
)
"""Of an earlier step and a later one."""
OTHERS = (
    "?{b} > ?{a}",
    "?{b} = ?{a}",
    "?{a} IN (?{b}, 1)",
    "BOUND(?o) || ?{b} != ?{a}",
    "COALESCE(?o, 1) < ?{b}",
)


class _Chain:
    """One drawn query."""

    def __init__(self, chance: random.Random, streams: Sequence[str]):
        self.chance = chance
        self.streams = streams
        self.length = chance.choice((3, 3, 3, 4, 4, 5))
        self.keyed = chance.random() < 0.3
        self.shared = self.keyed or chance.random() < 0.4
        self.predicates = [
            chance.choice(PREDICATES) if chance.random() < 0.3 else PREDICATES[step]
            for step in range(self.length)
        ]
        self.optional = {s for s in range(self.length) if chance.random() < 0.15}
        correlated = chance.randint(1, self.length - 2)
        self.gpms = [self._gpm(step, step == correlated) for step in range(self.length)]

    def _gpm(self, step: int, correlated: bool) -> str:
        chance = self.chance
        subject = "?k" if self.shared and (self.keyed or chance.random() < 0.7) else f"?s{step}"
        parts = [f"{subject} :{self.predicates[step]} ?v{step}"]
        if step in self.optional:
            parts.append(f"OPTIONAL {{ {subject} :o ?o }}")
        if chance.random() < 0.1:
            parts.append(f"FILTER(?v{step} < 3)")
        parts += [f"FILTER({text})" for text in self._filters(step, correlated)]
        named = chance.choice((*self.streams, ", ".join(self.streams)))
        return f"ON {named} {{ {' '.join(parts)} }}"

    def _filters(self, step: int, correlated: bool) -> Iterator[str]:
        chance = self.chance
        if correlated:
            yield self._pair(step, PAIRS)
        if step and chance.random() < 0.4:
            yield self._pair(step, PAIRS + OTHERS)
        if step > 1 and chance.random() < 0.2:
            yield f"?v0 + ?v{step - 1} < ?v{step} + 3"
        if step > 1 and chance.random() < 0.03:
            yield f"EXISTS {{ ?e :o ?v{step - 1} }}"

    def _pair(self, step: int, texts: Sequence[str]) -> str:
        earlier = self.chance.randrange(step)
        number = self.chance.randint(0, 3)
        return self.chance.choice(texts).format(a=f"v{earlier}", b=f"v{step}", n=number)

    def query(self) -> str:
        chance = self.chance
        clauses = [self._window()] + ["PARTITION BY ?k"] * self.keyed
        clauses += [f"FROM STREAM {name} :{name}" for name in self.streams]
        emit = chance.choice(("",) * 8 + ("ANY", "NEXT", "LAST", "MAX"))
        clauses += [f"EMIT {emit}"] * bool(emit)
        form = chance.choice(("SELECT *",) * 5 + ("SELECT DISTINCT ?v0", "ASK", "SELECT ?v1"))
        if chance.random() < 0.08:
            form = "CONSTRUCT { :m :has ?v0 . [] :of ?v1 }"
        if chance.random() < 0.2 and not (form == "ASK" and self.keyed):
            clauses.append("AFTER MATCH SKIP PAST LAST EVENT")
        limit = " LIMIT 2" if form != "ASK" and chance.random() < 0.1 else ""
        names = [f"G{step}" for step in range(self.length)]
        defines = " ".join(
            f"DEFINE GPM {name} {gpm}" for name, gpm in zip(names, self.gpms, strict=True)
        )
        if chance.random() < 0.1:
            names[-1] = names[0]
        seq = " : ".join(names)
        head = "\n".join([f"PREFIX : <{EXAMPLE}>", form, *clauses])
        return f"{head}\nWHERE {{ SEQ({seq}) {defines} }}{limit}"

    def _window(self) -> str:
        match self.chance.randrange(6):
            case 0:
                return f"WITHIN TUMBLING {self.chance.randint(5, 10)} SECONDS"
            case 1 | 2:
                return f"WITHIN {self.chance.randint(5, 12)} EVENTS"
        return f"WITHIN {self.chance.randint(4, 14)} SECONDS"


def chain_case(seed: int, least: int = 10, most: int = 20) -> Case:
    """A chain, and events of which now the first steps are frequent and now the last ones."""
    chance = random.Random(seed)
    streams = ("S", "T")[: chance.choice((1, 1, 2))]
    drawn = _Chain(chance, streams)
    dated = chance.random() < 0.2
    return Case(drawn.query(), _events(chance, streams, dated, drawn, chance.randint(least, most)))


def _events(
    chance: random.Random, streams: Sequence[str], dated: bool, drawn: _Chain, count: int
) -> dict[str, list[Event]]:
    out: dict[str, list[Event]] = {EXAMPLE + name: [] for name in streams}
    now = turn = 0
    ordinals: Counter[tuple[str, int]] = Counter()
    for number in range(count):
        now += chance.choice((0, 0, 1, 1, 1))
        early = (6 * number // count) % 2 == 0
        wanted = drawn.predicates[:-1] if early else drawn.predicates
        micros = now * 1_000_000 + (DAY if dated else 0)
        stream = EXAMPLE + chance.choice(streams)
        facts: dict[Fact, None] = {}
        for _ in range(chance.choice((1, 2, 3, 2, 0))):
            subject = iri(chance.choice("ab"))
            turn += chance.choice((0, 1, 1))
            predicate = chance.choice((wanted[turn % len(wanted)], chance.choice(wanted)))
            facts[subject, iri(predicate), ox.Literal(chance.randint(0, 3))] = None
        if chance.random() < 0.3:
            facts[iri(chance.choice("ab")), iri("o"), ox.Literal(chance.randint(0, 3))] = None
        time = timestamp(micros, DATE_TIME if dated else NUMBER)
        out[stream].append(Event(stream, time, ordinals[stream, micros], list(facts)))
        ordinals[stream, micros] += 1
    return out
