"""Operators over correlated stocks: sequence, AND, negation, iteration and disjunction.

An event is a minute of one of four companies: the last five changes of its price, normalised, so
that the sum of the products of two companies' changes is their correlation (Pearson's). Companies A
and B are frequent, C is rare and D rarer still. Each query wants a highly correlated A and B, and a
C or D that is correlated with the B. It is measured as the engine runs it, and with the rules for
lazy joins and early negation switched off; AND, which is always joined lazily, beside a disjunction
of all orders.

    python benchmarks/papers/lazy/operators.py
"""

from __future__ import annotations

import random
import statistics
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import process_time

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import feeding
import pyoxigraph as ox
from figure import Axis, Figure, Line, Point, beside, main, without
from streams import DECIMAL, EX, SECOND, STREAM
from workloads import in_all_orders, query

import spaseq
from spaseq.rdf.limits import NO_LIMIT
from spaseq.rdf.native._terms import EventBatch

HISTORY = 5
LEAST = "0.9"
MINUTES = (5, 10, 20, 30)
BETWEEN = 2
"""Seconds from one event to the next."""
SHARES = {"A": 0.5, "B": 0.495, "C": 0.004, "D": 0.001}
OFF = "lazy_join,first_chance_negation"
PATTERNS = {
    company: f"?{company} " + " ; ".join(f":{company}{n} ?{company}{n}" for n in range(HISTORY))
    for company in map(str.lower, SHARES)
}
QUERIES = {
    "A : B : C": "ABC",
    "A AND B AND C": "ABC",
    "A : !D : B : C": "ABCD",
    "A : B : D+": "ABD",
    "A : B : (C | D)": "ABCD",
}
"""The steps of each; a D that is forbidden is any D."""

History = tuple[str, tuple[float, ...]]
"""(company, normalised changes)"""


@cache
def histories(count: int) -> tuple[History, ...]:
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
    return tuple(found)


def text(sequence: str, minutes: float, ordered: bool = False) -> str:
    """A query; `ordered`: with all orders in place of AND."""
    patterns = {company: PATTERNS[company.lower()] for company in QUERIES[sequence]}
    filters = {
        f"{one}{other}": _correlation(one.lower(), other.lower())
        for one, other in ("AB", "BC", "BD")
        if other in patterns and f"!{other}" not in sequence
    }
    if ordered and "AND" in sequence:
        sequence, patterns = in_all_orders(patterns, filters)
    else:
        for (_, other), condition in filters.items():
            patterns[other] += f" {condition}"
    return query(sequence, patterns, round(60 * minutes))


def _correlation(one: str, other: str) -> str:
    products = " + ".join(f"?{one}{n} * ?{other}{n}" for n in range(HISTORY))
    return f"FILTER({products} > {LEAST})"


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


@dataclass(frozen=True, slots=True)
class Cost:
    """A pass of a query.

    Attributes:
        evaluations: How often a filter of partial matches was evaluated.
        groups: Groups of partial matches, at most, as seen after each batch.
        held: Bytes of their nodes and of buffered rows, at most, likewise.
    """

    seconds: float
    matches: int
    evaluations: int
    groups: int
    held: int


def cost(program: spaseq.Program, events: Sequence[History]) -> Cost:
    run = program.start()
    batches = encoded(run, events)
    native = feeding.compiled(run)
    found = position = groups = held = 0
    seconds = 0.0
    for batch in batches:
        started = process_time()
        after, some, _ = native.tally(batch, position, NO_LIMIT)
        seconds += process_time() - started
        found += some
        position += after
        groups = max(groups, sum(1 for _ in native.parts.groups(over=False)))
        held = max(held, native.core.tecs.bytes)
    return Cost(seconds, found, native.step.evaluations, groups, held)


