"""`match` on two cores beside the engine in one process: events per second, and Spark's share.

Readings of thousands of sensors, in a Parquet file with one row for each event, and in a file
of N-Quads for the single process, which reads that as `spaseq run` does. Both count their
matches, and the counts must agree. Beside the times stand what Spark takes to read the rows
and hand them to Python, and to send each event to the task that needs it.

    python benchmarks/spark/partitioned.py --events 5000000
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

import spaseq
from spaseq.kb.snapshot import open_kb
from spaseq.rdf.time_text import date_time_text
from spaseq.spark import chunks, events, match, session
from spaseq.spark.division import Division
from spaseq.spark.rows import columns_of
from spaseq.spark.tasks import Dividing, Job

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
    "compiled": f"{HEAD} WHERE {{ SEQ(Low ; High) {GPMS}".replace(
        '  DEFINE GPM Alarm ON r { ?sensor :value ?v ; :state "alarm" }\n', ""
    ),
}
ROWS = 100_000


def written(folder: Path, count: int, keys: int) -> tuple[Path, Path]:
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
    return parquet, quads


def timed(work: Callable[[], int]) -> tuple[float, int]:
    """Seconds, and what came out."""
    start = time.perf_counter()
    count = work()
    return time.perf_counter() - start, count


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=2000)
    parser.add_argument("--query", choices=QUERIES, default="contiguous")
    parser.add_argument("--cores", type=int, default=2)
    given = parser.parse_args()
    query = QUERIES[given.query]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parquet, quads = written(folder, given.events, given.keys)
        single, found = timed(lambda: sum(1 for _ in spaseq.run(query, {STREAM: str(quads)})))
        begin = time.perf_counter()
        spark = session(
            f"local[{given.cores}]",
            spark_driver_memory="2g",
            spark_ui_enabled="false",
            spark_local_dir=name,
            spark_driver_bindAddress="127.0.0.1",
            spark_driver_host="127.0.0.1",
        )
        spark.sparkContext.setLogLevel("ERROR")
        spark.range(1).mapInArrow(lambda some: some, "id long").count()
        starting = time.perf_counter() - begin
        df = spark.read.parquet(str(parquet))
        program = spaseq.compile(query)
        prepared = events.prepared(df, program)
        job = spark.sparkContext.broadcast(
            Job(
                program,
                open_kb({}),
                columns_of(program, "timestamp"),
                Division(("sensor",), ((),) * 3 * given.cores),
            )
        )
        handing, _ = timed(lambda: prepared.mapInArrow(_nothing, "n long").count())
        dividing, _ = timed(
            lambda: prepared.mapInArrow(Dividing(job).__call__, chunks.CHUNKS).count()
        )
        matches = match(df, query)
        whole, spark_found = timed(lambda: len(matches.select("id").collect()))
        spark.stop()
    print(
        f"{given.events:,} events of {given.keys:,} sensors, query {given.query}, "
        f"{given.cores} cores"
    )
    print(f"{'':32}{'seconds':>9}{'events/s':>12}{'x single':>10}{'matches':>10}")
    for label, seconds, count in (
        ("single process, from N-Quads", single, f"{found:,}"),
        ("match, from Parquet", whole, f"{spark_found:,}"),
        ("  of it: rows to Python", handing, ""),
        ("  of it: that, and dividing", dividing, ""),
        ("beside it: starting Spark", starting, ""),
    ):
        rate = f"{given.events / seconds:,.0f}"
        print(f"{label:32}{seconds:9.1f}{rate:>12}{single / seconds:10.2f}{count:>10}")
    assert found == spark_found, "the matches differ"


def _nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for some in batches:
        yield pa.RecordBatch.from_pydict({"n": [len(some)]})


if __name__ == "__main__":
    main()
