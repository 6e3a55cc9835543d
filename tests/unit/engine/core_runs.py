"""Runs on the compiled core, and runs of the same program on the automaton in Python."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import groupby

import pyoxigraph as ox
from engine_runs import EX, S
from model.queries import run_plainly
from oracle import timestamp
from strategies import Case

import spaseq
from spaseq.engine.native.query_run import NativeRun
from spaseq.rdf.event import DATE_TIME, NUMBER, Event
from spaseq.rdf.native._terms import EventBatch
from spaseq.runs import Run

SECOND = 1_000_000
"""In microseconds."""
Knowledge = Mapping[str, Sequence[ox.Triple]]


def knowledge(case: Case) -> dict[str, list[ox.Triple]]:
    return {
        graph: [ox.Triple(*fact) for fact in facts]  # type: ignore[arg-type]
        for graph, facts in case.kb.items()
    }


def in_python(program: spaseq.Program, kb: Knowledge | None = None) -> Run:
    """A new run, none of whose queries is on the core."""
    return run_plainly(program.start(kb=kb))


def event(micros: int, letter: str, key: object, value: object = 0, ordinal: int = 0) -> Event:
    """A key, by the predicate of a letter, has a value."""
    subject, predicate = ox.NamedNode(f"{EX}{key}"), ox.NamedNode(EX + letter)
    object_ = ox.Literal(value) if isinstance(value, int) else ox.NamedNode(f"{EX}{value}")
    return Event(S, timestamp(micros, NUMBER), ordinal, [(subject, predicate, object_)])


def encoded(run: Run, events: Sequence[Event]) -> EventBatch:
    """Events of one stream as a reader hands them over."""
    batch = EventBatch(run.rows.matchers.dictionary, stream=events[0].stream)
    for event in events:
        dated = event.time.domain == DATE_TIME
        stamp = None if dated else event.time.term
        micros = event.time.micros
        batch.add(event.facts, micros, event.ordinal, event.name, stamp, dated)
    return batch


def batches(events: Sequence[Event], chance: random.Random) -> list[list[Event]]:
    """Stretches of events of one stream, split at random."""
    out: list[list[Event]] = []
    for _, some in groupby(events, lambda event: event.stream):
        stretch = list(some)
        while stretch:
            size = chance.randint(1, 6)
            out.append(stretch[:size])
            stretch = stretch[size:]
    return out


class Taken:
    """How many events the compiled core took from batches without Python."""

    def __init__(self, run: Run):
        self.events = 0
        self.calls = 0
        self._count = run.clock.count_batch
        run.clock.count_batch = self._counted  # type: ignore[method-assign]

    def _counted(self, batch: EventBatch, first: int, after: int) -> None:
        self.events += after - first
        self.calls += after > first
        self._count(batch, first, after)


def started(seq: str, gpms: Mapping[str, str], window: str = "1 HOUR") -> Run:
    """A run on the core of the expression, over those graph patterns that it names."""
    defines = " ".join(f"DEFINE GPM {name} ON s {gpms[name]}" for name in gpms if name in seq)
    text = (
        f"PREFIX : <{EX}> SELECT * WITHIN {window} FROM STREAM s :s "
        f"WHERE {{ SEQ({seq}) {defines} }}"
    )
    run = spaseq.compile(text).start()
    native(run)
    return run


def native(run: Run) -> NativeRun:
    """The automaton of a run's first query on the core."""
    return run.queries[0].native


def pushed(run: Run, time: int, letter: str, key: int = 0, value: int = 0) -> int:
    """How many matches an event completes."""
    fact = ox.Triple(ox.NamedNode(f"{EX}k{key}"), ox.NamedNode(EX + letter), ox.Literal(value))
    return len(run.push(S, time, [fact]))
