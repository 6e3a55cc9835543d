"""`match` on two cores compared with the engine in one process, and the share of Spark.

The input is readings of thousands of sensors, as a file of N-Quads and as a file of Parquet with
one row per event. All ways count their matches, and the counts must agree.

- N-Quads: a single process builds the same rows as `match` (the baseline), or only enumerates the
  matches. `match` divides the file into slices of time. As many processes as there are cores do the
  same without Spark, which shows the limit of the machine.
- Parquet: the process only enumerates the matches. `match` sends each event to the task of its key.

The script also prints the times of Spark's start (with its workers and a first match of few
events), of the first match of all events, of reading the rows into Python, and of dividing them.
Java compiles its code during about the first ten matches; `--warm` sets the number of matches
before the measured ones. On a shared machine compare processor times, since elapsed times depend on
the other load.

    python benchmarks/spark/partitioned.py --events 5000000 --repeat 5 --warm 10
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

import spaseq
from spaseq.io.arrow_columns import columns_of, select_columns
from spaseq.io.source import Source
from spaseq.kb.snapshot import open_kb
from spaseq.rdf.time_text import date_time_text
from spaseq.results import Match
from spaseq.spark import chunks, events, match, session
from spaseq.spark.division import Division
from spaseq.spark.part_run import Feeder
from spaseq.spark.shipping import shared
from spaseq.spark.slices import Slices, cut, sliced
from spaseq.spark.source import EventOptions
from spaseq.spark.tasks import Dividing, Job, collecting_between, rows_of
from spaseq.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STREAM = "http://example.org/readings"
XSD = "http://www.w3.org/2001/XMLSchema#"
AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
START = 1_767_600_000_000_000
HEAD = """
PREFIX : <http://example.org/>
SELECT ?sensor ?low ?high WITHIN 10 MINUTES PARTITION BY ?sensor
FROM STREAM r <http://example.org/readings>
"""
GPMS = """
  DEFINE GPM Low ON r { ?sensor :value ?low FILTER(?low < 100) }
  DEFINE GPM Alarm ON r { ?sensor :value ?v ; :state "alarm" }
  DEFINE GPM High ON r { ?sensor :value ?high FILTER(?high > ?low + 850) }
}
"""
QUERIES = {
    "contiguous": f"{HEAD} WHERE {{ SEQ(Low , Rising+ , High) {GPMS}".replace(
        "DEFINE GPM Alarm ON r { ?sensor :value ?v ;",
        "DEFINE GPM Rising ON r { ?sensor :value ?v . FILTER(?v > PREV(?v, ?low)) } #",
    ),
    "negation": f"{HEAD} WHERE {{ SEQ(Low ; !Alarm ; High) {GPMS}",
    "rare": f"{HEAD} WHERE {{ SEQ(Low ; High) {GPMS}".replace(
        '  DEFINE GPM Alarm ON r { ?sensor :value ?v ; :state "alarm" }\n', ""
    )
    .replace("?low < 100", "?low < 20")
    .replace("850", "970"),
    "compiled": f"{HEAD} WHERE {{ SEQ(Low ; High) {GPMS}".replace(
        '  DEFINE GPM Alarm ON r { ?sensor :value ?v ; :state "alarm" }\n', ""
    ),
}
ROWS = 100_000


def written(folder: Path, count: int, keys: int) -> None:
    """The events, as a Parquet file and as N-Quads."""
    chance = Random(1)
    parquet, quads = folder / "events.parquet", folder / "events.nq"
    schema = pa.schema(
        [("time", pa.timestamp("us", tz="UTC")), ("ordinal", pa.int32()), ("graph", pa.string())]
    )
    with pq.ParquetWriter(parquet, schema) as table, quads.open("w") as text:
        for first in range(0, count, ROWS):
            numbers = range(first, min(first + ROWS, count))
            times, graphs = [], []
            for number in numbers:
                sensor = f"<http://example.org/sensor/{chance.randrange(keys)}>"
                value = f'"{chance.randrange(1000)}"^^<{XSD}integer>'
                state = "alarm" if chance.random() < 0.02 else "ok"
                triples = (
                    f"{sensor} <http://example.org/value> {value}",
                    f'{sensor} <http://example.org/state> "{state}"',
                    f"{sensor} <http://example.org/room> <http://example.org/room/{number % 97}>",
                )
                times.append(START + 10_000 * number)
                graphs.append("".join(f"{triple} .\n" for triple in triples))
                name = f"<http://example.org/reading/{number}>"
                stamp = date_time_text(times[-1])
                text.write(f'{name} {AT} "{stamp}"^^<{XSD}dateTime> .\n')
                text.write("".join(f"{triple} {name} .\n" for triple in triples))
            columns = [pa.array(times, schema[0].type), pa.array([0] * len(times), pa.int32())]
            table.write_table(pa.table([*columns, pa.array(graphs)], schema=schema))


@dataclass(frozen=True)
class Cost:
    """The elapsed and processor seconds of a job, and its result."""

    seconds: float
    cpu: float
    count: int


Work: TypeAlias = Callable[[], int]


def timed(work: Work) -> Cost:
    """Run a job and measure it."""
    begin, before = time.perf_counter(), processors()
    count = work()
    return Cost(time.perf_counter() - begin, processors() - before, count)


def in_turns(works: Mapping[str, Work], repeat: int) -> dict[str, Cost]:
    """Run each job several times; returns for each the measurement with the median elapsed time.

    They take turns, for the machine may be faster at one time than at another.
    """
    found: dict[str, list[Cost]] = {name: [] for name in works}
    for _ in range(repeat):
        for name, work in works.items():
            found[name].append(timed(work))
    middle = repeat // 2
    return {
        name: sorted(costs, key=lambda cost: cost.seconds)[middle] for name, costs in found.items()
    }


def processors() -> float:
    """The processor time of this process and all its descendants, ended ones included (Linux)."""
    children: dict[int, list[int]] = {}
    spent: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(path.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        spent[pid] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total, left = 0.0, [os.getpid()]
    while left:
        pid = left.pop()
        total += spent.get(pid, 0.0)
        left += children.get(pid, [])
    return total


def alone(query: str, folder: Path, cores: int, wanted: Sequence[str] | None) -> dict[str, Work]:
    """The jobs without Spark, of one process and of several; `wanted` are the computed columns."""

    def rows() -> int:
        run = spaseq.compile(query).start()
        feeder, count = Feeder(run), 0
        for batch in pq.ParquetFile(folder / "events.parquet").iter_batches(10_000):
            known = {
                "stream": pa.array([STREAM] * len(batch)),
                "time": batch.column("time"),
                "ordinal": batch.column("ordinal"),
                "source": pa.nulls(len(batch), pa.string()),
                "name": pa.nulls(len(batch), pa.string()),
                "graph": batch.column("graph"),
            }
            table = events.encoded(pa.RecordBatch.from_pydict(known), (STREAM,))
            count += sum(1 for _ in feeder.push(table))
        return count + len(run.finish())

    def made() -> int:
        run = job.start()
        source = Source(STREAM, [str(folder / "events.nq")], relevance=run.relevance)

        def found() -> Iterator[Match]:
            for batch in source.batches():
                yield from run.push_batch(batch)
            yield from run.finish()

        return sum(map(len, collecting_between(rows_of(job, run, found(), job.division.own(0)))))

    def shared() -> int:
        assert slices is not None
        with ProcessPoolExecutor(cores, get_context("fork")) as pool:
            return sum(pool.map(partial(sliced_rows, job, slices), range(slices.count)))

    (columns,) = select_columns([columns_of(spaseq.compile(query), "timestamp")], wanted)
    job = Job(spaseq.compile(query), open_kb({}), columns, Division((), ((),)))
    options = EventOptions.parse({"stream": STREAM, "path": str(folder / "events.nq")})
    slices = cut(options, job, cores)
    quads = {STREAM: str(folder / "events.nq")}
    found: dict[str, Work] = {
        "one process, to rows": made,
        "one process, from N-Quads": lambda: sum(1 for _ in spaseq.run(query, quads)),
        "one process, from Parquet": rows,
    }
    if slices is not None:
        found[f"{cores} processes, to rows"] = shared
    return found


def sliced_rows(job: Job, slices: Slices, number: int) -> int:
    """The number of rows of a slice."""
    return sum(map(len, collecting_between(sliced(job, slices, number))))


@contextmanager
def on_spark(
    query: str,
    folder: Path,
    small: Path,
    cores: int,
    wanted: Sequence[str] | None,
    warm: int,
    java: str,
) -> Iterator[tuple[dict[str, Work], dict[str, Cost]]]:
    """The jobs of `match`, and the costs before them: the start of Spark, and the first match.

    `warm` is the number of matches before the measured ones; `java` are options of Java.
    """

    def quads(where: Path) -> DataFrame:
        reader = spark.read.format("rdf-events").option("stream", STREAM)
        return reader.load(str(where / "events.nq"))

    def count(df: DataFrame) -> int:
        return match(df, query, columns=wanted).count()

    def start() -> int:
        count(spark.read.parquet(str(small / "events.parquet")))
        return count(quads(small))

    begin, before = time.perf_counter(), processors()
    spark = session(
        f"local[{cores}]",
        spark_driver_memory="2g",
        spark_ui_enabled="false",
        spark_local_dir=str(folder),
        spark_driver_bindAddress="127.0.0.1",
        spark_driver_host="127.0.0.1",
        spark_driver_extraJavaOptions=java,
    )
    try:
        spark.sparkContext.setLogLevel("ERROR")
        start()
        starting = Cost(time.perf_counter() - begin, processors() - before, 0)
        df = spark.read.parquet(str(folder / "events.parquet"))
        program = spaseq.compile(query)
        prepared = events.prepared(df, df.schema, program)
        division = Division(("sensor",), ((),) * 3 * cores)
        (columns,) = select_columns([columns_of(program, "timestamp")], wanted)
        job = Job(program, open_kb({}), columns, division)
        dividing = Dividing(shared(spark, job))
        first = timed(lambda: count(quads(folder)))
        for _ in range(warm - 1):
            count(quads(folder))
        works = {
            "match, from N-Quads": lambda: count(quads(folder)),
            "match, from Parquet": lambda: count(df),
            "  of it: rows to Python": prepared.mapInArrow(_nothing, "n long").count,
            "  of it: that, and dividing": prepared.mapInArrow(
                dividing.__call__, spark_schema(chunks.CHUNKS)
            ).count,
        }
        yield works, {"beside it: starting Spark": starting, "  the first, from N-Quads": first}
    finally:
        spark.stop()


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=2000)
    parser.add_argument("--query", choices=QUERIES, default="compiled")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--columns", nargs="+", help="of the rows; all, if not given")
    parser.add_argument("--repeat", type=int, default=1, help="the median counts")
    parser.add_argument("--warm", type=int, default=1, help="runs of Spark that do not count")
    parser.add_argument("--java", default="", help="options for Java")
    given = parser.parse_args()
    query = QUERIES[given.query]
    with tempfile.TemporaryDirectory() as name:
        folder, small = Path(name), Path(name) / "small"
        small.mkdir()
        written(folder, given.events, given.keys)
        written(small, 1000, given.keys)
        wanted, cores = given.columns, given.cores
        on_it = on_spark(query, folder, small, cores, wanted, given.warm, given.java)
        with on_it as (works, before):
            costs = in_turns(alone(query, folder, cores, wanted) | works, given.repeat) | before
    print(
        f"{given.events:,} events of {given.keys:,} sensors, query {given.query}, "
        f"{given.cores} cores, {', '.join(given.columns or ['all columns'])}, "
        f"median of {given.repeat}"
    )
    print(f"{'':28}{'seconds':>9}{'CPU s':>9}{'events/s':>12}{'x one':>8}{'matches':>10}")
    first = costs["one process, to rows"]
    for label, cost in costs.items():
        rate = f"{given.events / cost.seconds:,.0f}"
        ratio = first.seconds / cost.seconds
        shown = f"{cost.count:,}" if not label.startswith(("  ", "beside")) else ""
        print(
            f"{label:28}{cost.seconds:9.1f}{cost.cpu:9.1f}{rate:>12}{ratio:8.2f}{shown:>10}".rstrip()
        )
        assert not shown or cost.count == first.count, "the matches differ"


def _nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for some in batches:
        yield pa.RecordBatch.from_pydict({"n": [len(some)]})


if __name__ == "__main__":
    main()
