"""pyoxigraph: the events of the window in a store, which is queried when a match can end.

Rows that were joined for one event are joined again for the next, as in any engine that evaluates a
SPARQL query for each window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import pyoxigraph as ox
import sparql
from protocol import Event, Question, serve

TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
TIME, KEY = ox.NamedNode(f"{sparql.EX}t"), ox.NamedNode(f"{sparql.EX}k")

Arrival = tuple[int, ox.NamedNode, list[ox.Quad], bool]
"""(time, event, its quads, whether it may end a match)"""


def prepare(question: Question, events: Sequence[Event]) -> list[Arrival]:
    found = []
    for time, kind, key in events:
        if kind not in question.kinds:
            continue
        event = ox.NamedNode(f"{sparql.EX}e{time}")
        quads = [
            ox.Quad(event, TYPE, ox.NamedNode(sparql.EX + kind)),
            ox.Quad(event, TIME, ox.Literal(time)),
            ox.Quad(event, KEY, ox.Literal(key)),
        ]
        found.append((time, event, quads, kind == question.kinds[-1]))
    return found


def count(question: Question, arrivals: list[Arrival]) -> int:
    store, held = ox.Store(), deque[Arrival]()
    text = sparql.text(question)
    total = 0
    for arrival in arrivals:
        time, event, quads, ends = arrival
        while held and held[0][0] < time - question.window:
            for quad in held.popleft()[2]:
                store.remove(quad)
        store.extend(quads)
        held.append(arrival)
        if ends:
            (solution,) = store.query(text.replace(sparql.END, str(event)))
            total += int(solution["n"].value)
    return total


if __name__ == "__main__":
    serve(prepare, count, ("next", "all", "key"))
