"""One part of a stream: numbered events and watermarks in, matches out.

The events of a batch are those of the part that the watermark has passed since the batch before
(spaseq/spark/numbering.py), in the order of their stream. They go through a run whose saved bytes
are the state between two batches. A part whose windows have all closed is forgotten.

Cost of a batch: its events, and the state of the parts it touches, read and written once; a
worker that kept the run of the very bytes it is given does not read them.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import pyarrow as pa

from spaseq.engine.checkpoint import fingerprints
from spaseq.errors import StateError
from spaseq.plan.logical import QueryPlan
from spaseq.rdf.time import from_micros
from spaseq.results import Match
from spaseq.runs import Run
from spaseq.spark import chunks
from spaseq.spark.distribution import lookback
from spaseq.spark.part_run import Feeder
from spaseq.spark.tasks import Job

_FORMAT = 3
_KEPT = 16
_RUNS: OrderedDict[bytes, Run] = OrderedDict()
"""Runs this process saved last, by a digest of their bytes (and of whose they are)."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What is kept of a part between two batches: no code, and a header that says whose it is."""

    header: str
    last: int
    """The time of the last event, in microseconds."""
    run: bytes


@dataclass(frozen=True, slots=True)
class Advance:
    """What a batch did to a part."""

    matches: list[Match]
    saved: Saved | None
    """None where nothing is to be kept."""
    wake: int | None
    """When, in microseconds, the watermark will have something to do here."""


def advance(
    job: Job, task: int, saved: Saved | None, ready: Iterable[pa.Table], watermark: int
) -> Advance:
    """A batch of one part: its events before the watermark, and how far the watermark is.

    Raises:
        StateError: for state of another query, or that another version wrote.
    """
    events = chunks.ordered(pa.concat_tables([chunks.EVENTS.empty_table(), *ready]))
    if saved is None and not len(events):
        return Advance([], None, None)
    run = _resumed(job, task, saved)
    matches = list(Feeder(run).push(events))
    if len(events):
        last = events.column("micros")[-1].as_py()
    else:
        assert saved is not None
        last = saved.last
    if run.clock.domain is not None:
        matches += run.advance(from_micros(watermark, run.clock.domain))
    matches = list(job.division.owned(matches, task))
    if _is_idle(job, run, last, watermark):
        return Advance(matches, None, None)
    wakes = [time for time in (_next_closing(run), _idle_at(job, last)) if time is not None]
    kept = Saved(header(job), last, run.save())
    _remember(job, task, kept.run, run)
    return Advance(matches, kept, min(wakes, default=None))


# ------------------------------------------------------------------ state


def header(job: Job) -> str:
    """What the whole state of a job belongs to, as text."""
    known: dict[str, object] = {
        "format": _FORMAT,
        "parts": job.buckets,
        "variables": job.division.variables,
        "queries": {name: digest[:16] for name, digest in fingerprints(job.program)},
    }
    return json.dumps(known if job.entail is None else known | {"entail": job.entail})


def check(job: Job, saved: str) -> None:
    """Refuse state that does not belong to a job.

    Raises:
        StateError: where its header is another one.
    """
    if saved != header(job):
        raise StateError(
            f"the checkpoint was written with {saved}, this query goes with {header(job)}: begin a "
            "new checkpoint, or go on with the query, the parts, the entailment and the version of "
            "spaseq it was begun with"
        )


def _resumed(job: Job, task: int, saved: Saved | None) -> Run:
    if saved is None:
        return job.start()
    check(job, saved.header)
    known = _RUNS.pop(_mark(job, task, saved.run), None)
    if known is not None:
        return known
    try:
        return job.program.resume(saved.run, job.kb)
    except StateError as error:
        raise StateError(
            f"the checkpoint does not fit this query: {error}; or begin a new checkpoint"
        ) from error


def _remember(job: Job, task: int, blob: bytes, run: Run) -> None:
    _RUNS[_mark(job, task, blob)] = run
    while len(_RUNS) > _KEPT:
        _RUNS.popitem(last=False)


def _mark(job: Job, task: int, blob: bytes) -> bytes:
    return blake2b(f"{job.mark} {task} ".encode() + blob, digest_size=16).digest()


# ------------------------------------------------------------------ time


def _next_closing(run: Run) -> int | None:
    """When the next window closes that a match waits for."""
    closings = (query.next_closing() for query in run.queries)
    return min((closing for closing in closings if closing is not None), default=None)


def _keeps(plan: QueryPlan) -> int | None:
    """How long after its last event a part may still matter; None: for ever."""
    if plan.window.kind not in ("span", "tumbling"):
        return None
    back = lookback(plan)
    # What DISTINCT and SKIP remember is gone after one more window.
    return 2 * plan.window.size + (0 if isinstance(back, str) else back)


def _idle_at(job: Job, last: int) -> int | None:
    keeps = [_keeps(query.plan) for query in job.program.queries]
    if any(some is None for some in keeps):
        return None
    return last + sum(some for some in keeps if some is not None) + 1


def _is_idle(job: Job, run: Run, last: int, watermark: int) -> bool:
    at = _idle_at(job, last)
    return at is not None and watermark >= at and _next_closing(run) is None
