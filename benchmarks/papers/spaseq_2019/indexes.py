"""What the indexes of partial matches save: by equal registers, by a range, and both off.

`A ; B` over sales under a thousand names, where B is under A's name and at a lower price. The rules
`equality_index` and `range_index` are what `SPASEQ_DISABLE` switches off.

    python benchmarks/papers/spaseq_2019/indexes.py
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import streams
from figure import Axis, Case, Figure, Line, main, rates, without
from workloads import query

NAMES = 1_000
WINDOWS = (100, 300, 1_000, 3_000)
WAYS = {
    "all indexes": "",
    "no equality index": "equality_index",
    "no range index": "range_index",
    "neither": "equality_index,range_index",
}
PATTERNS = {"A": "?n :SELL ?p1", "B": "?n :SELL ?p2 FILTER(?p2 < ?p1)"}


def figure(short: bool) -> Figure:
    count, passes, windows = (2_000, 1, WINDOWS[:2]) if short else (50_000, 3, WINDOWS)
    events = partial(streams.dealing, NAMES)(count)
    lines = []
    for name, rules in WAYS.items():
        with without(rules):
            cases = {float(n): Case(query("A : B", PATTERNS, n), events) for n in windows}
            lines.append(Line(name, rates(cases, passes)))
    counts = {tuple(point.counts["matches"] for point in line.points) for line in lines}
    if len(counts) != 1:
        raise SystemExit(f"the matches depend on the indexes: {counts}")
    ratio = {line.name: line.points[-1].median / lines[-1].points[-1].median for line in lines}
    return Figure(
        name="spaseq-indexes",
        question="What does it save to find partial matches by an index?",
        source="SPAseq, indexing of runs",
        data=f"{count:,} sales and purchases under {NAMES:,} names",
        query=query("A : B", PATTERNS, 1_000),
        others="SPAseq: runs found by an index, on and off.",
        x=Axis("window", "s", log=True),
        y=Axis("throughput", "events/s", log=True),
        lines=lines,
        answer=f"At a window of {windows[-1]:,} s the indexes make this query "
        f"{ratio['all indexes']:.1f} times as fast as without either; with the range index alone "
        f"it is {ratio['no equality index']:.1f} times, with the equality index alone "
        f"{ratio['no range index']:.1f} times.",
    )


if __name__ == "__main__":
    main(figure)
