"""A conjunction of four events, of which one is rare: all orders eagerly, and AND.

In `A AND B AND C AND D` the values of A and B and of B and C are correlated by a product that no
index serves. Beside it is a disjunction of all orders of the four, which is joined eagerly.

    python benchmarks/papers/spaseq_2019/conjunctions.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import counts
import streams
from figure import Axis, Case, Figure, Line, main, rates
from workloads import GATHERED, HIGH, ORDERS

WINDOWS = (50, 100, 200, 300)
WAYS = {"all orders, eagerly": ORDERS, "AND": GATHERED}


def figure(short: bool) -> Figure:
    # The only D is event 10,721.
    events = streams.rarely("ABC", "D", 20_000)[10_000 if short else 0 : 11_000 if short else None]
    count, passes, windows = len(events), 1 if short else 3, WINDOWS[-1:] if short else WINDOWS
    expected = {n: counts.gathered(events, n, HIGH) for n in windows}
    lines = []
    for name, workload in WAYS.items():
        texts = {n: workload.query.replace("WITHIN 300 ", f"WITHIN {n} ") for n in windows}
        cases = {float(n): Case(texts[n], events, expected[n]) for n in windows}
        lines.append(Line(name, rates(cases, passes)))
    eager, lazy = (line.points[-1].median for line in lines)
    return Figure(
        name="spaseq-conjunctions",
        question="What does a conjunction cost beside all its orders?",
        source="SPAseq, conjunction over traffic; Lazy tree, AND",
        data=f"{count:,} events of three kinds, and one D",
        query=GATHERED.query,
        others="SPAseq: lazy evaluation of conjunctions ahead of eager by the size of the window.",
        x=Axis("window", "s"),
        y=Axis("throughput", "events/s", log=True),
        lines=lines,
        answer=f"At a window of {windows[-1]} s AND is {lazy / eager:,.0f} times as fast as all "
        "orders.",
    )


if __name__ == "__main__":
    main(figure)
