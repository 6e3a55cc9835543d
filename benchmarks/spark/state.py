"""The state of a streaming query: the cost of a batch, by the number of groups of keys.

A batch reads and writes the state of the groups that its keys belong to. The script fills the state
with one waiting partial match for each key, and then runs batches of events of few keys, as the
workers of `match_stream` do, without Spark. Times are processor times of one process, the median of
several batches: on a worker that processes one batch after another and keeps the runs it saved
last, and on one that reads the state of each group.

    python benchmarks/spark/state.py --keys 100000 --touched 100
"""

from __future__ import annotations

import argparse
import time
from random import Random

import numpy as np
import pyarrow as pa

import spaseq
from spaseq.io.arrow_columns import columns_of
from spaseq.kb.snapshot import open_kb
from spaseq.spark import chunks, stateful
from spaseq.spark.division import Division
from spaseq.spark.stateful import Saved, advance
from spaseq.spark.tasks import Divider, Job

GROUPS = (4, 16, 64, 256, 1024)
QUERY = """
PREFIX : <http://example.org/>
SELECT ?k ?a ?b WITHIN 1 HOUR PARTITION BY ?k FROM STREAM s :s
WHERE {
  SEQ(A ; B)
  DEFINE GPM A ON s { ?k :value ?a FILTER(?a < 5) }
  DEFINE GPM B ON s { ?k :value ?b FILTER(?b >= 5) }
}"""
VALUE = '<urn:k{}> <http://example.org/value> "{}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
START = 1_767_600_000_000_000


def events(keys: list[int], value: int, start: int) -> pa.Table:
    """One event of each key, a millisecond apart."""
    count = len(keys)
    columns = [
        pa.array(start + 1000 * np.arange(count)),
        pa.array([0] * count),
        pa.array([0] * count, pa.int16()),
        pa.array([True] * count),
        pa.nulls(count, pa.string()),
        pa.nulls(count, pa.string()),
        pa.array([VALUE.format(key, value).encode() for key in keys]),
    ]
    return pa.Table.from_arrays(columns, schema=chunks.EVENTS)


class Query:
    """A streaming query with a number of groups of keys."""

    def __init__(self, parts: int):
        program = spaseq.compile(QUERY)
        division = Division(("k",), ((),) * parts)
        columns = columns_of(program, "timestamp")
        self._job = Job(program, open_kb({}), columns, division, mark="1", buckets=parts)
        self._divider = Divider(self._job)
        self.states: dict[int, Saved | None] = {}

    def batch(self, table: pa.Table) -> tuple[int, int]:
        """The number of matches of a batch, and of the groups that it touched."""
        watermark = table.column("micros")[-1].as_py() + 1
        table, places, tasks = self._divider.divided(table)
        matches = 0
        touched = np.unique(tasks).tolist()
        for task in touched:
            own = table.take(pa.array(places[tasks == task]))
            done = advance(self._job, task, self.states.get(task), [own], watermark)
            self.states[task] = done.saved
            matches += len(done.matches)
        return matches, len(touched)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--touched", type=int, default=100)
    parser.add_argument("--groups", type=int, nargs="+", default=GROUPS)
    parser.add_argument("--batches", type=int, default=3)
    given = parser.parse_args()
    print(f"{given.keys:,} keys wait; a batch has events of {given.touched}; ms of processor time")
    print(
        f"{'groups':>7} {'touched':>8} {'kept':>8} {'read':>8} {'MB of state':>12} {'matches':>8}"
    )
    for parts in given.groups:
        chance, query = Random(1), Query(parts)
        query.batch(events(list(range(given.keys)), 1, START))
        size = sum(len(saved.run) for saved in query.states.values() if saved is not None)
        spent: dict[bool, list[float]] = {True: [], False: []}
        found = groups = 0
        for number in range(2 * given.batches):
            kept = number < given.batches
            if not kept:
                stateful._CACHED_RUNS.clear()
            some = sorted(chance.sample(range(given.keys), given.touched))
            table = events(some, 9, START + (number + 1) * 600_000_000)
            before = time.process_time()
            matches, groups = query.batch(table)
            spent[kept].append(1000 * (time.process_time() - before))
            found += matches
        kept_ms, read_ms = (sorted(spent[kept])[given.batches // 2] for kept in (True, False))
        print(
            f"{parts:>7} {groups:>8} {kept_ms:>8.1f} {read_ms:>8.1f} {size / 1e6:>12.2f} {found:>8}"
        )


if __name__ == "__main__":
    main()
