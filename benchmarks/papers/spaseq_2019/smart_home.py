"""Three streams of a house: it draws much power, its panel generates some, and then it is windy.

The query joins the power and the generation of the same house with the weather, under skip till
next and strict contiguity over all three streams, and with a Kleene plus. The data are those that
SPASEQ_DATA names; the number of matches is compared with an independent count.

    python benchmarks/papers/spaseq_2019/smart_home.py
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import feeds
import readings
from feeds import EX
from figure import Axis, Figure, Line, main, spread
from readings import Reading

MINUTES = (10, 20, 30, 60, 120)
STREAMS = {"power": readings.POWER, "generation": readings.PANEL, "weather": readings.WIND}
LEAST = {"power": 500, "generation": 5, "weather": 2}
"""In watts, milliamperes of a sensor, and miles an hour."""
SEQUENCES = {
    "skip till next": "Draws ; Generates ; Windy",
    "strict": "Draws , Generates , Windy",
    "skip till next, with a Kleene plus": "Draws ; Generates+ ; Windy",
}

Instant = tuple[int, int]
"""(microseconds, how many readings of its stream came before at that time)"""


def query(sequence: str, minutes: int) -> str:
    declared = " ".join(f"FROM STREAM {name} <{readings.stream_of(name)}>" for name in STREAMS)
    return (
        f"PREFIX : <{EX}> SELECT * WITHIN {minutes} MINUTES {declared} WHERE {{ "
        f"SEQ({SEQUENCES[sequence]}) "
        f"DEFINE GPM Draws ON power {{ ?house :value ?watts FILTER(?watts > {LEAST['power']}) }} "
        "DEFINE GPM Generates ON generation "
        f"{{ ?house :value ?current FILTER(?current > {LEAST['generation']}) }} "
        "DEFINE GPM Windy ON weather "
        f"{{ [] :value ?wind FILTER(?wind > {LEAST['weather']}) }} }}"
    )


def instants(some: Sequence[Reading]) -> list[Instant]:
    before: Counter[int] = Counter()
    found = []
    for seconds, _, _ in some:
        micros = round(1e6 * seconds)
        found.append((micros, before[micros]))
        before[micros] += 1
    return found


def counted(streams: Mapping[str, Sequence[Reading]], sequence: str, minutes: int) -> int:
    """From each reading of the power that fits, always the next ones that fit."""
    draws, generates, windy = (
        [
            instant
            for instant, (_, _, value) in zip(instants(some), some, strict=True)
            if round(value, 4) > LEAST[name]
        ]
        for name, some in streams.items()
    )
    window = 60_000_000 * minutes
    if sequence == "strict":
        every = sorted({instant for some in streams.values() for instant in instants(some)})
        fitting = [set(some) for some in (draws, generates, windy)]
        return sum(
            three[2][0] - three[0][0] <= window
            and all(instant in some for instant, some in zip(three, fitting, strict=True))
            for three in zip(every, every[1:], every[2:], strict=False)
        )
    total = 0
    for first in draws:
        last = (first[0] + window, sys.maxsize)
        begin = bisect_right(generates, first)
        end = bisect_right(generates, last) if "plus" in sequence else begin + 1
        for generated in generates[begin:end]:
            place = bisect_right(windy, generated)
            total += place < len(windy) and windy[place] <= last
    return total


def figure(short: bool) -> Figure:
    events, passes, minutes = (1_500, 1, MINUTES[-1:]) if short else (10_000, 3, MINUTES)
    streams = {name: data.readings(events) for name, data in STREAMS.items()}
    lines = []
    with readings.written(streams) as some:
        for sequence in SEQUENCES:
            queries = {float(size): query(sequence, size) for size in minutes}
            lines.append(Line(sequence, feeds.rates(queries, some, passes)))
    for line in lines:
        for point in line.points:
            expected = counted(streams, line.name, round(point.x))
            if point.counts["matches"] != expected:
                raise SystemExit(f"{line.name}: {point.counts['matches']} matches, not {expected}")
    ratios = ", ".join(f"{spread(line.points):.2f} ({line.name})" for line in lines)
    return Figure(
        name="spaseq-smart-home",
        question="What does a query over three streams of a house cost, by the size of the window?",
        source="SPAseq, smart home: power, generation and weather",
        data=f"{events:,} readings of each of three streams, one a minute",
        query=query("skip till next, with a Kleene plus", 30),
        others="SPAseq: the cost of several streams is that of their events; a Kleene plus costs "
        "its matches.",
        x=Axis("window", "minutes"),
        y=Axis("throughput, with reading", "events/s"),
        lines=lines,
        answer=f"From {minutes[0]} to {minutes[-1]} minutes the rate changes by a factor of "
        f"{ratios}.",
    )


if __name__ == "__main__":
    main(figure)
