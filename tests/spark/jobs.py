"""Jobs of `spaseq.spark` acted out in one process: what the workers run, without Spark."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from spaseq.io.arrow_columns import columns_of
from spaseq.io.arrow_rows import batches
from spaseq.io.identity import TimeKind
from spaseq.kb.snapshot import Kb
from spaseq.plan.key_division import ByKey
from spaseq.program import Program
from spaseq.rdf.event import Event
from spaseq.results import Match, triples_text
from spaseq.spark.distribution import ByTime, Distribution, lookback
from spaseq.spark.division import Division
from spaseq.spark.tasks import Dividing, Evaluating, Gathering, Job, Numbering

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
            "source": None,
        }
        for event in events
    ]


def sourced(
    rows: Sequence[dict[str, Any]], chance: random.Random, sources: str = "abc"
) -> list[dict[str, Any]]:
    """Rows in the order of their streams, as sources that know nothing of each other have them:
    the ordinals are those within a source.
    """
    latest: dict[tuple[str, object], str] = {}
    counts: Counter[tuple[str, object, str]] = Counter()
    done = []
    for row in rows:
        place = row["stream"], row["time"]
        latest[place] = source = chance.choice(sources[sources.index(latest.get(place, "a")) :])
        done.append({**row, "source": source, "ordinal": counts[*place, source]})
        counts[*place, source] += 1
    return done


def arrow(rows: Sequence[dict[str, Any]], kind: TimeKind) -> pa.RecordBatch:
    time = pa.string() if kind == "string" else pa.timestamp("us", tz="UTC")
    schema = pa.schema(
        [
            ("stream", pa.string()),
            ("time", time),
            ("ordinal", pa.int64()),
            ("name", pa.string()),
            ("graph", pa.binary()),
            ("source", pa.string()),
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
    """What the tasks of a job find together, the events in any order and in any batches; they
    have the ordinals of their streams, or those of their sources.
    """
    kind = kind_of(events)
    columns, buckets = columns_of(program, kind), chance.randint(1, 4)
    job: Any = SimpleNamespace(value=Job(program, kb, columns, division, entail, buckets=buckets))
    rows = event_rows(events, kind)
    is_numbered = chance.random() < 0.3
    if not is_numbered:
        rows = sourced(rows, chance)
    chance.shuffle(rows)
    batches = []
    while rows:
        count = chance.randint(1, len(rows))
        batches.append(arrow(rows[:count], kind))
        rows = rows[count:]
    if is_numbered:
        divided = [row for some in batches for row in Dividing(job)([some])]
    else:
        gathered = [row for some in batches for row in Gathering(job)([some])]
        divided = list(Numbering(job)(shuffled(gathered)))
    return shown(row for batch in Evaluating(job)(shuffled(divided)) for row in batch.to_pylist())


def shuffled(sent: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Chunks as Spark hands them to tasks: by part and first time."""
    if not sent:
        return []
    table = pa.Table.from_batches(sent)
    order = table.sort_by([("part", "ascending"), ("first", "ascending")])
    return list(order.to_batches(max_chunksize=1))
