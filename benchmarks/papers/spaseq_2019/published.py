"""Sequences over published data: trades, card payments, the power of a house, traffic.

Each query asks for a reading and the next ones of the same key, under skip till next. The number of
matches is compared with a count that shares no code with the engine. The data are those that
SPASEQ_DATA names.

    python benchmarks/papers/spaseq_2019/published.py
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import feeds
from feeds import Published, Reading
from figure import Axis, Figure, Line, main, spread

HOURS = (0.5, 1, 2, 4)
Test = Callable[[float, Sequence[float]], bool]
"""Whether a value can follow those of the steps before."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A sequence over a data set: patterns, and the same tests in Python."""

    data: Published
    sequence: str
    patterns: Mapping[str, str]
    tests: Sequence[Test]

    def query(self, hours: float) -> str:
        return feeds.of_readings(self.sequence, self.patterns, f"{60 * hours:g} MINUTES")


def value(number: int, condition: str) -> str:
    return f"?key :value ?v{number} FILTER({condition})"


EXPERIMENTS = (
    Experiment(
        feeds.STOCKS,
        "A ; B ; C",
        {"A": value(1, "?v1 > 0"), "B": value(2, "?v2 < ?v1"), "C": value(3, "?v3 > ?v1")},
        (lambda v, _: v > 0, lambda v, before: v < before[0], lambda v, before: v > before[0]),
    ),
    Experiment(
        feeds.CARDS,
        "A ; B",
        {"A": value(1, "?v1 < 10"), "B": value(2, "?v2 > 100")},
        (lambda v, _: v < 10, lambda v, _: v > 100),
    ),
    Experiment(
        feeds.HOME,
        "A ; B",
        {"A": value(1, "?v1 < 400"), "B": value(2, "?v2 > ?v1 + 2000")},
        (lambda v, _: v < 400, lambda v, before: v > before[0] + 2000),
    ),
    Experiment(
        feeds.TRAFFIC,
        "A ; B ; C",
        {
            "A": value(1, "?v1 > 40"),
            "B": value(2, "?v2 < 0.8 * ?v1"),
            "C": value(3, "?v3 < 0.8 * ?v2"),
        },
        (
            lambda v, _: v > 40,
            lambda v, before: 10 * v < 8 * before[0],
            lambda v, before: 10 * v < 8 * before[1],
        ),
    ),
)


def counted(readings: Sequence[Reading], tests: Sequence[Test], seconds: float) -> int:
    """From each reading that passes the first test, always the next one that passes its own."""
    total = 0
    by_key: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for time, key, number in readings:
        by_key[key].append((round(time, 6), round(number, 4)))
    for some in by_key.values():
        for start, (first, number) in enumerate(some):
            chain, last = [number], first
            for time, other in some[start + 1 :] if tests[0](number, ()) else ():
                if time > first + seconds:
                    break
                # Of readings at one instant, none follows another.
                if time > last and tests[len(chain)](other, chain):
                    chain.append(other)
                    last = time
                if len(chain) == len(tests):
                    total += 1
                    break
    return total


def figure(short: bool) -> Figure:
    events, passes = (1_000, 1) if short else (20_000, 3)
    hours = HOURS[:1] if short else HOURS
    lines = []
    for experiment in EXPERIMENTS:
        readings = experiment.data.readings(events)
        queries = {n: experiment.query(n) for n in hours}
        with feeds.written(readings) as feed:
            points = feeds.rates(queries, feed, passes)
        for point in points:
            expected = counted(readings, experiment.tests, 3600 * point.x)
            if point.counts["matches"] != expected:
                raise SystemExit(
                    f"{experiment.data.name}, {point.x:g} h: {point.counts['matches']} matches, "
                    f"not {expected}"
                )
        lines.append(Line(experiment.data.name, points))
    ratios = ", ".join(f"{spread(line.points):.2f} ({line.name})" for line in lines)
    return Figure(
        name="spaseq-published",
        question="How do published streams fare, by the size of the window?",
        source="SPAseq, experiments with stocks, cards, a smart home and traffic",
        data=f"the first {events:,} readings of each data set below SPASEQ_DATA",
        query=EXPERIMENTS[0].query(1),
        others="SPAseq: two to three orders of magnitude above EP-SPARQL; flat in the window where "
        "the pattern is selective.",
        x=Axis("window", "hours"),
        y=Axis("throughput, with reading", "events/s"),
        lines=lines,
        answer=f"From {hours[0]:g} to {hours[-1]:g} hours the rate changes by a factor of "
        f"{ratios}.",
    )


if __name__ == "__main__":
    main(figure)
