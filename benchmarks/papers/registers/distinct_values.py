"""Register automata: an event costs the register values it meets, not the partial matches.

`A : B` with a shared variable, in two series. In the first the number of keys grows while a window
holds the same number of events; in the second the window, and so the number of partial matches,
grows a thousandfold over the same ten keys.

    python benchmarks/papers/registers/distinct_values.py
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

from figure import Axis, Case, Figure, Line, main, rates, spread
from streams import EX, Happening

KEYS = (10, 100, 1_000, 10_000, 100_000)
WINDOWS = (100, 1_000, 10_000, 100_000)
FEW = 10
FIRST = 10


@cache
def keyed(keys: int, count: int) -> Sequence[Happening]:
    """Nine A of ten, one B of ten, each with one of the keys; equally likely."""
    chance = Random(keys)
    return [
        ("A" if chance.random() < 0.9 else "B", f"{chance.randrange(keys)}", 1)
        for _ in range(count)
    ]


def query(window: int) -> str:
    return (
        f"PREFIX : <{EX}> SELECT * WITHIN {window} SECONDS FROM STREAM s :s WHERE {{ SEQ(A : B) "
        "DEFINE GPM A ON s { ?k :A [] } DEFINE GPM B ON s { ?k :B [] } }"
    )


def pairs(events: Sequence[Happening], window: int, most: int) -> int:
    """The pairs of an A and a later B of its key inside the window, at most `most` for each B."""
    held: deque[tuple[int, str]] = deque()
    counts: Counter[str] = Counter()
    found = 0
    for number, (kind, key, _) in enumerate(events):
        while held and held[0][0] < number - window:
            counts[held.popleft()[1]] -= 1
        if kind == "A":
            held.append((number, key))
            counts[key] += 1
        else:
            found += min(counts[key], most)
    return found


def case(keys: int, window: int, count: int) -> Case:
    """The first ten matches of each event are enumerated, as in CORE's experiments."""
    events = keyed(keys, count)
    return Case(query(window), events, pairs(events, window, FIRST), FIRST)


def figure(short: bool) -> Figure:
    count, passes = (20_000, 1) if short else (300_000, 5)
    keys = [n for n in KEYS if n <= count]
    windows = [n for n in WINDOWS if n <= count]
    by_keys = rates({n: case(n, 10_000, count) for n in keys}, passes)
    by_window = rates({0.9 * n: case(FEW, n, count) for n in windows}, passes)
    growth = windows[-1] // windows[0]
    return Figure(
        name="registers-distinct-values",
        question="Does an event cost the partial matches, or the distinct register values?",
        source="Alevizos, Artikis, Paliouras: symbolic register transducers; no figure of theirs",
        data=f"{count:,} events of two kinds, uniform keys",
        query=query(10_000),
        others="Engines that hold each partial match as a run pay for all runs of a key.",
        x=Axis("keys, or partial matches", log=True),
        y=Axis("throughput", "events/s"),
        lines=[Line("keys, window of 10,000 events", by_keys),
               Line(f"partial matches, {FEW} keys", by_window)],
        answer=f"{growth:,} times the partial matches change the rate by a factor of "
        f"{spread(by_window):.2f}; {keys[-1] // keys[0]:,} times the keys by "
        f"{spread(by_keys):.2f}.",
    )  # fmt: skip


if __name__ == "__main__":
    main(figure)
