"""Partial matches and their memory, operator by operator.

The queries and events are those of operators.py. Joined eagerly, a query holds groups of partial
matches; lazily, it holds the rows of the window.

    python benchmarks/papers/lazy/memory.py
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


def held(minutes: float, passes: Sequence[tuple[Cost, Cost]]) -> Point:
    """How many times as many bytes are held with the rules off."""
    lazy, eager = passes[0]
    counts = {
        "groups": lazy.groups, "bytes": lazy.held,
        "groups with the rules off": eager.groups, "bytes so": eager.held,
    }  # fmt: skip
    return Point(minutes, [eager.held / lazy.held], counts)


def figure(short: bool) -> Figure:
    data, lines = operators.lines(short, 1, held)
    shown = ", ".join(
        f"{line.name} {line.points[-1].median:.2g} "
        f"({line.points[-1].counts['groups with the rules off']:,} groups, not "
        f"{line.points[-1].counts['groups']:,})"
        for line in lines
    )
    return Figure(
        name="lazy-memory",
        question="What do partial matches hold that lazy joins and early negation avoid?",
        source="Lazy chain and Lazy tree: memory and partial matches",
        data=data,
        query=operators.text("A : B : C", 10),
        others="Lazy chain and tree: fewer partial matches by the selectivity of the rare event.",
        x=Axis("window", "minutes"),
        y=Axis("times the bytes with the rules off"),
        lines=lines,
        answer=f"At a window of {lines[0].points[-1].x:g} minutes, as a multiple of the bytes with "
        f"the rules: {shown}.",
    )


if __name__ == "__main__":
    main(figure)
