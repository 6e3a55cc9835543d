"""Sequences of n kinds of events: does the rate depend on the length of the pattern?

python benchmarks/papers/core/lengths.py
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import counts
import streams
from figure import Axis, Case, Figure, Line, main, rates, spread
from workloads import FIRST, kinds_only

LENGTHS = (3, 5, 7, 9)
WINDOW = 100


def case(length: int, operator: str, count: int) -> Case:
    kinds = [f"A{number}" for number in range(1, length + 1)]
    events = partial(streams.steps, length)(count)
    expected = None
    if operator == ":":
        found = counts.endings(events, kinds, WINDOW)
        expected = sum(min(FIRST, number) for number in found)
    return Case(kinds_only(kinds, operator, WINDOW), events, expected, FIRST)


def figure(short: bool) -> Figure:
    count, passes = (20_000, 1) if short else (200_000, 5)
    every = rates({n: case(n, ":", count) for n in LENGTHS}, passes)
    nearest = rates({n: case(n, ";", count) for n in LENGTHS}, passes)
    return Figure(
        name="core-lengths",
        question="Does the rate depend on the length of the sequence?",
        source="CORE, experiment with sequences A1 ; … ; An",
        data=f"{count:,} events of n + 6 kinds, uniform; window of {WINDOW} s",
        query=kinds_only(["A1", "A2", "A3"], ":", WINDOW),
        others="CORE: constant in n. SASE, Esper, FlinkCEP and OpenCEP: falls by orders of "
        "magnitude.",
        x=Axis("length n"),
        y=Axis("throughput", "events/s"),
        lines=[Line("skip till any", every), Line("skip till next", nearest)],
        answer=f"From n = 3 to n = 9 the rate changes by a factor of {spread(every):.2f} "
        f"(skip till any) and {spread(nearest):.2f} (skip till next).",
    )


if __name__ == "__main__":
    main(figure)
