"""Seven shapes of queries over sales and purchases, in CORE's regime.

Q1 is a sequence of four names, Q2 adds conditions on prices, Q3 agrees on a name, Q4 does both, Q5
has disjunctions, Q6 disjunctions that agree on a name, and Q7 an iteration. Matches consume, and
the first ten of an event are enumerated.

    python benchmarks/papers/core/stocks.py
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import streams
from figure import Axis, Case, Figure, Line, main, rates, spread
from workloads import FIRST, SKIP, query

NAMES = 10
WINDOWS = (50, 100, 200)


def _of(kind: str, name: int, number: int, least: int = 0) -> str:
    condition = f" && ?p{number} > {least}" if least else ""
    return f"?n{number} :{kind} ?p{number} FILTER(?n{number} = :k{name}{condition})"


def _either(number: int) -> dict[str, str]:
    """A sale or a purchase under the common name."""
    return {f"S{number}": f"?n :SELL ?s{number}", f"P{number}": f"?n :BUY ?b{number}"}


QUERIES: Mapping[str, tuple[str, dict[str, str]]] = {
    "Q1": ("A : B : C : D", {"A": _of("SELL", 0, 1), "B": _of("BUY", 1, 2),
                             "C": _of("BUY", 2, 3), "D": _of("SELL", 3, 4)}),
    "Q2": ("A : B : C : D", {"A": _of("SELL", 0, 1, 90), "B": _of("BUY", 1, 2, 95),
                             "C": _of("BUY", 2, 3), "D": _of("SELL", 3, 4, 90)}),
    "Q3": ("A : B : C : D", {"A": "?n :SELL ?p1", "B": "?n :BUY ?p2",
                             "C": "?n :BUY ?p3", "D": "?n :SELL ?p4"}),
    "Q4": ("A : B : C : D", {"A": "?n :SELL ?p1 FILTER(?p1 > 100)", "B": "?n :BUY ?p2",
                             "C": "?n :BUY ?p3 FILTER(?p3 < ?p1)", "D": "?n :SELL ?p4"}),
    "Q5": ("A : (B | C) : D", {"A": _of("SELL", 0, 1), "B": _of("BUY", 1, 2),
                               "C": _of("SELL", 2, 3), "D": _of("SELL", 3, 4)}),
    "Q6": ("A : (S2 | P2) : (S3 | P3) : D",
           {"A": "?n :SELL ?p1", **_either(2), **_either(3), "D": "?n :SELL ?p4"}),
    "Q7": ("A : B+ : D", {"A": _of("SELL", 0, 1), "B": "?m :BUY ?p2 FILTER(?m = :k1)",
                          "D": _of("SELL", 3, 4)}),
}  # fmt: skip


def text(name: str, window: int) -> str:
    sequence, patterns = QUERIES[name]
    return query(sequence, patterns, window, SKIP)


def figure(short: bool) -> Figure:
    count, passes = (3_000, 1) if short else (100_000, 5)
    events = partial(streams.dealing, NAMES)(count)
    lines = []
    for window in WINDOWS:
        cases = {
            float(n): Case(text(name, window), events, most=FIRST) for n, name in enumerate(QUERIES)
        }
        lines.append(Line(f"window of {window} s", rates(cases, passes)))
    return Figure(
        name="core-stocks",
        question="How do queries over stocks fare, by their operators?",
        source="CORE, stock queries Q1 to Q7, by their shapes",
        data=f"{count:,} sales and purchases under {NAMES} names; matches consume; the first "
        f"{FIRST} of an event",
        query=text("Q6", WINDOWS[-1]),
        others="CORE: a stable throughput over all of them. Others: lower by orders of magnitude.",
        x=Axis("", places=tuple(QUERIES)),
        y=Axis("throughput", "events/s"),
        lines=lines,
        answer=f"At a window of {WINDOWS[-1]} s the queries differ by a factor of "
        f"{spread(lines[-1].points):.1f}.",
    )


if __name__ == "__main__":
    main(figure)
