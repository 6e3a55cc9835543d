"""`/metrics`: the metrics of the server; `spaseq.live.metrics` says what each means.

The text format is simple enough to be written by this package, so the extra `serve` needs no client
library.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from spaseq.live import metrics
from spaseq.live.metrics import Sample
from spaseq.rdf.event import DATE_TIME
from spaseq.server.context import Context

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(context: Context, is_ready: bool) -> str:
    """All metrics. Call it in the thread of the engine, so that the numbers are consistent.

    Args:
        context: The server.
        is_ready: Whether `/readyz` is 200.
    """
    ready: Mapping[str, list[Sample]] = {"spaseq_ready": [((), is_ready)]}
    return metrics.exposition({**ready, **_streams(context), **_queries(context), **_own(context)})


def _streams(context: Context) -> dict[str, list[Sample]]:
    machine = context.engine.machine
    holders, streams = machine.holders, machine.streams.values()
    reached = [(stream, at) for stream in streams if (at := stream.frontier) is not None]
    now = time.time()
    return {
        "spaseq_events_total": [((s.iri,), s.events) for s in streams],
        "spaseq_late_events_total": [((s.iri,), s.late_events) for s in streams],
        "spaseq_ahead_events_total": [((s.iri,), s.ahead_events) for s in streams],
        "spaseq_rejected_events_total": [((s.iri,), s.rejected) for s in streams],
        "spaseq_holds_back": [((s.iri,), holders.get(s.iri) is s) for s in streams],
        "spaseq_idle": [((s.iri,), s.is_idle) for s in streams],
        "spaseq_waiting_events": [((s.iri,), s.pending) for s in streams],
        "spaseq_watermark_seconds": [((s.iri,), at / 1e6) for s, at in reached],
        "spaseq_watermark_lag_seconds": [
            ((s.iri,), now - at / 1e6) for s, at in reached if s.domain.kind == DATE_TIME
        ],
    }


def _queries(context: Context) -> dict[str, list[Sample]]:
    machine, board = context.engine.machine, context.engine.board
    running: list[Sample] = []
    matches: list[Sample] = []
    groups: list[Sample] = []
    shed: list[Sample] = []
    for name, standing in machine.queries.items():
        running.append(((name,), standing.is_running))
        channel = board.channels.get(name)
        matches.append(((name,), 0 if channel is None else channel.topic.end))
    for one in () if context.engine.is_matching else machine.runs:
        # Equal queries may share their state, which counts for each of them.
        for name, query in one.states:
            shed.append(((name,), query.shed))
            for place, title in one.places_of(query):
                groups.append(((name, title), query.native.parts.live_groups(place)))
    return {
        "spaseq_query_running": running,
        "spaseq_matches_total": matches,
        "spaseq_groups": groups,
        "spaseq_shed_groups_total": shed,
    }


def _own(context: Context) -> dict[str, list[Sample]]:
    engine = context.engine
    made = engine.checkpoints
    age = time.monotonic() - (made.made_at or engine.started)
    return {
        "spaseq_subscribers": [((), 0 if context.hub is None else context.hub.count)],
        "spaseq_request_bytes": [((), engine.queued)],
        "spaseq_checkpoint_number": [((), made.number)],
        "spaseq_checkpoint_size_bytes": [((), made.size)],
        "spaseq_checkpoint_age_seconds": [((), age)],
        "spaseq_checkpoint_pause_seconds": [((), made.pause)],
        "spaseq_checkpoint_failures_total": [((), made.failed)],
    }
