"""Few events with millions of results: does each result cost the same?

`A : B : C` without a window over a stream of these three kinds. The number of results grows with
the cube of the number of events.

    python benchmarks/papers/cel/outputs.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import counts
import feeding
import streams
from figure import Axis, Figure, Line, Point, main, spread
from workloads import kinds_only

import spaseq

SIZES = (100, 200, 300, 500, 1_000, 2_000)
MOST = 20_000_000
"""Beyond so many results, a size is left out."""


def point(size: int, passes: int) -> Point | None:
    events = streams.dense(size)
    expected = sum(counts.endings(events, "ABC", size))
    if expected > MOST:
        return None
    program = spaseq.compile(kinds_only("ABC", ":", size))
    measured = Point(expected, [])
    for _ in range(passes):
        fed = feeding.tallied(program, events)
        if fed.found != expected:
            raise SystemExit(f"{fed.found} matches where {expected} are expected")
        measured.values.append(1e9 * fed.seconds / fed.found)
        measured.counts = {"events": size, "matches": fed.found}
    return measured


def figure(short: bool) -> Figure:
    sizes, passes = (SIZES[:3], 1) if short else (SIZES, 5)
    points = [found for size in sizes if (found := point(size, passes)) is not None]
    return Figure(
        name="cel-outputs",
        question="Does a result cost the same, however many there are?",
        source="Grez, Riveros, Ugarte, Vansummeren: enumeration with output-linear delay",
        data=f"{sizes[0]} to {points[-1].counts['events']} events of three kinds and noise",
        query=kinds_only("ABC", ":", 100),
        others="CEL: constant for each event of a result. Engines with a run for each partial "
        "match: memory for all of them.",
        x=Axis("results", log=True),
        y=Axis("processor time for each result", "ns"),
        lines=[Line("enumerated and counted", points)],
        answer=f"From {points[0].x:,.0f} to {points[-1].x:,.0f} results the time for each changes "
        f"by a factor of {spread(points):.2f}, and is {points[-1].median:.1f} ns at the end.",
    )


if __name__ == "__main__":
    main(figure)
