"""A sequence with a Kleene plus by the size of the window, skip till next and strict.

python benchmarks/papers/spaseq/windows.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import trades
from figure import Axis, Figure, Line, main, spread

MINUTES = (10, 20, 30, 40, 50, 60)
PATTERNS = {
    "Top": "?company stock:price ?top ; stock:volume ?n FILTER(?n > 500)",
    "Fall": "?company stock:price ?low FILTER(?low < PREV(?low, ?top))",
    "Above": "?company stock:price ?back FILTER(?back > ?top)",
}
SEQUENCES = {"skip till next": "Top ; Fall+ ; Above", "strict": "Top , Fall+ , Above"}


def query(minutes: int, sequence: str) -> str:
    """`EMIT NEXT` reports the first match of each start, so output does not hide the automaton."""
    return f"{trades.query(sequence, PATTERNS, minutes)} EMIT NEXT"


def figure(short: bool) -> Figure:
    events, passes = (400, 1) if short else (60_000, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = trades.generated(folder, events)
        lines = [
            Line(
                name,
                trades.rates({n: query(n, steps) for n in MINUTES}, path, events, passes),
            )
            for name, steps in SEQUENCES.items()
        ]
    ratios = ", ".join(f"{spread(line.points):.2f} ({line.name})" for line in lines)
    return Figure(
        name="spaseq-windows",
        question="What does a larger window cost?",
        source="SPAseq, stock queries by the size of the window",
        data=f"{events:,} generated trades",
        query=query(10, SEQUENCES["skip till next"]),
        others="SPAseq: throughput falls slowly with the window, least for strict contiguity.",
        x=Axis("window", "minutes"),
        y=Axis("throughput", "events/s"),
        lines=lines,
        answer=f"From {MINUTES[0]} to {MINUTES[-1]} minutes the rate changes by a factor of "
        f"{ratios}.",
    )


if __name__ == "__main__":
    main(figure)
