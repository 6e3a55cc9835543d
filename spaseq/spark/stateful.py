"""One part of a stream: events as they arrive and watermarks in, matches out.

Events wait until the watermark has passed them, are put in order, and go through a run whose
saved bytes are the state between two batches. So what comes out depends neither on how the
events were cut into batches nor on their order of arrival, as long as none is late: behind
the watermark when it arrives. A part whose windows have all closed is forgotten.

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

from spaseq.errors import StateError
from spaseq.plan.logical import QueryPlan
from spaseq.rdf.time import from_micros
from spaseq.results import Match
from spaseq.runs import Run
from spaseq.spark import chunks
from spaseq.spark.distribution import lookback
from spaseq.spark.part_run import Feeder, split
from spaseq.spark.tasks import Job

_FORMAT = 2
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
    late: pa.Table
    waiting: pa.Table
    """Events that the watermark has not passed."""
    saved: Saved | None
    """None where nothing is to be kept; events that wait are kept beside a run, which says
    whose they are."""
    wake: int | None
    """When, in microseconds, the watermark will have something to do here."""


def advance(
    job: Job,
    task: int,
    saved: Saved | None,
    waiting: Iterable[pa.Table],
    fresh: Iterable[pa.Table],
    watermark: int,
) -> Advance:
    """A batch of one part: what waited, what is fresh, and how far the watermark is.

    Raises:
        StateError: for state of another query, or that another version wrote.
    """
    late, new = split(_together(fresh), watermark)
    before = _together(waiting)
    if saved is None and len(before):
        raise StateError(
            "the checkpoint holds events that wait and does not say which query they wait for: "
            "begin a new checkpoint, or go on with the version of spaseq it was begun with"
        )
    ready, rest = split(_together([before, new]), watermark)
    if saved is None and not len(ready) and not len(rest):
        return Advance([], late, rest, None, None)
    run = _resumed(job, task, saved)
    matches = list(Feeder(run).push(ready))
    if len(ready):
        last = ready.column("micros")[-1].as_py()
    else:
        last = saved.last if saved is not None else _first(rest)
    if run.domain is not None:
        matches += run.advance(from_micros(watermark, run.domain))
    matches = list(job.division.owned(matches, task))
    if not len(rest) and _is_idle(job, run, last, watermark):
        return Advance(matches, late, rest, None, None)
    known = (_first(rest), _next_closing(run), _idle_at(job, last))
    wakes = [time for time in known if time is not None]
    kept = Saved(_header(job), last, run.save())
    _remember(job, task, kept.run, run)
    return Advance(matches, late, rest, kept, min(wakes, default=None))


# ------------------------------------------------------------------ state


def _header(job: Job) -> str:
    division = job.division
    header = {"format": _FORMAT, "parts": division.parts, "variables": division.variables}
    return json.dumps(header if job.entail is None else header | {"entail": job.entail})


def _resumed(job: Job, task: int, saved: Saved | None) -> Run:
    if saved is None:
        return job.start()
    if saved.header != _header(job):
        raise StateError(
            f"the checkpoint was written with {saved.header}, this query goes with "
            f"{_header(job)}: begin a new checkpoint, or go on with the query, the parts, the "
            "entailment and the version of spaseq it was begun with"
        )
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


def _together(tables: Iterable[pa.Table]) -> pa.Table:
    return chunks.ordered(pa.concat_tables([chunks.EVENTS.empty_table(), *tables]))


def _first(table: pa.Table) -> int | None:
    first: int | None = table.column("micros")[0].as_py() if len(table) else None
    return first


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