def counted(events: Sequence[History], sequence: str, minutes: float) -> int:
    """The matches, from the definition of each query."""
    span = round(60 * minutes) // BETWEEN
    forbidden = [p for p, (company, _) in enumerate(events) if company == "D" and "!" in sequence]
    last = [company for company in QUERIES[sequence][2:] if f"!{company}" not in sequence]
    following = defaultdict(list)
    for company in last:
        for rare, b in correlated(events, company, "B", span):
            following[b].append(rare)
    total = 0
    for a, b in correlated(events, "A", "B", span):
        ends = following[b]
        if "AND" in sequence:
            total += sum(max(a, b, c) - min(a, b, c) <= span for c in ends)
            continue
        if a > b or any(a < d < b for d in forbidden):
            continue
        for end in ends:
            if b < end <= a + span:
                # Of the D between B and the last one, any may be in the iteration.
                total += 2 ** sum(b < d < end for d in ends) if "+" in sequence else 1
    return total


@cache
def correlated(events: Sequence[History], one: str, other: str, span: int) -> list[tuple[int, int]]:
    """The events of two companies, in any order, that are correlated and in one window."""
    return [
        (a, b)
        for a, (company, _) in enumerate(events)
        if company == one
        for b in range(max(0, a - span), min(len(events), a + span + 1))
        if events[b][0] == other and _are_correlated(events[a][1], events[b][1])
    ]


def _are_correlated(one: Sequence[float], other: Sequence[float]) -> bool:
    # In units of 1e-8, as exactly as the engine's decimals.
    products = sum(round(1e4 * x) * round(1e4 * y) for x, y in zip(one, other, strict=True))
    return products > round(1e8 * float(LEAST))


def compared(
    sequence: str, minutes: float, events: Sequence[History], passes: int
) -> list[tuple[Cost, Cost]]:
    """For each pass, a query as the engine runs it, and with the rules off.

    Raises:
        SystemExit: if a number of matches is not that of the count.
    """
    program = spaseq.compile(text(sequence, minutes))
    with without(OFF):
        plain = spaseq.compile(text(sequence, minutes, ordered=True))
    expected = counted(events, sequence, minutes)
    found = []
    for _ in range(passes):
        lazy = cost(program, events)
        with without(OFF):
            eager = cost(plain, events)
        if {lazy.matches, eager.matches} != {expected}:
            raise SystemExit(f"{sequence}: {lazy} and {eager} where {expected} matches are")
        found.append((lazy, eager))
    return found


def lines(
    short: bool, passes: int, point: Callable[[float, list[tuple[Cost, Cost]]], Point]
) -> tuple[str, list[Line]]:
    """The data, and a line for each query."""
    count, minutes = (400, MINUTES[:1]) if short else (4_000, MINUTES)
    events = histories(20_000)[-count:]
    data = f"{count:,} normalised price histories of four companies, one every {BETWEEN} s"
    return data, [
        Line(name, [point(n, compared(name, n, events, passes)) for n in minutes])
        for name in QUERIES
    ]


def throughput(minutes: float, passes: Sequence[tuple[Cost, Cost]]) -> Point:
    """How many times as fast the rules make a query."""
    counts = {"matches": passes[0][0].matches}
    return Point(minutes, [eager.seconds / lazy.seconds for lazy, eager in passes], counts)


def figure(short: bool) -> Figure:
    data, some = lines(short, 1 if short else 3, throughput)
    return Figure(
        name="lazy-operators",
        question="What do lazy joins and early negation save, operator by operator?",
        source="Lazy chain and Lazy tree: throughput by operator and window",
        data=data,
        query=text("A : B : C", 10),
        others="Lazy chain and tree: up to two orders of magnitude over the eager automaton, by "
        "operator and window.",
        x=Axis("window", "minutes"),
        y=Axis("times as fast as with the rules off", log=True),
        lines=some,
        answer=f"At a window of {some[0].points[-1].x:g} minutes the rules make these queries "
        "faster by: " + ", ".join(f"{line.name} {beside(line.points[-1])}" for line in some) + ".",
    )


if __name__ == "__main__":
    main(figure)
