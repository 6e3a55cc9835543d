"""Iteration and disjunction inside sequences: K3, K5, D3, D5.

Kn is `A1 : A2+ : … : An`, Dn is `A1 : (A2 | C2) : … : An`, over the streams of the sequences of
length n. As everywhere in CORE's experiments, a match ends all partial matches before it, and the
first ten matches of an event are enumerated.

    python benchmarks/papers/core/operators.py
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import streams
from figure import Axis, Case, Figure, Line, main, rates
from workloads import FIRST, SKIP, query

WINDOWS = (50, 100, 200)
SHAPES = {f"{kind}{length}": (kind, length) for kind in "SKD" for length in (3, 5)}


def text(shape: str, window: int) -> str:
    kind, length = SHAPES[shape]
    steps = [f"A{number}" for number in range(1, length + 1)]
    patterns = {step: f"[] :{step} []" for step in steps}
    if kind == "D":
        # The noise of the streams has the kinds B1, B2, …
        patterns["C2"] = "[] :B2 []"
    steps[1] = {"S": "A2", "K": "A2+", "D": "(A2 | C2)"}[kind]
    return query(" : ".join(steps), patterns, window, SKIP)


def figure(short: bool) -> Figure:
    count, passes = (3_000, 1) if short else (100_000, 5)
    lines = []
    for window in WINDOWS:
        cases = {
            float(n): Case(text(shape, window), partial(streams.steps, length)(count), most=FIRST)
            for n, (shape, (_, length)) in enumerate(SHAPES.items())
        }
        lines.append(Line(f"window of {window} s", rates(cases, passes)))
    middle = [point.median for point in lines[1].points]
    ratios = ", ".join(
        f"{shape} {rate / middle[place % 2]:.2f}"
        for place, (shape, rate) in enumerate(zip(SHAPES, middle, strict=True))
        if place > 1
    )
    return Figure(
        name="core-operators",
        question="What do iteration and disjunction cost inside a sequence?",
        source="CORE, experiments with iteration and disjunction",
        data=f"{count:,} events of n + 6 kinds, uniform; matches consume; the first {FIRST} of an "
        "event",
        query=text("K3", 100),
        others="CORE: a stable throughput. Others: lower by orders of magnitude.",
        x=Axis("", places=tuple(SHAPES)),
        y=Axis("throughput", "events/s"),
        lines=lines,
        answer=f"At a window of {WINDOWS[1]} s, relative to the sequence of the same length: "
        f"{ratios}.",
    )


if __name__ == "__main__":
    main(figure)
