"""Nine and twelve prices of one company: the shapes of the queries Q3 and Q4 over stocks.

Each three prices are a V: a fall or two, then a price above both before it. Q3 asks for three of
these, Q4 for four, over the published trades of a stock exchange (SPASEQ_DATA). The number of
matches is compared with a count that shares no code with the engine.

    python benchmarks/papers/spaseq_2019/stocks.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import readings
from figure import Axis, Figure, main, spread
from readings import Chain, Test

MINUTES = (10, 20, 30, 40, 50, 60)


def vs(count: int) -> Iterator[tuple[str, Test]]:
    """The prices of so many Vs."""
    yield "", lambda v, _: True
    for n in range(2, 3 * count + 1):
        if n % 3:
            yield f"?v{n} < ?v{n - 1}", lambda v, before: v < before[-1]
        else:
            yield f"?v{n} > ?v{n - 1} && ?v{n} > ?v{n - 2}", lambda v, before: v > max(before[-2:])


CHAINS = [Chain(f"Q{count}", readings.STOCKS, list(vs(count))) for count in (3, 4)]


def figure(short: bool) -> Figure:
    events, passes = (1_000, 1) if short else (10_000, 3)
    minutes = MINUTES[-1:] if short else MINUTES
    lines = readings.lines(CHAINS, minutes, events, passes)
    ratios = ", ".join(f"{spread(line.points):.2f} ({line.name})" for line in lines)
    return Figure(
        name="spaseq-stocks",
        question="How do sequences of nine and twelve prices fare, by the size of the window?",
        source="SPAseq, stock queries Q3 and Q4",
        data=f"the first {events:,} trades of a stock exchange (SPASEQ_DATA) that change a price",
        query=CHAINS[0].query(",", 10),
        others="SPAseq: throughput falls slowly with the window and with the number of steps, "
        "least for strict contiguity.",
        x=Axis("window", "minutes"),
        y=Axis("throughput, with reading", "events/s"),
        lines=lines,
        answer=f"From {minutes[0]} to {minutes[-1]} minutes the rate changes by a factor of "
        f"{ratios}.",
    )


if __name__ == "__main__":
    main(figure)
