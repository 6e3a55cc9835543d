"""The selectors ALL, NEXT, LAST and MAX: what choosing among the matches of an event costs.

The matches that a selector leaves become objects, the first ten of each event.

python benchmarks/papers/core/strategies.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import streams
from figure import Axis, Case, Figure, Line, main, rates
from workloads import FIRST, kinds_only

WINDOWS = (25, 50, 75, 100)
KINDS = ["A1", "A2", "A3"]
MODES = ("ALL", "NEXT", "LAST", "MAX")


def figure(short: bool) -> Figure:
    count, passes, windows = (2_000, 1, WINDOWS[:2]) if short else (5_000, 3, WINDOWS)
    events = streams.steps(3, count)
    lines = []
    for mode in MODES:
        clause = "" if mode == "ALL" else f"EMIT {mode}"
        cases = {
            n: Case(kinds_only(KINDS, ":", n, clause), events, most=FIRST, chosen=True)
            for n in windows
        }
        lines.append(Line(mode, rates(cases, passes)))
    ratio = {line.name: line.points[-1].median / lines[0].points[-1].median for line in lines}
    shown = ", ".join(f"{mode} {ratio[mode]:.2g}" for mode in MODES[1:])
    return Figure(
        name="core-strategies",
        question="What do the selectors cost beside ALL?",
        source="CORE, experiment with selection strategies",
        data=f"{count:,} events of nine kinds, uniform",
        query=kinds_only(KINDS, ":", 100, "EMIT MAX"),
        others="CORE: NEXT and LAST as fast as ALL, MAX slower by the determinisation. Here NEXT "
        "and LAST search all matches of an event for one, and MAX lists all of them; ALL ends "
        "after ten.",
        x=Axis("window T", "s"),
        y=Axis("throughput", "events/s", log=True),
        lines=lines,
        answer=f"At T = {windows[-1]}, relative to ALL: {shown}.",
    )


if __name__ == "__main__":
    main(figure)
