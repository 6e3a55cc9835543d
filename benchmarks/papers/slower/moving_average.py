"""A moving average by EMIT MAX over an iteration, beside GROUP OVER: the same averages.

python benchmarks/papers/slower/moving_average.py
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from time import process_time

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import streams
from figure import Axis, Figure, Line, Point, main
from streams import EX, Happening

import spaseq

WINDOWS = (10, 30, 60, 150)
HEAD = f"PREFIX : <{EX}> SELECT (AVG(?v) AS ?mean)"
PATTERN = "DEFINE GPM R ON s { ?x :v ?v }"


def emitted(window: int) -> str:
    """The longest iteration that ends in each event is all of its window."""
    where = f"WHERE {{ SEQ(R+) {PATTERN} }}"
    return f"{HEAD} WITHIN {window} SECONDS FROM STREAM s :s EMIT MAX {where}"


def grouped(window: int) -> str:
    """OVER leaves out what is exactly so old."""
    where = f"WHERE {{ SEQ(R) {PATTERN} }}"
    return f"{HEAD} WITHIN 1 SECOND FROM STREAM s :s {where} GROUP OVER {window + 1} SECONDS"


WAYS = {"EMIT MAX over R+": emitted, "GROUP OVER": grouped}


def means(program: spaseq.Program, events: list[Happening]) -> tuple[float, list[float]]:
    """Processor seconds, and the average at each event."""
    run = program.start()
    batches = streams.encoded(run, events)
    started = process_time()
    found = [float(str(match["mean"])) for batch in batches for match in run.push_batch(batch)]
    return process_time() - started, found


def figure(short: bool) -> Figure:
    count, passes, windows = (100, 1, WINDOWS[:2]) if short else (500, 3, WINDOWS)
    chance = random.Random(1)
    events: list[Happening] = [("v", 0, chance.randrange(100)) for _ in range(count)]
    lines = [Line(name, [Point(window, []) for window in windows]) for name in WAYS]
    for place, window in enumerate(windows):
        programs = [spaseq.compile(way(window)) for way in WAYS.values()]
        for _ in range(passes):
            answers = []
            for line, program in zip(lines, programs, strict=True):
                seconds, found = means(program, events)
                answers.append([round(mean, 6) for mean in found])
                line.points[place].values.append(count / seconds)
                line.points[place].counts = {"events": count, "averages": len(found)}
            if answers[0] != answers[1]:
                raise SystemExit(f"a window of {window} s: the averages differ")
    ratios = [
        two.median / one.median for one, two in zip(lines[0].points, lines[1].points, strict=True)
    ]
    return Figure(
        name="slower-moving-average",
        question="What does a moving average cost, if it is asked for as the longest iteration?",
        source="no publication",
        data=f"{count:,} readings, one a second",
        query=emitted(60),
        others="GROUP OVER, which keeps sums.",
        x=Axis("window", "s"),
        y=Axis("throughput", "events/s", log=True),
        lines=lines,
        answer=f"GROUP OVER is {ratios[0]:,.0f} times as fast at a window of {windows[0]} s and "
        f"{ratios[-1]:,.0f} times at {windows[-1]}. EMIT MAX visits each "
        "event of the longest match again.",
    )


if __name__ == "__main__":
    main(figure)
