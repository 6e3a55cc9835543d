"""A divided stream acted out in one process: what `spaseq.spark` does, without Spark."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from spaseq.engine.program import Program
from spaseq.kb.snapshot import Kb
from spaseq.rdf.event import Event
from spaseq.results import Match
from spaseq.spark.distribution import ByKey, ByTime, distribution, needs_every_event
from spaseq.spark.keys import EVERYWHERE, Sorter, part_of_match


def shown(match: Match) -> str:
    """A match as text, in which blank nodes that CONSTRUCT makes have no number."""
    if match.graph is None:
        return match.to_json()
    facts = sorted(
        " ".join("_:" if str(t).startswith("_:m") else str(t) for t in fact)
        for fact in match.graph
    )
    return f"{facts} {[(e.gpm, e.time, e.ordinal) for e in match.events]} {match.end}"


def evaluated(program: Program, kb: Kb, events: Iterable[Event]) -> list[Match]:
    run = program.start(kb)
    run.has_gaps = True
    return [*run.push_batch(events), *run.finish()]


def answers(program: Program, kb: Kb, events: Sequence[Event]) -> list[str]:
    return list(map(shown, evaluated(program, kb, events)))


def divided(
    program: Program, kb: Kb, events: Sequence[Event], parts: int, chance: random.Random
) -> list[str]:
    """The matches of all parts, as they are divided."""
    how = distribution(program)
    plan = program.queries[0].plan
    if isinstance(how, ByKey):
        sorter = Sorter(program, kb, how.variables, parts)
        homes = [set(sorter.parts(event)) for event in events]
        return [
            shown(match)
            for part in range(parts)
            for match in evaluated(
                program,
                kb,
                [e for e, h in zip(events, homes, strict=True) if h & {part, EVERYWHERE}],
            )
            if part_of_match(match, how.variables, parts) == part
        ]
    if not needs_every_event(plan):
        sorter = Sorter(program, kb, (), parts)
        events = [event for event in events if sorter.accepts(event)]
    if not isinstance(how, ByTime):
        return answers(program, kb, events)
    times = sorted({event.time.micros for event in events})
    some = sorted(chance.sample(times, min(parts - 1, len(times))))
    bounds = [-(2**63), *some, 2**63]
    return [
        shown(match)
        for low, high in zip(bounds, bounds[1:], strict=False)
        for match in evaluated(
            program, kb, [e for e in events if low - how.lookback <= e.time.micros < high]
        )
        if low <= match.end.micros < high
    ]
