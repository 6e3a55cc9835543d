"""Other engines beside this one: the same questions over the same events, in one run.

`next`: A1 ; A2 ; A3, from each A1 the next of each. `all`: A1 : A2 : A3, every combination. `key`:
A : B, every pair of one key. `never`: like `next`, in a window that is a hundred times as long,
over events without an A3. An engine that is too slow for all events gets only some of them, and
this engine is then also measured on these. All numbers of matches are compared with an independent
count.

    python benchmarks/papers/peers/sequences.py --peers duckdb polars
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))

import counts
import feeding
import streams
from driving import Driver, Peer, Unable
from figure import Axis, Figure, Line, Point, beside, main
from streams import Happening
from workloads import kinds_only, query

import spaseq

Events = Sequence[Happening]
STEPS = ["A1", "A2", "A3"]
KEYS, LONG = 1_000, 10_000
EVENTS, SHORT = 200_000, 2_000
ENOUGH = 10_000
"""Over fewer events, the mean of up to `REPEATS` passes of this engine counts as one."""
REPEATS = 20
FEWEST = 60


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, with this engine's query and an independent count.

    Args:
        name: Of the case, for `Peer.most`.
        question: Of the protocol.
    """

    name: str
    question: str
    title: str
    window: int
    kinds: Sequence[str]
    query: str
    events: Callable[[int], Events]
    count: Callable[[Events], int]


QUESTIONS = [
    Asked(
        "next", "next", "A1 ; A2 ; A3, next", 100, STEPS, kinds_only(STEPS, ";", 100),
        partial(streams.steps, 3), partial(counts.nearest, kinds=STEPS, window=100),
    ),
    Asked(
        "all", "all", "A1 : A2 : A3, all", 100, STEPS, kinds_only(STEPS, ":", 100),
        partial(streams.steps, 3), lambda events: sum(counts.endings(events, STEPS, 100)),
    ),
    Asked(
        "key", "key", "A : B, one key", LONG, "AB",
        query("A : B", {"A": "?k :A []", "B": "?k :B []"}, LONG),
        partial(streams.keyed, KEYS), partial(counts.joined, window=LONG),
    ),
    Asked(
        "never", "next", "next, no A3 comes", LONG, STEPS, kinds_only(STEPS, ";", LONG),
        streams.unfinished, partial(counts.nearest, kinds=STEPS, window=LONG),
    ),
]  # fmt: skip


def ours(program: spaseq.Program, events: Events, expected: int) -> float:
    """Seconds of the processor of one pass of the automaton."""
    seconds = []
    for _ in range(min(REPEATS, ENOUGH // len(events)) or 1):
        fed = feeding.tallied(program, events)
        if fed.found != expected:
            raise SystemExit(f"{fed.found} matches where {expected} are expected")
        seconds.append(fed.seconds)
    return sum(seconds) / len(seconds)


def compared(place: int, asked: Asked, driver: Driver, count: int, passes: int) -> Point:
    """How many times our processor time a peer takes; the first pass of each is not counted."""
    events = asked.events(count)
    expected = asked.count(events)
    program = spaseq.compile(asked.query)
    lines = [f"{time},{kind},{key}" for time, (kind, key, _) in enumerate(events)]
    driver.ask(asked.question, asked.window, asked.kinds, lines)
    point = Point(place, [])
    rates = []
    for number in range(passes + 1):
        found, seconds = driver.run()
        if found != expected:
            raise SystemExit(
                f"{driver.peer.name}, {asked.name}: {found} matches where {expected} are expected"
            )
        own = ours(program, events, expected)
        if number:
            point.values.append(max(seconds, 1e-9) / own)
            rates.append(len(events) / own)
    own_rate = round(sorted(rates)[len(rates) // 2])
    point.counts = {"events": len(events), "matches": expected, "of ours/s": own_rate}
    return point


def measured(peer: Peer, short: bool, passes: int, missing: list[str]) -> Line:
    """The questions that a peer can answer; adds to `missing` what it cannot, with the reason."""
    line = Line(peer.name, [], "other")
    try:
        with Driver(peer) as driver:
            for place, asked in enumerate(QUESTIONS):
                count = peer.most.get(asked.name, EVENTS)
                size = max(FEWEST, min(SHORT, count // 20)) if short else count
                try:
                    line.points.append(compared(place, asked, driver, size, passes))
                except Unable as why:
                    missing.append(f"{peer.name}: {why}")
    except Unable as why:
        missing.append(f"{peer.name}: {why}")
    return line


def figure(short: bool, peers: Sequence[Peer]) -> Figure:
    missing: list[str] = []
    some = [measured(peer, short, 1 if short else 5, missing) for peer in peers]
    lines = [line for line in some if line.points]
    closest = []
    for place, asked in enumerate(QUESTIONS):
        found = [(p.median, p, line) for line in lines for p in line.points if p.x == place]
        if found:
            _, point, line = min(found, key=lambda one: one[0])
            closest.append(f"{asked.name} {beside(point)}, {line.name}")
    return Figure(
        name="peers-sequences",
        question="How do other engines fare on the same events?",
        source="Engines that install by name from PyPI and npm; peers/README.md",
        data=f"up to {SHORT if short else EVENTS:,} events, fewer for slower engines, encoded "
        f"before; a window of 100 events, of {LONG:,} for pairs of {KEYS:,} keys and where no A3 "
        "comes. Each number of matches is that of an independent count."
        + (f" Left out: {'; '.join(dict.fromkeys(missing))}." if missing else ""),
        query=QUESTIONS[0].query,
        others="polars and DuckDB get whole tables and join them at once. The others take one "
        "event after the other, as this engine does. pyoxigraph and Comunica ask a SPARQL query of "
        "the window at each event that may end a match, rsp-js an RSP-QL query at every event.",
        x=Axis("", places=tuple(asked.title for asked in QUESTIONS)),
        y=Axis("processor time, as a multiple of ours", log=True, base=1.0),
        lines=lines,
        answer="The fastest other engine takes, as a multiple of our processor time: "
        f"{'; '.join(closest)}. Below 1, it is faster than this one.",
    )


if __name__ == "__main__":
    main(figure, peers=True)
