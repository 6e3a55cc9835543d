"""A rarest kind that changes: joined eagerly, lazily from the end, and as the engine chooses.

`A : B : C`, where A and B are compared by a product. First C is rare, then A, then C again.

    python benchmarks/papers/lazy/adaptive.py
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from time import process_time

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import counts
import feeding
import streams
from figure import Axis, Figure, Line, Point, main
from streams import Happening
from workloads import FILTER, LEAST, query

import spaseq
from spaseq.rdf.limits import NO_LIMIT

WINDOW = 300
RARE = "CAC"
WAYS = {"eagerly": False, "lazily": True, "as the engine chooses": None}
PATTERNS = {"A": "[] :A ?x", "B": f"[] :B ?y {FILTER}", "C": "[] :C []"}


@cache
def changing(each: int) -> Sequence[Happening]:
    """A phase for each rare kind: one event in a thousand has it, the others are as likely."""
    chance = random.Random(8)
    found: list[Happening] = []
    for rare in RARE:
        others = [kind for kind in "ABC" if kind != rare]
        for _ in range(each):
            kind = rare if chance.random() < 0.001 else chance.choice(others)
            found.append((kind, 0, chance.randint(1, 1000)))
    return found


def phases(
    program: spaseq.Program, events: Sequence[Happening], lazily: bool | None
) -> tuple[list[float], int, int, int]:
    """Seconds of each phase, the matches, the rows that lazy joins examined, and the switches."""
    run = program.start()
    batches = streams.encoded(run, events)
    native = feeding.compiled(run)
    native.core.lazy_join.join(lazily)
    seconds = [0.0] * len(RARE)
    found = position = 0
    for batch in batches:
        phase = position * len(RARE) // len(events)
        started = process_time()
        after, some, _ = native.tally(batch, position, NO_LIMIT)
        seconds[phase] += process_time() - started
        found += some
        position += after
    return seconds, found, native.core.lazy_join.searched, native.core.lazy_join.switches


def figure(short: bool) -> Figure:
    each, passes = (2_000, 1) if short else (100_000, 3)
    events = changing(each)
    expected = counts.products(events, WINDOW, LEAST)
    program = spaseq.compile(query("A : B : C", PATTERNS, WINDOW))
    lines = [Line(name, [Point(n, []) for n in range(len(RARE))]) for name in WAYS]
    for _ in range(passes):
        for line, lazily in zip(lines, WAYS.values(), strict=True):
            seconds, found, looked, switches = phases(program, events, lazily)
            if found != expected:
                raise SystemExit(f"{line.name}: {found} matches, not {expected}")
            for point, spent in zip(line.points, seconds, strict=True):
                point.values.append(each / spent)
                point.counts = {"matches": found, "rows examined": looked, "switches": switches}
    eager, lazy, chosen = (sum(each / p.median for p in line.points) for line in lines)
    return Figure(
        name="lazy-adaptive",
        question="Does the engine follow, when another kind becomes the rarest?",
        source="Lazy chain NFA, adaptivity",
        data=f"three phases of {each:,} events; one in a thousand has the rare kind of the phase",
        query=query("A : B : C", PATTERNS, WINDOW),
        others="Lazy chain NFA: orders by current frequencies keep the throughput.",
        x=Axis("", places=tuple(f"{rare} is rare" for rare in RARE)),
        y=Axis("throughput", "events/s"),
        lines=lines,
        answer=f"Over all phases what the engine chooses takes {chosen / min(eager, lazy):.2f} of "
        f"the time of the better way, and {chosen / max(eager, lazy):.2f} of the worse, with "
        f"{lines[-1].points[0].counts['switches']} switches.",
    )


if __name__ == "__main__":
    main(figure)
