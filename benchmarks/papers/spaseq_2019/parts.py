"""Where the time goes: reading the file, matching graph patterns, running the automaton.

The three queries are measured with reading alone, with reading and graph patterns, and as a whole;
the differences are the parts.

    python benchmarks/papers/spaseq_2019/parts.py
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from time import process_time

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import feeds
from feeds import Feed
from figure import Axis, Figure, Line, Point, main

import spaseq
from spaseq.pipeline import matches

RISING = {
    "P1": "?company stock:price ?p1 ; stock:volume ?n FILTER(?n > 500)",
    "P2": "?company stock:price ?p2 FILTER(?p2 > ?p1)",
    "P3": "?company stock:price ?p3 FILTER(?p3 > ?p2)",
}
FALLING = RISING | {"P2": "?company stock:price ?p2 FILTER(?p2 < PREV(?p2, ?p1))"}
FALLING["P3"] = "?company stock:price ?p3 FILTER(?p3 > ?p1)"
QUERIES = {
    "one step": feeds.of_trades("P1", {"P1": RISING["P1"]}, 10),
    "P1 ; P2 ; P3": feeds.of_trades("P1 ; P2 ; P3", RISING, 10),
    "P1 ; P2+ ; P3": f"{feeds.of_trades('P1 ; P2+ ; P3', FALLING, 10)} EMIT NEXT",
}
PARTS = ("reading", "graph patterns", "automaton and matches")


def seconds(program: spaseq.Program, feed: Feed) -> tuple[list[float], int]:
    """Seconds of reading, of graph patterns, and of the rest; the matches."""
    gc.collect()
    run = program.start()
    started = process_time()
    batches = list(feed.source(run).batches())
    read = process_time() - started
    patterns = run.rows.matchers
    started = process_time()
    for batch in batches:
        for number in range(len(patterns.patterns)):
            patterns.count(batch, number)
    matched = process_time() - started
    run = program.start()
    started = process_time()
    found = sum(1 for _ in matches(run, feed.source(run)))
    whole = process_time() - started
    return [read, matched, max(whole - read - matched, 0.0)], found


def figure(short: bool) -> Figure:
    events, passes = (400, 1) if short else (60_000, 5)
    lines = [Line(part, [Point(n, []) for n in range(len(QUERIES))]) for part in PARTS]
    with feeds.trades(events) as feed:
        for _ in range(passes):
            for place, text in enumerate(QUERIES.values()):
                spent, found = seconds(spaseq.compile(text), feed)
                for line, part in zip(lines, spent, strict=True):
                    line.points[place].values.append(1e6 * part / events)
                    line.points[place].counts = {"events": events, "matches": found}
    shares = [line.points[-1].median for line in lines]
    shown = ", ".join(
        f"{line.name} {share / sum(shares):.0%}" for line, share in zip(lines, shares, strict=True)
    )
    return Figure(
        name="spaseq-parts",
        question="Where does the time go?",
        source="SPAseq, break-down of an event's cost",
        data=f"{events:,} generated trades",
        query=QUERIES["P1 ; P2+ ; P3"],
        others="None: these are parts of this engine, which other engines do not have.",
        x=Axis("", places=tuple(QUERIES)),
        y=Axis("processor time for each event", "µs"),
        lines=lines,
        answer=f"Of the query with a Kleene plus: {shown}.",
    )


if __name__ == "__main__":
    main(figure)
