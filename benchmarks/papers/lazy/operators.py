"""Operators over correlated stocks: sequence, AND, negation, iteration and disjunction.

An event is a minute of one of four companies: the last five changes of its price, normalised, so
that the sum of the products of two companies' changes is their correlation (Pearson's). Companies A
and B are frequent, C is rare and D rarer still. Each query wants a highly correlated A and B. It is
measured as the engine runs it, and with the rules for lazy joins and early negation switched off.

    python benchmarks/papers/lazy/operators.py
"""

from __future__ import annotations

import random
import statistics
import sys
from collections import deque
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from time import process_time

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import feeding
import pyoxigraph as ox
from figure import Axis, Figure, Line, Point, beside, main, without
from streams import DECIMAL, EX, SECOND, STREAM
from workloads import query

import spaseq
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.limits import NO_LIMIT

HISTORY = 5
LEAST = "0.9"
MINUTES = (5, 10, 20, 30)
BETWEEN = 2
"""Seconds from one event to the next."""
SHARES = {"A": 0.5, "B": 0.489, "C": 0.01, "D": 0.001}
OFF = "lazy_join,first_chance_negation"
PRODUCTS = " + ".join(f"?a{n} * ?b{n}" for n in range(HISTORY))
PATTERNS = {
    "A": " ; ".join(f":a{n} ?a{n}" for n in range(HISTORY)),
    "B": " ; ".join(f":b{n} ?b{n}" for n in range(HISTORY)),
    "C": ":c0 ?c0",
    "D": ":d0 ?d0",
}
QUERIES = {
    "A : B : C": "ABC",
    "A AND B AND C": "ABC",
    "A : !D : B : C": "ABCD",
    "A : B : D+": "ABD",
    "A : B : (C | D)": "ABCD",
}

History = tuple[str, tuple[float, ...]]
"""(company, normalised changes)"""


@cache
def histories(count: int) -> Sequence[History]:
    """Changes of prices with a part in common, as shares of a market have."""
    chance = random.Random(9)
    recent = {company: deque([chance.gauss(0, 1) for _ in range(HISTORY)], HISTORY)
              for company in SHARES}  # fmt: skip
    found = []
    for company in chance.choices(list(SHARES), list(SHARES.values()), k=count):
        market = chance.gauss(0, 1)
        for changes in recent.values():
            changes.append(market + chance.gauss(0, 1))
        mean = statistics.fmean(recent[company])
        size = sum((change - mean) ** 2 for change in recent[company]) ** 0.5
        values = tuple(round((change - mean) / size, 4) for change in recent[company])
        found.append((company, values))
    return found


def text(sequence: str, minutes: float) -> str:
    patterns = {company: f"?{company.lower()} {PATTERNS[company]}" for company in QUERIES[sequence]}
    patterns["B"] += f" FILTER({PRODUCTS} > {LEAST})"
    return query(sequence, patterns, round(60 * minutes))


def encoded(run: spaseq.Run, events: Sequence[History]) -> list[EventBatch]:
    batches: list[EventBatch] = []
    for number, (company, changes) in enumerate(events):
        if number % 1000 == 0:
            batches.append(EventBatch(run.relevance.dictionary, stream=STREAM))
        subject = ox.NamedNode(EX + company)
        batches[-1].add(
            [
                (
                    subject,
                    ox.NamedNode(f"{EX}{company.lower()}{place}"),
                    ox.Literal(f"{change:.4f}", datatype=ox.NamedNode(DECIMAL)),
                )
                for place, change in enumerate(changes)
            ],
            BETWEEN * number * SECOND,
        )
    return batches


def once(program: spaseq.Program, events: Sequence[History]) -> tuple[float, int, int]:
    """Seconds, matches, and how many rows lazy joins and conjunctions looked at."""
    run = program.start()
    batches = encoded(run, events)
    native = feeding.compiled(run)
    found = position = 0
    started = process_time()
    for batch in batches:
        after, some, _ = native.tally(batch, position, NO_LIMIT)
        found += some
        position += after
    seconds = process_time() - started
    return seconds, found, native.core.lazy_join.searched + native.core.conjunction.looked


