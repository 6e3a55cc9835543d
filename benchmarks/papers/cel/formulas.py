"""The operators of CEL, one formula each, over readings of temperature and humidity.

φ1 is a sequence, φ2 filters its events, φ3 correlates them, φ4 is a disjunction, φ5 an iteration,
and φ6 an iteration whose events are filtered and correlated. The names of the formulas are of this
benchmark; CEL's article introduces its operators with formulas of these shapes.

    python benchmarks/papers/cel/formulas.py
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

from figure import Axis, Case, Figure, Line, Point, main, rates
from streams import Happening
from workloads import FIRST, query

SENSORS = 10
WINDOWS = (10, 30, 100)
HOT, DRY = 40, 25
ANY = {"T": "?s :T ?t", "H": "?r :H ?h"}
FORMULAS = {
    "φ1": ("T : H", ANY),
    "φ2": ("T : H", {"T": f"?s :T ?t FILTER(?t > {HOT})", "H": f"?r :H ?h FILTER(?h < {DRY})"}),
    "φ3": ("T : H", {"T": f"?s :T ?t FILTER(?t > {HOT})", "H": "?s :H ?h"}),
    "φ4": ("T : (H | U)", ANY | {"U": f"?q :T ?u FILTER(?u > {HOT})"}),
    "φ5": ("T+ : H", ANY),
    "φ6": ("T+ : H", {"T": f"?s :T ?t FILTER(?t > {HOT})", "H": f"?s :H ?h FILTER(?h < {DRY})"}),
}


@cache
def readings(count: int, skewed: bool = False) -> Sequence[Happening]:
    """Temperatures and humidities of 0 to 59 of some sensors; skewed: one H in a hundred."""
    chance = random.Random(7)
    rare = 0.01 if skewed else 0.5
    return [
        ("H" if chance.random() < rare else "T", chance.randrange(SENSORS), chance.randrange(60))
        for _ in range(count)
    ]


def text(formula: str, window: int, clause: str = "") -> str:
    sequence, patterns = FORMULAS[formula]
    return query(sequence, patterns, window, clause)


def figure(short: bool) -> Figure:
    count, passes = (2_000, 1) if short else (100_000, 5)
    events = readings(count)
    lines = []
    for window in WINDOWS:
        cases = {
            float(n): Case(text(name, window), events, most=FIRST)
            for n, name in enumerate(FORMULAS)
        }
        lines.append(Line(f"window of {window} s", rates(cases, passes)))

    def slowest(line: Line) -> tuple[str, Point]:
        point = min(line.points, key=lambda one: one.median)
        return list(FORMULAS)[int(point.x)], point

    name, point = slowest(lines[-1])
    return Figure(
        name="cel-formulas",
        question="What does each operator of CEL cost?",
        source="Grez, Riveros, Ugarte, Vansummeren: sequence, filters, disjunction, iteration",
        data=f"{count:,} readings of {SENSORS} sensors; the first {FIRST} matches of an event",
        query=text("φ6", WINDOWS[-1]),
        others="CEL: constant time for each event and variable, whatever the number of partial "
        "matches.",
        x=Axis("", places=tuple(f"{name}: {sequence}" for name, (sequence, _) in FORMULAS.items())),
        y=Axis("throughput", "events/s"),
        lines=lines,
        answer=f"The slowest at a window of {WINDOWS[-1]} s is {name} with {point.median:,.0f} "
        "events/s.",
    )


if __name__ == "__main__":
    main(figure)
