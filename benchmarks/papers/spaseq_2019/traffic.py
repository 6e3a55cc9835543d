"""A conjunction over the traffic of Aarhus: joined lazily by AND, and eagerly by all orders.

In one window, in any order, traffic crawls on one segment, is fast on another one, and slow on a
third one, where that is rare. The speeds of the first two are correlated by a product that no index
serves. AND is compared with a disjunction of all orders of the three, which is joined eagerly. The
data are those that SPASEQ_DATA names; the number of matches is compared with an independent count.

    python benchmarks/papers/spaseq_2019/traffic.py
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import feeds
import readings
from feeds import EX
from figure import Axis, Figure, Line, main
from readings import Reading
from workloads import in_all_orders

MINUTES = (10, 20, 30, 60)
SEGMENT = "183009"
CRAWL, FAST, SLOW, PRODUCT = 16, 80, 20, 1600
"""Bounds of the three speeds in km/h, and of the product of the first two."""
PATTERNS = {
    "A": f"?x :value ?a FILTER(?a < {CRAWL})",
    "B": f"?y :value ?b FILTER(?b > {FAST})",
    "C": f":{SEGMENT} :value ?c FILTER(?c < {SLOW})",
}
CORRELATED = f"FILTER(?a * ?b > {PRODUCT})"
WAYS = {
    "AND, lazily": ("A AND B AND C", PATTERNS | {"B": f"{PATTERNS['B']} {CORRELATED}"}),
    "all orders, eagerly": in_all_orders(PATTERNS, {"AB": CORRELATED}),
}


def query(way: str, minutes: int) -> str:
    sequence, patterns = WAYS[way]
    defined = " ".join(f"DEFINE GPM {gpm} ON s {{ {text} }}" for gpm, text in patterns.items())
    return (
        f"PREFIX : <{EX}> SELECT * WITHIN {minutes} MINUTES "
        f"FROM STREAM s <{readings.stream_of('traffic')}> WHERE {{ SEQ({sequence}) {defined} }}"
    )


def counted(some: Sequence[Reading], minutes: int) -> int:
    """Three different readings, of which the last is at most so much later than the first."""
    crawls = [(n, r[0], r[2]) for n, r in enumerate(some) if r[2] < CRAWL]
    fast = [(time, speed) for time, _, speed in some if speed > FAST]
    window = 60 * minutes
    total = 0
    for number, (at, key, speed) in enumerate(some):
        if key != SEGMENT or speed >= SLOW:
            continue
        near = [one for one in crawls if abs(one[1] - at) <= window and one[0] != number]
        for time, other in fast:
            if abs(time - at) <= window:
                total += sum(
                    max(at, begun, time) - min(at, begun, time) <= window
                    and crawl * other > PRODUCT
                    for _, begun, crawl in near
                )
    return total


def figure(short: bool) -> Figure:
    passes, minutes = (1, MINUTES[:1]) if short else (3, MINUTES)
    some = readings.TRAFFIC.readings(300_000)
    slow = [n for n, (_, key, speed) in enumerate(some) if key == SEGMENT and speed < SLOW]
    if short:
        some = some[slow[0] - 1_000 : slow[0] + 1_000]
    lines = []
    with readings.written({"traffic": some}) as streams:
        for way in WAYS:
            queries = {float(size): query(way, size) for size in minutes}
            lines.append(Line(way, feeds.rates(queries, streams, passes)))
    for line in lines:
        for point in line.points:
            if point.counts["matches"] != counted(some, round(point.x)):
                raise SystemExit(f"{line.name}: {point.counts['matches']} matches")
    lazy, eager = (line.points[-1] for line in lines)
    looked = lazy.counts["evaluations"] / eager.counts["evaluations"]
    return Figure(
        name="spaseq-traffic",
        question="What does a conjunction over traffic cost, joined lazily and eagerly?",
        source="SPAseq, conjunction over the traffic of Aarhus",
        data=f"{len(some):,} readings of the speed on 449 segments; {len(slow)} of three days "
        "complete a match",
        query=query("AND, lazily", 30),
        others="SPAseq: lazy evaluation of conjunctions ahead of eager by the size of the window.",
        x=Axis("window", "minutes"),
        y=Axis("throughput, with reading", "events/s", log=True),
        lines=lines,
        answer=f"At a window of {minutes[-1]} minutes AND has {lazy.median / eager.median:.2g} of "
        f"the rate of all orders, and evaluates filters {looked:.2g} times as often. Speeds are "
        "whole numbers: partial matches with equal speeds are one group, which is compared once, "
        "while AND compares row by row.",
    )


if __name__ == "__main__":
    main(figure)