def counted(
    events: Sequence[History], pairs: Sequence[tuple[int, int]], sequence: str, minutes: float
) -> int:
    """The matches, from the definition of each query, for all correlated A and B."""
    span = round(60 * minutes) // BETWEEN
    places = {company: [p for p, e in enumerate(events) if e[0] == company] for company in "CD"}
    if sequence == "A AND B AND C":
        return sum(max(a, b, c) - min(a, b, c) <= span for c in places["C"] for a, b in pairs)
    last = sequence.split(" : ")[-1]
    ends = {"C": places["C"], "D+": places["D"], "(C | D)": sorted(places["C"] + places["D"])}[last]
    total = 0
    for end in ends:
        for a, b in pairs:
            if not end - span <= a < b < end:
                continue
            if "!D" in sequence and any(a < d < b for d in places["D"]):
                continue
            # Of the D between B and the last one, any may be in the iteration.
            total += 2 ** sum(b < d < end for d in places["D"]) if last == "D+" else 1
    return total


def correlated(events: Sequence[History], minutes: float) -> list[tuple[int, int]]:
    """All A and B, in any order, that are correlated and in one window."""
    span = round(60 * minutes) // BETWEEN
    return [
        (a, b)
        for a, (company, _) in enumerate(events)
        if company == "A"
        for b in range(max(0, a - span), min(len(events), a + span + 1))
        if events[b][0] == "B" and _correlated(events, a, b)
    ]


def _correlated(events: Sequence[History], a: int, b: int) -> bool:
    # In units of 1e-8, as exactly as the engine's decimals.
    changes = zip(events[a][1], events[b][1], strict=True)
    products = sum(round(1e4 * x) * round(1e4 * y) for x, y in changes)
    return products > round(1e8 * float(LEAST))


def point(
    sequence: str,
    minutes: float,
    events: Sequence[History],
    pairs: Sequence[tuple[int, int]],
    passes: int,
) -> Point:
    """How many times as fast the rules make a query; the passes of both ways are interleaved."""
    program = spaseq.compile(text(sequence, minutes))
    with without(OFF):
        plain = spaseq.compile(text(sequence, minutes))
    measured = Point(minutes, [])
    rates = []
    expected = counted(events, pairs, sequence, minutes)
    for _ in range(passes):
        seconds, found, looked = once(program, events)
        with without(OFF):
            slower, same, _ = once(plain, events)
        if {found, same} != {expected}:
            raise SystemExit(f"{sequence}: {found} and {same} matches, not {expected}")
        measured.values.append(slower / seconds)
        rates.append(round(len(events) / seconds))
    rate = sorted(rates)[passes // 2]
    measured.counts = {"events/s": rate, "matches": expected, "rows looked at": looked}
    return measured


def figure(short: bool) -> Figure:
    count, passes, minutes = (400, 1, MINUTES[:1]) if short else (4_000, 3, MINUTES)
    events = histories(20_000)[-count:]
    pairs = correlated(events, minutes[-1])
    lines = [
        Line(sequence, [point(sequence, size, events, pairs, passes) for size in minutes])
        for sequence in QUERIES
    ]
    return Figure(
        name="lazy-operators",
        question="What do lazy joins and early negation save, operator by operator?",
        source="Lazy chain and Lazy tree: throughput by operator and window",
        data=f"{count:,} normalised price histories of four companies, one every {BETWEEN} s",
        query=text("A : B : C", 10),
        others="Lazy chain and tree: up to two orders of magnitude over the eager automaton, by "
        "operator and window.",
        x=Axis("window", "minutes"),
        y=Axis("times as fast as with the rules off", log=True),
        lines=lines,
        answer=f"At a window of {minutes[-1]} minutes the rules make these queries faster by: "
        + ", ".join(f"{line.name} {beside(line.points[-1])}" for line in lines)
        + ". AND is joined lazily in either case.",
    )


if __name__ == "__main__":
    main(figure)
