"""One part of a stream: numbered events and watermarks in, matches out.

A batch delivers the events of the part that the watermark has passed since the batch before
(spaseq/spark/numbering.py), in the order of their stream. A run evaluates them; its saved bytes
are the state between two batches. The state of a part is dropped when all of its windows have
closed.

Cost of a batch: its events, and one read and one write of the state of each part with events. A
worker caches the runs that it saved last, and does not read the state of a cached run.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b

import pyarrow as pa

from spaseq.engine.checkpoint import fingerprints
from spaseq.engine.compiled import CompiledQueries
from spaseq.errors import StateError
from spaseq.plan.logical import QueryPlan
from spaseq.rdf.time import from_micros
from spaseq.records import dataclass
from spaseq.results import Match
from spaseq.runs import Run
from spaseq.spark import chunks
from spaseq.spark.distribution import lookback
from spaseq.spark.part_run import Feeder
from spaseq.spark.tasks import Job, memory_named, report

_FORMAT = 3
_MAX_CACHED_RUNS = 128
_MAX_CACHED_BYTES = 1 << 20
"""The saved bytes of all cached runs beyond the last `_LARGE_RUNS`. A run takes about 250 kB of
memory, and up to a hundred times its saved bytes, which are compressed.
"""
_LARGE_RUNS = 16
_CACHED_RUNS: OrderedDict[bytes, tuple[Run, int]] = OrderedDict()
"""The runs that this process saved last, with the number of their saved bytes, by a digest of job,
task and saved bytes.
"""


@dataclass(frozen=True, slots=True)
class Saved:
    """The state of a part between two batches: data without code.

    The header identifies the query and the division.
    """

    header: str
    last: int
    """The time of the last event, in microseconds."""
    run: bytes


@dataclass(frozen=True, slots=True)
class Advance:
    """The result of a batch for a part."""

    matches: list[Match]
    saved: Saved | None
    """None if the part has no state."""
    wake: int | None
    """The time, in microseconds, at which the watermark next closes a window or drops the state."""


def advance(
    job: Job, task: int, saved: Saved | None, ready: Iterable[pa.Table], watermark: int
) -> Advance:
    """Evaluate a batch of one part.

    Args:
        job: the job.
        task: the number of the part.
        saved: the state after the batch before; None for none.
        ready: the events that the watermark has passed.
        watermark: the watermark, in microseconds.

    Raises:
        StateError: if the state belongs to another query or another version.
    """
    events = chunks.ordered(pa.concat_tables([chunks.EVENTS.empty_table(), *ready]))
    if saved is None and not len(events):
        return Advance([], None, None)
    run = _resumed(job, task, saved)
    with memory_named(run):
        matches = list(Feeder(run).push(events))
    if len(events):
        last = events.column("micros")[-1].as_py()
    else:
        assert saved is not None
        last = saved.last
    if run.clock.domain is not None:
        matches += run.advance(from_micros(watermark, run.clock.domain))
    report(run, job.mark)
    matches = list(job.division.owned(matches, task))
    if _is_idle(job, run, last, watermark):
        return Advance(matches, None, None)
    wakes = [time for time in (_next_closing(run), _idle_at(job, last)) if time is not None]
    state = Saved(header(job), last, run.save())
    _cache(job, task, state.run, run)
    return Advance(matches, state, min(wakes, default=None))


# ------------------------------------------------------------------ state


def header(job: Job) -> str:
    """The identity of the job that a state belongs to: format, parts, variables and queries."""
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
        StateError: if its header is another one.
    """
    if saved != header(job):
        raise StateError(
            f"the checkpoint was written for {saved}, this query is {header(job)}: start a new "
            "checkpoint, or continue with the query, the parts, the entailment and the version of "
            "spaseq that started it"
        )


def _resumed(job: Job, task: int, saved: Saved | None) -> Run:
    if saved is None:
        return job.start()
    check(job, saved.header)
    cached = _CACHED_RUNS.pop(_cache_key(job, task, saved.run), None)
    if cached is not None:
        return cached[0]
    try:
        return job.program.resume(saved.run, job.kb, share=False, **job.limits)
    except StateError as error:
        raise StateError(
            f"the checkpoint does not fit this query: {error}; or start a new checkpoint"
        ) from error


def _cache(job: Job, task: int, blob: bytes, run: Run) -> None:
    _CACHED_RUNS[_cache_key(job, task, blob)] = run, len(blob)
    size = sum(one for _, one in _CACHED_RUNS.values())
    while len(_CACHED_RUNS) > _MAX_CACHED_RUNS or (
        len(_CACHED_RUNS) > _LARGE_RUNS and size > _MAX_CACHED_BYTES
    ):
        _, (_, one) = _CACHED_RUNS.popitem(last=False)
        size -= one


def _cache_key(job: Job, task: int, blob: bytes) -> bytes:
    return blake2b(f"{job.mark} {task} ".encode() + blob, digest_size=16).digest()


# ------------------------------------------------------------------ time


def _next_closing(run: Run) -> int | None:
    """The time at which the next window closes whose matches are not decided before."""
    closings = (query.next_closing() for query in run.queries)
    return min((closing for closing in closings if closing is not None), default=None)


def _retention(plan: QueryPlan) -> int | None:
    """The time after the last event, in microseconds, for which the state of a part can change a
    result; None: without limit.
    """
    if not plan.window.is_of_time:
        return None
    back = lookback(plan)
    # The state of DISTINCT and SKIP expires after one more window, that of LIMIT after its own
    # time. Both may begin with the result of a group, which comes as late as the group's own time.
    grouping, every = plan.output.grouping, plan.output.every
    kept = max(plan.window.size, every or 0) + (0 if grouping is None else grouping.size)
    return plan.window.size + kept + (0 if isinstance(back, str) else back)


def retained(program: CompiledQueries) -> int | None:
    """The time after an event, in microseconds, for which it can change a result of the queries, or
    be in one; None: without limit.
    """
    retentions = [_retention(query.plan) for query in program.queries]
    known = [retention for retention in retentions if retention is not None]
    return sum(known) if len(known) == len(retentions) else None


def _idle_at(job: Job, last: int) -> int | None:
    kept = retained(job.program)
    return None if kept is None else last + kept + 1


def _is_idle(job: Job, run: Run, last: int, watermark: int) -> bool:
    at = _idle_at(job, last)
    return at is not None and watermark >= at and _next_closing(run) is None
