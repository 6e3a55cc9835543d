"""Jobs of `spaseq.spark` acted out in one process: what the workers run, without Spark."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from spaseq.kb.snapshot import Kb
from spaseq.program import Program
from spaseq.rdf.event import Event
from spaseq.results import Match, triples_text
from spaseq.spark import chunks
from spaseq.spark.distribution import ByKey, ByTime, Distribution, lookback
from spaseq.spark.division import Division
from spaseq.spark.result_columns import columns_of
from spaseq.spark.rows import batches
from spaseq.spark.tasks import Dividing, Evaluating, Job
from spaseq.spark.time_column import TimeKind

BLANK = re.compile(r"_:\w+")


def kind_of(events: Iterable[Event]) -> TimeKind:
    return "string" if any(e.time.domain == "number" for e in events) else "timestamp"


def event_rows(events: Iterable[Event], kind: TimeKind) -> list[dict[str, Any]]:
    """Events as the columns that jobs read have them."""
    return [
        {
            "stream": event.stream,
            "time": str(event.time.term) if kind == "string" else event.time.micros,
            "ordinal": event.ordinal,
            "name": None,
            "graph": triples_text(event.facts).encode(),
        }
        for event in events
    ]


def arrow(rows: Sequence[dict[str, Any]], kind: TimeKind) -> pa.RecordBatch:
    time = pa.string() if kind == "string" else pa.timestamp("us", tz="UTC")
    schema = pa.schema(
        [
            ("stream", pa.string()),
            ("time", time),
            ("ordinal", pa.int64()),
            ("name", pa.string()),
            ("graph", pa.binary()),
        ]
    )
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


def shown(rows: Iterable[dict[str, Any]]) -> Counter[str]:
    """Rows of matches as texts, in which blank nodes have no labels."""
    texts: Counter[str] = Counter()
    for row in rows:
        left = {name: value for name, value in row.items() if name != "id"}
        if left.get("graph"):
            left["graph"] = "".join(sorted(left["graph"].splitlines()))
        texts[BLANK.sub("_:", str(sorted(left.items())))] += 1
    return texts


def reference(
    program: Program, kb: Kb, events: Sequence[Event], entail: str | None = None
) -> Counter[str]:
    """What the engine finds in one go."""
    run = program.start(kb, entail=entail)
    columns = columns_of(program, kind_of(events))
    matches: list[Match] = [*run.push_batch(events), *run.finish()]
    return shown(row for batch in batches(columns, matches) for row in batch.to_pylist())


def divisions(
    how: Distribution, program: Program, events: Sequence[Event], parts: int, chance: random.Random
) -> Iterator[Division]:
    """Ways to divide a job into about as many parts."""
    times = sorted({event.time.micros for event in events})

    def cuts() -> tuple[int, ...]:
        return tuple(sorted(chance.sample(times, min(parts - 1, len(times)))))

    if isinstance(how, ByKey):
        yield Division(how.variables, ((),) * parts)
        back = lookback(program.queries[0].plan)
        if isinstance(back, int):
            yield Division(how.variables, tuple(cuts() for _ in range(parts)), back)
    elif isinstance(how, ByTime):
        yield Division((), (cuts(),), how.lookback)
    else:
        yield Division((), ((),))


def answered(
    program: Program,
    kb: Kb,
    events: Sequence[Event],
    division: Division,
    chance: random.Random,
    entail: str | None = None,
) -> Counter[str]:
    """What the tasks of a job find together, the events in any order and in any batches."""
    kind = kind_of(events)
    columns = columns_of(program, kind)
    job: Any = SimpleNamespace(value=Job(program, kb, columns, division, entail))
    rows = event_rows(events, kind)
    chance.shuffle(rows)
    found: list[tuple[int, int, bytes]] = []
    while rows:
        count = chance.randint(1, len(rows))
        found += chunks.rows(Dividing(job)([arrow(rows[:count], kind)]))
        rows = rows[count:]
    found.sort(key=lambda row: row[:2])
    schema = pa.schema([("part", pa.int32()), ("first", pa.int64()), ("chunk", pa.binary())])
    sent = [
        pa.RecordBatch.from_pydict(dict(zip(schema.names, ([v] for v in r), strict=True)), schema)
        for r in found
    ]
    return shown(row for batch in Evaluating(job)(sent) for row in batch.to_pylist())
