"""`/metrics`: the server's metrics, for Prometheus.

The text format is simple enough to be written here, so the extra `serve` needs no client library.
Metrics that `spaseq run --metrics` also has (docs/live.md) have the same names.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from spaseq.rdf.event import DATE_TIME
from spaseq.server.context import Context

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Family:
    """A metric with its samples: labels → value."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    samples: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)

    def add(self, value: float, labels: Mapping[str, str] | None = None) -> None:
        self.samples[tuple((labels or {}).items())] = value

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.samples.items():
            shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels)
            yield f"{self.name}{f'{{{shown}}}' if shown else ''} {float(value)!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def exposition(context: Context) -> str:
    """All metrics. Call it in the thread of the engine, so that the numbers are consistent."""
    families = [*_streams(context), *_queries(context), *_server(context)]
    return "\n".join(line for family in families for line in family.lines()) + "\n"


def _streams(context: Context) -> list[Family]:
    machine = context.engine.machine
    events = Family("spaseq_events_total", "counter", "Events accepted.")
    late = Family("spaseq_late_events_total", "counter", "Events that were too late.")
    ahead = Family(
        "spaseq_ahead_events_total", "counter", "Events that were too far ahead of the clock."
    )
    rejected = Family("spaseq_rejected_events_total", "counter", "Errors that were skipped.")
    mark = Family("spaseq_watermark_seconds", "gauge", "The time that a stream has reached.")
    lag = Family("spaseq_watermark_lag_seconds", "gauge", "Its distance from the clock.")
    holds = Family("spaseq_holds_back", "gauge", "1 if other streams wait for this one.")
    idle = Family("spaseq_idle", "gauge", "1 if the others do not wait for it.")
    waiting = Family("spaseq_waiting_events", "gauge", "Events that wait for other streams.")
    holders = machine.holders
    for stream in machine.streams.values():
        labels = {"stream": stream.iri}
        events.add(stream.events, labels)
        late.add(stream.late_events, labels)
        ahead.add(stream.ahead_events, labels)
        rejected.add(stream.rejected, labels)
        holds.add(holders.get(stream.iri) is stream, labels)
        idle.add(stream.is_idle, labels)
        waiting.add(stream.pending, labels)
        if stream.frontier is not None:
            mark.add(stream.frontier / 1e6, labels)
            if stream.domain.kind == DATE_TIME:
                lag.add(time.time() - stream.frontier / 1e6, labels)
    return [events, late, ahead, rejected, mark, lag, holds, idle, waiting]


def _queries(context: Context) -> list[Family]:
    machine, board = context.engine.machine, context.engine.board
    matches = Family("spaseq_matches_total", "counter", "Matches in the topic of a query.")
    groups = Family("spaseq_groups", "gauge", "Groups of partial matches.")
    shed = Family("spaseq_shed_groups_total", "counter", "Groups that a limit dropped.")
    running = Family("spaseq_query_running", "gauge", "1 if a query runs, 0 if not.")
    for name, standing in machine.queries.items():
        running.add(standing.is_running, {"query": name})
        channel = board.channels.get(name)
        matches.add(0 if channel is None else channel.topic.end, {"query": name})
    for one in machine.runs:
        # Equal queries may share their state, which has the name of the first.
        for name, query in one.states:
            labels = {"query": name}
            shed.add(query.shed, labels)
            places = range(len(query.compiled.automaton.places))
            groups.add(sum(map(query.native.parts.live_groups, places)), labels)
    return [matches, groups, shed, running]


def _server(context: Context) -> list[Family]:
    engine = context.engine
    checkpoints = engine.checkpoints
    now = time.monotonic()
    singles = (
        ("spaseq_subscribers", "Subscribers.", 0 if context.hub is None else context.hub.count),
        ("spaseq_queue_bytes", "Bytes of events in the queue.", engine.queued),
        ("spaseq_checkpoint_number", "The last checkpoint.", checkpoints.number),
        ("spaseq_checkpoint_size_bytes", "Its size.", checkpoints.size),
        ("spaseq_checkpoint_age_seconds", "Its age.",
         now - (checkpoints.made_at or engine.started)),
        ("spaseq_checkpoint_pause_seconds", "How long it stopped the engine.", checkpoints.pause),
    )  # fmt: skip
    found = []
    for name, text, value in singles:
        found.append(Family(name, "gauge", text))
        found[-1].add(value)
    failures = Family("spaseq_checkpoint_failures_total", "counter", "Those not written.")
    failures.add(checkpoints.failed)
    return [*found, failures]
