"""A sequence whose last event is rare: joined eagerly, lazily, and as the engine chooses.

`A : B : C`, where A and B are compared by a product that no index serves, and one event in 10,000
is a C. Eagerly, each B meets all A of the window; lazily, only a C makes the engine look back.

    python benchmarks/papers/lazy/rare_end.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import counts
import feeding
import streams
from figure import Axis, Figure, Line, Point, main
from workloads import FILTER, LEAST, query

import spaseq

WINDOWS = (100, 300, 1_000, 3_000)
WAYS = {"eagerly": False, "lazily": True, "as the engine chooses": None}
PATTERNS = {"A": "[] :A ?x", "B": f"[] :B ?y {FILTER}", "C": "[] :C []"}


def figure(short: bool) -> Figure:
    count, passes = (20_000, 1) if short else (200_000, 3)
    events = streams.rarely("AB", "C", count)
    programs = {n: spaseq.compile(query("A : B : C", PATTERNS, n)) for n in WINDOWS}
    lines = [Line(name, [Point(n, []) for n in WINDOWS]) for name in WAYS]
    expected = {n: counts.products(events, n, LEAST) for n in WINDOWS}
    for _ in range(passes):
        for line, lazily in zip(lines, WAYS.values(), strict=True):
            for point, program in zip(line.points, programs.values(), strict=True):
                fed = feeding.tallied(program, events, lazily)
                if fed.found != expected[int(point.x)]:
                    raise SystemExit(f"{fed.found} matches, not {expected[int(point.x)]}")
                point.values.append(count / fed.seconds)
                point.counts = {
                    "events": count, "matches": fed.found, "evaluations": fed.evaluations
                }  # fmt: skip
    eager, lazy, chosen = (line.points[-1].median for line in lines)
    return Figure(
        name="lazy-rare-end",
        question="What does it save to wait for the rare last event?",
        source="Lazy chain NFA: throughput by the size of the window",
        data=f"{count:,} events: A, B, and one C in 10,000",
        query=query("A : B : C", PATTERNS, 1000),
        others="Lazy chain NFA: up to two orders of magnitude over the eager automaton.",
        x=Axis("window", "s", log=True),
        y=Axis("throughput", "events/s", log=True),
        lines=lines,
        answer=f"At a window of {WINDOWS[-1]:,} s the lazy way is {lazy / eager:.0f} times as fast "
        f"as the eager one; what the engine chooses reaches {chosen / max(lazy, eager):.2f} of the "
        "better.",
    )


if __name__ == "__main__":
    main(figure)
