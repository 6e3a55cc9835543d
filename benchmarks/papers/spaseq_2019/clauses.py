"""Sequences of three to seven clauses in a window of 40 minutes: prices that only rise.

python benchmarks/papers/spaseq_2019/clauses.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import feeds
from figure import Axis, Figure, main, spread

CLAUSES = (3, 4, 5, 6, 7)
MINUTES = 40
OPERATORS = {"skip till next": ";", "strict": ","}
LEAST_SHARES = 500
"""A sequence begins with a large trade, so that there are matches but not mostly matches."""


def query(clauses: int, operator: str) -> str:
    """Each price is above the one before, of the same company."""
    patterns = {
        "P1": f"?company stock:price ?p1 ; stock:volume ?n FILTER(?n > {LEAST_SHARES})",
        **{
            f"P{n}": f"?company stock:price ?p{n} FILTER(?p{n} > ?p{n - 1})"
            for n in range(2, clauses + 1)
        },
    }
    return feeds.of_trades(f" {operator} ".join(patterns), patterns, MINUTES)


def figure(short: bool) -> Figure:
    events, passes = (400, 1) if short else (60_000, 3)
    ways = {name: {n: query(n, sign) for n in CLAUSES} for name, sign in OPERATORS.items()}
    with feeds.trades(events) as feed:
        lines = feeds.lines(ways, feed, passes)
    ratios = ", ".join(f"{spread(line.points):.2f} ({line.name})" for line in lines)
    return Figure(
        name="spaseq-clauses",
        question="What does each further clause of a sequence cost?",
        source="SPAseq, sequences of three to seven clauses",
        data=f"{events:,} generated trades",
        query=query(3, ";"),
        others="SPAseq: flat in the number of clauses, two to three orders of magnitude above "
        "EP-SPARQL.",
        x=Axis("clauses"),
        y=Axis("throughput", "events/s"),
        lines=lines,
        answer=f"From three to seven clauses the rate changes by a factor of {ratios}.",
    )


if __name__ == "__main__":
    main(figure)
