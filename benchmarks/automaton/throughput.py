"""The compiled automaton over encoded events: events per second, and the number of matches.

The first table measures the automaton alone: batches are encoded before the measurement, a graph
pattern is one triple, and matches are enumerated and counted, but no object is created. The columns
on the right run a sample of the events with an object per match. `counts.py` confirms every number
of matches; the script fails if one differs. All times are processor times. Passes of the workloads
are interleaved, so that other load affects all of them.

`x nothing` is the time per event relative to a pattern of one step that matches no event. The block
`event by event` shows the distribution of the time of one event. Other engines on the same streams
are in `benchmarks/papers/peers`.

    python benchmarks/automaton/throughput.py --events 200000
    python benchmarks/automaton/throughput.py --only W1 W2
    python benchmarks/automaton/throughput.py --record run.json

`--record` writes the first table as JSON, for `benchmarks/compare.py`.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import feeding
import workloads
from feeding import Fed, Feeding
from workloads import Workload

import spaseq
from spaseq.rdf.limits import NO_LIMIT

compiled = cache(spaseq.compile)


@dataclass
class Series:
    """The passes of one workload with one method of feeding."""

    title: str
    workload: Workload
    events: int
    feed: Feeding
    check: bool = True
    program: spaseq.Program = field(init=False)
    passes: list[Fed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.events = min(self.events, self.workload.most)
        self.program = compiled(self.workload.query)

    def go(self) -> None:
        """Measure one pass."""
        events = self.workload.events(self.events)
        fed = self.feed(self.program, events)
        if not self.passes and self.check:
            expected = self.workload.count(events)
            if fed.found != expected:
                raise SystemExit(f"{self.title}: {fed.found} matches where {expected} are expected")
        self.passes.append(fed)

    @property
    def seconds(self) -> float:
        return statistics.median(fed.seconds for fed in self.passes)

    @property
    def rate(self) -> float:
        """Events per second."""
        return self.events / self.seconds

    @property
    def spread(self) -> str:
        seconds = [fed.seconds for fed in self.passes]
        return f"{self.events / max(seconds):,.0f}–{self.events / min(seconds):,.0f}"

    @property
    def found(self) -> int:
        return self.passes[0].found


def chosen(names: Sequence[str], workload: Workload) -> bool:
    return not names or any(workload.name.startswith(name) for name in names)


def table(
    only: Sequence[str], events: int, sample: int, repeat: int, show: Callable[[str], None]
) -> dict[str, Series]:
    """Every workload, alone and with objects."""
    some = [w for w in workloads.TALLIED if w is workloads.NOTHING or chosen(only, w)]
    alone = [Series(w.name, w, events, feeding.tallied) for w in some]
    made = [Series(w.name, w, min(events, sample), feeding.matched) for w in some]
    for _ in range(repeat):
        for series in (*alone, *made):
            series.go()
    show(
        f"{'automaton alone':28}{'events':>9}{'events/s':>12}{'min–max':>24}{'x nothing':>10}"
        f"{'matches':>11}{'objects:':>10}{'events/s':>11}{'matches/s':>12}"
    )
    floor = alone[0].rate
    for row, objects in zip(alone, made, strict=True):
        per_second = f"{objects.found / objects.seconds:,.0f}" if objects.found else "–"
        show(
            f"{row.title:28}{row.events:>9,}{row.rate:>12,.0f}{row.spread:>24}"
            f"{floor / row.rate:>10.1f}{row.found:>11,}{objects.events:>10,}"
            f"{objects.rate:>11,.0f}{per_second:>12}"
        )
    return {row.title: row for row in alone}


def recorded(rows: dict[str, Series]) -> dict[str, object]:
    """The first table as data: per workload its events, matches and seconds of each pass."""
    return {
        title: {
            "events": row.events,
            "matches": row.found,
            "seconds": [round(fed.seconds, 6) for fed in row.passes],
        }
        for title, row in rows.items()
    }


def ways(
    only: Sequence[str], events: int, sample: int, repeat: int, show: Callable[[str], None]
) -> None:
    """One query by batches and by events; and queries whose matches are read in part."""
    first_steps, next_steps = (
        next(w for w in workloads.TALLIED if w.name == f"W1 n=3 {policy}")
        for policy in ("all", "next")
    )
    take_first = partial(feeding.first_of_each, most=workloads.FIRST)
    few = min(events, sample)
    rows = [
        Series("W1 n=3 all, by batches", first_steps, few, feeding.matched),
        Series("W1 n=3 all, by events", first_steps, few, feeding.pushed),
        Series("W1 n=3 next, by events", next_steps, events, feeding.pushed),
        Series(workloads.MANY.name, workloads.MANY, events, take_first),
        Series(workloads.NONE.name, workloads.NONE, events, take_first),
        Series(workloads.RECOVERIES.name, workloads.RECOVERIES, few, feeding.matched),
        Series(
            workloads.RECOVERIES_LIMITED.name, workloads.RECOVERIES_LIMITED, few, feeding.matched
        ),
        Series(workloads.MEANS.name, workloads.MEANS, few // 5, feeding.matched),
    ]
    rows = [series for series in rows if chosen(only, series.workload)]
    if not rows:
        return
    for _ in range(repeat):
        for series in rows:
            series.go()
    show(
        f"{'with objects':28}{'events':>9}{'events/s':>12}{'min–max':>24}{'matches':>11}"
        f"{'matches/s':>12}{'witnesses/s':>13}"
    )
    for row in rows:
        matches = f"{row.found / row.seconds:,.0f}" if row.found else "–"
        seen = row.passes[0].witnesses
        witnesses = f"{seen / row.seconds:,.0f}" if seen else "–"
        show(
            f"{row.title:28}{row.events:>9,}{row.rate:>12,.0f}{row.spread:>24}{row.found:>11,}"
            f"{matches:>12}{witnesses:>13}"
        )


def enumerated(only: Sequence[str], events: int, repeat: int, show: Callable[[str], None]) -> None:
    """The automaton alone: enumerating all matches, or the first of each event, or none."""
    nine = next(w for w in workloads.TALLIED if w.name == "W1 n=9 all")
    first, none = partial(feeding.tallied, most=workloads.FIRST), partial(feeding.tallied, most=0)
    pairs = [
        (
            Series(workload.name, workload, events, feeding.tallied),
            Series("the same, none enumerated", workload, events, none, check=False),
        )
        for workload in (nine, workloads.RECOVERIES, workloads.ALL_RECOVERIES_OF_FEW)
    ]
    pairs.append(
        (
            Series(workloads.MANY.name, workloads.MANY, events, first),
            Series(workloads.NONE.name, workloads.NONE, events, first),
        )
    )
    pairs = [pair for pair in pairs if chosen(only, pair[0].workload)]
    if not pairs:
        return
    for _ in range(repeat):
        for pair in pairs:
            for series in pair:
                series.go()
    show(
        f"{'enumerated':28}{'events':>9}{'events/s':>12}{'min–max':>24}{'matches':>11}"
        f"{'x none':>8}{'matches/s out':>15}{'witnesses/s out':>17}"
    )
    for some, without in pairs:
        # The rate of output: matches divided by the additional time of enumerating them.
        seconds = some.seconds - without.seconds
        matches, witnesses = (
            f"{count / seconds:,.0f}" if seconds > 0 else "–"  # too few events
            for count in (some.found, some.passes[0].witnesses)
        )
        show(
            f"{some.title:28}{some.events:>9,}{some.rate:>12,.0f}{some.spread:>24}"
            f"{some.found:>11,}{without.rate / some.rate:>8.2f}{matches:>15}{witnesses:>17}"
        )
        show(f"{without.title:28}{without.events:>9,}{without.rate:>12,.0f}{without.spread:>24}")


def lazily(only: Sequence[str], events: int, repeat: int, show: Callable[[str], None]) -> None:
    """Eager joins and lazy joins; the first row of each query is eager."""
    rare, orders, gathered = workloads.RARE_END, workloads.ORDERS, workloads.GATHERED
    blocks = [
        [
            Series(f"{rare.name}, eagerly", rare, events, partial(feeding.tallied, lazily=False)),
            Series("the same lazily", rare, events, partial(feeding.tallied, lazily=True)),
            Series("the same as observed", rare, events, feeding.tallied),
        ],
        [
            Series(f"{orders.name}, eagerly", orders, events, feeding.tallied),
            Series(f"{gathered.name}, lazily", gathered, events, feeding.tallied),
        ],
    ]
    blocks = [rows for rows in blocks if chosen(only, rows[0].workload)]
    if not blocks:
        return
    for _ in range(repeat):
        for rows in blocks:
            for series in rows:
                series.go()
    show(f"{'lazily':34}{'events':>9}{'events/s':>12}{'min–max':>24}{'x eager':>9}{'matches':>9}")
    for rows in blocks:
        for row in rows:
            show(
                f"{row.title:34}{row.events:>9,}{row.rate:>12,.0f}{row.spread:>24}"
                f"{row.rate / rows[0].rate:>9.1f}{row.found:>9,}"
            )


def slowest(only: Sequence[str], events: int, show: Callable[[str], None]) -> None:
    """The times of the single events of a run."""
    show(
        f"{'event by event, µs':32}{'events':>9}{'median':>9}{'99.9 % in':>11}{'slowest':>10}"
        f"{'the event':>11}{'matches':>11}"
    )
    rare = [workloads.MANY, workloads.RARE_END, workloads.GATHERED]
    for workload in (w for w in (*workloads.TALLIED, *rare) if chosen(only, w)):
        some = workload.events(min(events, workload.most))
        most = workloads.FIRST if workload is workloads.MANY else NO_LIMIT
        run = compiled(workload.query).start()
        spent, found = feeding.one_by_one(run, some, most=most)
        if found != workload.count(some):
            raise SystemExit(f"{workload.name}: {found} matches event by event")
        late = sorted(spent)
        shown = (late[len(late) // 2], late[len(late) * 999 // 1000], late[-1])
        middle, most_are_within, last = (f"{nanoseconds / 1e3:,.1f}" for nanoseconds in shown)
        show(
            f"{workload.name:32}{len(spent):>9,}{middle:>9}{most_are_within:>11}{last:>10}"
            f"{spent.index(late[-1]):>11,}{found:>11,}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="The compiled automaton over encoded events.")
    parser.add_argument("--events", type=int, default=200_000, help="at most, of each stream")
    parser.add_argument("--sample", type=int, default=20_000, help="events for the objects")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=(), help="workloads that begin so")
    parser.add_argument("--record", type=Path, help="write the first table as JSON and end")
    options = parser.parse_args()
    show = partial(print, flush=True)
    print(f"median of {options.repeat}, seconds of the processor")
    if options.record:
        rows = table(options.only, options.events, options.sample, options.repeat, show)
        options.record.write_text(json.dumps(recorded(rows), indent=1) + "\n", "utf-8")
        return
    table(options.only, options.events, options.sample, options.repeat, show)
    enumerated(options.only, options.events, options.repeat, show)
    ways(options.only, options.events, options.sample, options.repeat, show)
    lazily(options.only, options.events, options.repeat, show)
    slowest(options.only, options.events, show)


if __name__ == "__main__":
    main()
