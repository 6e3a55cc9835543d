"""m events `T` and then one `H`: the cost of a single event that completes m matches.

The automaton keeps the m partial matches as one group, so the last event costs the same for every m
until its matches are enumerated; enumerating them costs a constant each.

    python benchmarks/papers/registers/one_end.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

from feeding import one_by_one
from figure import Axis, Figure, Line, Point, main
from streams import EX, Happening

import spaseq
from spaseq.rdf.limits import NO_LIMIT

SIZES = (10, 100, 1_000, 10_000, 100_000)
QUERY = (
    f"PREFIX : <{EX}> SELECT * WITHIN 1000000 SECONDS FROM STREAM s :s WHERE {{ SEQ(T : H) "
    "DEFINE GPM T ON s { ?room :T [] } DEFINE GPM H ON s { ?room :H [] } }"
)


def last(size: int, passes: int, most: int) -> Point:
    """Microseconds of the processor for the event `H` after `size` events `T`."""
    events: list[Happening] = [("T", "1", 1)] * size
    point = Point(size, [])
    for _ in range(passes):
        run = spaseq.compile(QUERY).start()
        one_by_one(run, events)
        spent, found = one_by_one(run, [("H", "1", 1)], size, most)
        if found != min(size, most):
            raise SystemExit(f"{found} matches after {size} events")
        point.values.append(spent[0] / 1000)
        point.counts = {"matches": found}
    return point


def figure(short: bool) -> Figure:
    sizes, passes = (SIZES[:2], 1) if short else (SIZES, 7)
    first = [last(size, passes, 1) for size in sizes]
    every = [last(size, passes, NO_LIMIT) for size in sizes]
    each = [1000 * point.median / point.x for point in every]
    return Figure(
        name="registers-one-end",
        question="What does one event cost that completes m partial matches at once?",
        source="Alevizos, Artikis, Paliouras: symbolic register transducers; no figure of theirs",
        data="m events T of one room, then one H",
        query=QUERY,
        others="An engine with one run for each partial match visits all m of them.",
        x=Axis("partial matches", log=True),
        y=Axis("processor time of the last event", "µs", log=True),
        lines=[Line("first match", first), Line("all matches", every)],
        answer=f"The first match: {first[0].median:.0f} µs after {sizes[0]} events, "
        f"{first[-1].median:.0f} µs after {sizes[-1]:,}. All of them: {each[-1]:.0f} ns each.",
    )


if __name__ == "__main__":
    main(figure)
