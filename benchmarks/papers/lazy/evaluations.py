"""The number of evaluations of filters, operator by operator: the metric of the publication.

The queries and events are those of operators.py. A number of evaluations does not depend on the
machine, so one pass is enough.

    python benchmarks/papers/lazy/evaluations.py
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))
sys.path.append(str(Path(__file__).parent))

import operators
from figure import Axis, Figure, Point, main
from operators import Cost


def evaluated(minutes: float, passes: Sequence[tuple[Cost, Cost]]) -> Point:
    """How many times as many evaluations there are with the rules off."""
    lazy, eager = passes[0]
    counts = {
        "matches": lazy.matches, "evaluations": lazy.evaluations, "with the rules off":
        eager.evaluations,
    }  # fmt: skip
    return Point(minutes, [eager.evaluations / lazy.evaluations], counts)


def figure(short: bool) -> Figure:
    data, lines = operators.lines(short, 1, evaluated)
    shown = ", ".join(f"{line.name} {line.points[-1].median:.3g}" for line in lines)
    return Figure(
        name="lazy-evaluations",
        question="How many evaluations of filters do lazy joins and early negation save?",
        source="Lazy chain and Lazy tree: number of predicate evaluations",
        data=data,
        query=operators.text("A : B : C", 10),
        others="Lazy chain and tree: up to two orders of magnitude fewer than the eager automaton.",
        x=Axis("window", "minutes"),
        y=Axis("times as many evaluations with the rules off", log=True),
        lines=lines,
        answer=f"At a window of {lines[0].points[-1].x:g} minutes, as a multiple of those with the "
        f"rules: {shown}.",
    )


if __name__ == "__main__":
    main(figure)
