"""Sequences over published data: card payments, the power of a house, traffic.

Each query asks for a reading and later ones of the same key, under skip till next and strict
contiguity. The number of matches is compared with a count that shares no code with the engine. The
data are those that SPASEQ_DATA names.

    python benchmarks/papers/spaseq_2019/published.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import readings
from figure import Axis, Figure, main, spread
from readings import Chain

MINUTES = (30, 60, 120, 240)
CHAINS = (
    Chain(
        "cards",
        readings.CARDS,
        (("?v1 < 10", lambda v, _: v < 10), ("?v2 > 100", lambda v, _: v > 100)),
    ),
    Chain(
        "power",
        readings.POWER,
        (
            ("?v1 < 400", lambda v, _: v < 400),
            ("?v2 > ?v1 + 200", lambda v, before: v > before[0] + 200),
        ),
    ),
    Chain(
        "traffic",
        readings.TRAFFIC,
        (
            ("?v1 > 40", lambda v, _: v > 40),
            ("?v2 < 0.8 * ?v1", lambda v, before: 10 * v < 8 * before[0]),
            ("?v3 < 0.8 * ?v2", lambda v, before: 10 * v < 8 * before[1]),
        ),
    ),
)


def figure(short: bool) -> Figure:
    events, passes = (1_000, 1) if short else (20_000, 3)
    minutes = MINUTES[-1:] if short else MINUTES
    lines = readings.lines(CHAINS, minutes, events, passes)
    ratios = ", ".join(f"{spread(line.points):.2f} ({line.name})" for line in lines)
    return Figure(
        name="spaseq-published",
        question="How do published streams fare, by the size of the window?",
        source="SPAseq, experiments with cards, a smart home and traffic",
        data=f"the first {events:,} readings of each data set below SPASEQ_DATA",
        query=CHAINS[-1].query(";", 60),
        others="SPAseq: two to three orders of magnitude above EP-SPARQL; flat in the window where "
        "the pattern is selective.",
        x=Axis("window", "minutes"),
        y=Axis("throughput, with reading", "events/s"),
        lines=lines,
        answer=f"From {minutes[0]:g} to {minutes[-1]:g} minutes the rate changes by a factor of "
        f"{ratios}.",
    )


if __name__ == "__main__":
    main(figure)
