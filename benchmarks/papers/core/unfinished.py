"""A sequence whose last event never comes: does the window cost anything?

python benchmarks/papers/core/unfinished.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import streams
from figure import Axis, Case, Figure, Line, main, rates, spread
from workloads import FIRST, kinds_only

WINDOWS = (50, 100, 150, 200, 1_000, 10_000, 100_000)
KINDS = ["A1", "A2", "A3"]


def figure(short: bool) -> Figure:
    count, passes = (20_000, 1) if short else (300_000, 5)
    windows = [size for size in WINDOWS if size <= count]
    events = streams.unfinished(count)
    lines = {
        name: rates(
            {n: Case(kinds_only(KINDS, sign, n), events, 0, FIRST) for n in windows}, passes
        )
        for name, sign in (("skip till any", ":"), ("skip till next", ";"))
    }
    every = lines["skip till any"]
    return Figure(
        name="core-unfinished",
        question="What does a pattern cost that never completes, by the size of the window?",
        source="CORE, experiment with windows of T events; T on to 100,000 here",
        data=f"{count:,} events of eight kinds; A3 never occurs",
        query=kinds_only(KINDS, ":", 100),
        others="CORE: constant in T. Others: linear to exponential in T.",
        x=Axis("window T", "s", log=True),
        y=Axis("throughput", "events/s"),
        lines=[Line(name, points) for name, points in lines.items()],
        answer=f"From T = {windows[0]} to T = {windows[-1]:,} the rate changes by a factor of "
        f"{spread(every):.2f}.",
    )


if __name__ == "__main__":
    main(figure)
