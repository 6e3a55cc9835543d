"""A sequence with a Kleene plus by the size of the window, skip till next and strict.

python benchmarks/papers/spaseq_2019/windows.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import feeds
from figure import Axis, Figure, main, spread

MINUTES = (10, 20, 30, 40, 50, 60)
PATTERNS = {
    "Top": "?company stock:price ?top ; stock:volume ?n FILTER(?n > 500)",
    "Fall": "?company stock:price ?low FILTER(?low < PREV(?low, ?top))",
    "Above": "?company stock:price ?back FILTER(?back > ?top)",
}
SEQUENCES = {
    "skip till next": "Top ; Fall+ ; Above",
    "strict": "Top , Fall+ , Above",
    "skip till next, without Kleene plus": "Top ; Fall ; Above",
}


def query(minutes: int, sequence: str) -> str:
    """`EMIT NEXT` reports one match of each end, so output does not hide the automaton."""
    plain = {"Fall": PATTERNS["Fall"].replace("PREV(?low, ?top)", "?top")}
    patterns = PATTERNS if "+" in sequence else PATTERNS | plain
    return f"{feeds.of_trades(sequence, patterns, minutes)} EMIT NEXT"


def figure(short: bool) -> Figure:
    events, passes = (400, 1) if short else (60_000, 3)
    ways = {name: {n: query(n, steps) for n in MINUTES} for name, steps in SEQUENCES.items()}
    with feeds.trades(events) as feed:
        lines = feeds.lines(ways, feed, passes)
    kleene = lines[0].points[-1].median / lines[-1].points[-1].median
    ratios = ", ".join(f"{spread(line.points):.2f} ({line.name})" for line in lines)
    return Figure(
        name="spaseq-windows",
        question="What does a larger window cost, and a Kleene plus?",
        source="SPAseq, stock queries by the size of the window",
        data=f"{events:,} generated trades",
        query=query(10, SEQUENCES["skip till next"]),
        others="SPAseq: throughput falls slowly with the window, least for strict contiguity.",
        x=Axis("window", "minutes"),
        y=Axis("throughput", "events/s"),
        lines=lines,
        answer=f"From {MINUTES[0]} to {MINUTES[-1]} minutes the rate changes by a factor of "
        f"{ratios}. At the last, the Kleene plus has {kleene:.2f} of the rate without it.",
    )


if __name__ == "__main__":
    main(figure)
