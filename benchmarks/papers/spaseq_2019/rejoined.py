"""Sequences beside an evaluator that joins each window again: a stand-in for EP-SPARQL.

The stand-in keeps the events of the window in a store of pyoxigraph and evaluates a SPARQL query at
each event, as one would without a language for sequences. It is measured on the last events of a
stream that fills the window, and both engines must find the same matches that end there.

    python benchmarks/papers/spaseq_2019/rejoined.py
"""

from __future__ import annotations

import sys
from collections import deque
from pathlib import Path
from time import process_time

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import feeds
import pyoxigraph as ox
from feeds import Feed
from figure import Axis, Figure, Line, Point, main

import spaseq
from spaseq.pipeline import matches

MINUTES = (1, 2, 5, 10)
MEASURED = 50
"""So many events are measured after the first window."""
SECONDS_BETWEEN = 2
"""Generated trades are about so far apart."""
STOCK = "http://w3id.org/spaseq/stock#"
AT = ox.NamedNode(f"{STOCK}at")
PATTERNS = {
    "P1": "?company stock:price ?p1 ; stock:volume ?n FILTER(?n > 500)",
    "P2": "?company stock:price ?p2 FILTER(?p2 > ?p1)",
    "P3": "?company stock:price ?p3 FILTER(?p3 > ?p2)",
}
REJOINED = f"""PREFIX stock: <{STOCK}> SELECT (COUNT(*) AS ?found) WHERE {{
  GRAPH <end> {{ ?company stock:price ?p3 }}
  GRAPH ?e1 {{ ?company stock:price ?p1 ; stock:volume ?n }} ?e1 stock:at ?t1 FILTER(?n > 500)
  GRAPH ?e2 {{ ?company stock:price ?p2 }} ?e2 stock:at ?t2
  FILTER(?p2 > ?p1 && ?p3 > ?p2 && ?t1 < ?t2 && ?t2 < LAST)
  FILTER NOT EXISTS {{ GRAPH ?x {{ ?company stock:price ?p }} ?x stock:at ?t
    FILTER(?p > ?p1 && ?t1 < ?t && ?t < ?t2) }}
  FILTER NOT EXISTS {{ GRAPH ?y {{ ?company stock:price ?q }} ?y stock:at ?u
    FILTER(?q > ?p2 && ?t2 < ?u && ?u < LAST) }}
}}"""
"""`P1 ; P2 ; P3` that end in the event `<end>` at `LAST`: each the next that fits."""


def rejoined(feed: Feed, minutes: int) -> tuple[float, int]:
    """Seconds for the last events, and their matches."""
    held: deque[tuple[int, list[ox.Quad]]] = deque()
    store = ox.Store()
    events = list(feed.source())
    found, seconds = 0, 0.0
    for number, event in enumerate(events):
        end = ox.NamedNode(f"{feeds.EX}e{number}")
        last = event.time.micros
        quads = [ox.Quad(*fact, end) for fact in event.facts]
        quads.append(ox.Quad(end, AT, ox.Literal(last)))
        started = process_time()
        while held and held[0][0] < last - minutes * 60_000_000:
            for quad in held.popleft()[1]:
                store.remove(quad)
        store.extend(quads)
        held.append((last, quads))
        if number >= len(events) - MEASURED:
            text = REJOINED.replace("<end>", str(end)).replace("LAST", str(last))
            (solution,) = store.query(text)
            found += int(solution["found"].value)
            seconds += process_time() - started
    return seconds, found


def ending_last(feed: Feed, query: str) -> int:
    """How many matches of this engine the last events end."""
    run = spaseq.compile(query).start()
    ends = [match.end.micros for match in matches(run, feed.source())]
    last = list(feed.source())[-MEASURED:]
    return sum(end >= last[0].time.micros for end in ends)


def figure(short: bool) -> Figure:
    minutes, events, passes = (MINUTES[:1], 2_000, 1) if short else (MINUTES, 60_000, 3)
    queries = {float(n): feeds.of_trades("P1 ; P2 ; P3", PATTERNS, n) for n in minutes}
    with feeds.trades(events) as feed:
        ours = feeds.rates(queries, [feed], passes)
    others = []
    for size, query in zip(minutes, queries.values(), strict=True):
        point = Point(size, [])
        with feeds.trades(size * 60 // SECONDS_BETWEEN + MEASURED) as feed:
            expected = ending_last(feed, query)
            for _ in range(passes):
                seconds, found = rejoined(feed, size)
                if found != expected:
                    raise SystemExit(f"{size} minutes: {expected} matches, {found} by SPARQL")
                point.values.append(MEASURED / seconds)
        point.counts = {"events": MEASURED, "matches": expected}
        others.append(point)
    lines = [Line("this engine", ours), Line("a SPARQL query for each event", others, "other")]
    ratios = [one.median / other.median for one, other in zip(ours, others, strict=True)]
    return Figure(
        name="spaseq-rejoined",
        question="What does it save to keep partial matches, rather than join each window again?",
        source="SPAseq, comparison with EP-SPARQL",
        data=f"{events:,} generated trades; for the other engine those of the first window and "
        f"{MEASURED} more, which are measured, and whose matches are compared",
        query=feeds.of_trades("P1 ; P2 ; P3", PATTERNS, 10),
        others="SPAseq: two to three orders of magnitude above EP-SPARQL. Here a SPARQL query of "
        "pyoxigraph stands for it, asked of the window at each event.",
        x=Axis("window", "minutes", log=True),
        y=Axis("throughput", "events/s", log=True),
        lines=lines,
        answer=f"This engine is {ratios[0]:,.0f} times as fast at a window of {minutes[0]} minutes "
        f"and {ratios[-1]:,.0f} times at {minutes[-1]}, although it also reads the file.",
    )


if __name__ == "__main__":
    main(figure)
