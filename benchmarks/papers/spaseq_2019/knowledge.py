"""A graph pattern with a part in the knowledge base, by the size of the knowledge base.

The first step of a query over trades, whose companies have a name and a sector in a knowledge base
that is padded with companies no trade mentions.

    python benchmarks/papers/spaseq_2019/knowledge.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))
sys.path.append(str(Path(__file__).parents[2] / "kb"))

import local
from figure import Axis, Figure, Line, Point, main

from spaseq.generate import write

TRIPLES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
SAMPLE = 500


def figure(short: bool) -> Figure:
    events, sizes, passes = (500, (500, 2_000), 1) if short else (60_000, TRIPLES, 3)
    whole = Line("reading and matching", [Point(n, []) for n in sizes])
    pattern = Line("the graph pattern alone", [Point(n, []) for n in sizes])
    other = Line("pyoxigraph, a query for each event", [], "other")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write("stock", events, 1, folder)
        path = folder / local.STOCK.file
        kbs = [local.padded(local.STOCK, folder / "kb.ttl", n) for n in sizes]
        engines = [local.Engine(local.STOCK, path, kb) for kb in kbs]
        for _ in range(passes):
            for place, engine in enumerate(engines):
                both, alone, count, rows = engine.once()
                for point, seconds in ((whole.points[place], both), (pattern.points[place], alone)):
                    point.values.append(count / seconds)
                    point.counts = {"events": count, "rows": rows}
        for size, kb in ((sizes[0], kbs[0]), (sizes[-1], kbs[-1])):
            rate = local.by_pyoxigraph(local.STOCK, path, kb, SAMPLE)
            other.points.append(Point(size, [rate], {"events": min(SAMPLE, events)}))
    if len({point.counts["rows"] for point in whole.points}) != 1:
        raise SystemExit("the number of rows depends on the size of the knowledge base")
    first, last = whole.points[0].median, whole.points[-1].median
    times = pattern.points[-1].median / other.points[-1].median
    return Figure(
        name="spaseq-knowledge",
        question="What does a larger knowledge base cost?",
        source="SPAseq, experiment with knowledge bases of 10,000 to a million triples",
        data=f"{events:,} generated trades",
        query=local.STOCK.query(known=True),
        others="SPAseq: sub-linear in the size of the knowledge base.",
        x=Axis("triples", log=True),
        y=Axis("throughput", "events/s", log=True),
        lines=[whole, pattern, other],
        answer=f"With {sizes[-1]:,} triples the rate is {last / first:.2f} of that with "
        f"{sizes[0]:,}; the pattern alone is {times:,.0f} times as fast as pyoxigraph.",
    )


if __name__ == "__main__":
    main(figure)
