"""Rows of tables into events: rows per second, by format.

The table is generated: a trade per row with a time, a symbol, a price, a size and a venue. The
mapping converts each row to an event of five triples. The IRI of its subject contains the number of
the row, and the IRI of the company contains the symbol. The cells of CSV are strings, so its
mapping casts the price and the size.

Each format is read on one core, in turns: into complete events; into events of which a query uses
two predicates, so that two columns are not read; and by that query, whose matches are counted. For
comparison, pyarrow reads the same columns without creating events, and the same events are read as
N-Quads, as `spaseq map` writes them. All times are processor times. The script prints the median
and the spread of the repeats. All variants must find the same events and matches.

    python benchmarks/micro/read_rows.py --rows 1000000
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import process_time

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from spaseq import compile
from spaseq.io.read_options import ReadOptions
from spaseq.io.rows.mapping import parsed
from spaseq.io.rows.source import RowSource
from spaseq.io.rows.tables import open_table
from spaseq.io.source import Source
from spaseq.pipeline import matches

STREAM = "http://example.org/trades"
MAPPING = """PREFIX : <http://example.org/>
CONSTRUCT { ?trade a :Trade ; :company ?company ; :price ?price ; :size ?size ; :venue ?venue }
WHERE {
  BIND(IRI(CONCAT("http://example.org/trade/", STR(?_row))) AS ?trade)
  BIND(IRI(CONCAT("http://example.org/company/", ?symbol)) AS ?company)
}
"""
CASTING = """PREFIX : <http://example.org/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
CONSTRUCT { ?trade a :Trade ; :company ?company ; :price ?p ; :size ?n ; :venue ?venue }
WHERE {
  BIND(IRI(CONCAT("http://example.org/trade/", STR(?_row))) AS ?trade)
  BIND(IRI(CONCAT("http://example.org/company/", ?symbol)) AS ?company)
  BIND(xsd:double(?price) AS ?p)
  BIND(xsd:integer(?size) AS ?n)
}
"""
QUERY = """PREFIX : <http://example.org/>
SELECT ?company ?p1 ?p2 WITHIN 1 SECOND FROM STREAM trades :trades WHERE {
  SEQ(A ; B)
  DEFINE GPM A ON trades { ?t :company ?company ; :price ?p1 FILTER(?p1 < 50) }
  DEFINE GPM B ON trades { ?u :company ?company ; :price ?p2 FILTER(?p2 > 140) }
}
"""
OPTIONS = ReadOptions(time_column="time")
Count = Callable[[], tuple[int, int]]
"""Reads once: the number of rows or events, and of matches (0: none are searched)."""


def trades(rows: int, seed: int) -> pa.Table:
    """Trades of 200 companies, a millisecond apart on average."""
    draw = Random(seed)
    now = 1_767_603_600_000_000
    times = [now := now + draw.randrange(2000) for _ in range(rows)]
    return pa.table(
        {
            "time": pa.array(times, pa.timestamp("us", "UTC")),
            "symbol": [f"S{draw.randrange(200):03}" for _ in range(rows)],
            "price": [round(draw.gauss(100, 20), 2) for _ in range(rows)],
            "size": [draw.randrange(1, 1000) for _ in range(rows)],
            "venue": [draw.choice(("XLON", "XNAS", "XNYS", "XPAR")) for _ in range(rows)],
        }
    )


def write(table: pa.Table, folder: Path) -> dict[str, str]:
    """The table in every format: name → path."""
    paths = {name: str(folder / f"trades.{name}") for name in ("parquet", "arrow", "csv", "jsonl")}
    pyarrow.parquet.write_table(table, paths["parquet"])
    with pa.ipc.new_file(paths["arrow"], table.schema) as arrow:
        arrow.write_table(table)
    pyarrow.csv.write_csv(table, paths["csv"])
    texts = table.set_column(0, "time", table["time"].cast(pa.string()))
    with Path(paths["jsonl"]).open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in texts.to_pylist())
    return paths


def write_nquads(table: pa.Table, path: Path) -> None:
    """The events as N-Quads."""
    time = "<http://www.w3.org/ns/prov#generatedAtTime>"
    with path.open("w", encoding="utf-8") as out:
        for number, event in enumerate(source(table), 1):
            name = f"_:event{number}"
            out.write(f"{name} {time} {event.time.term} .\n")
            out.writelines(f"{s} {p} {o} {name} .\n" for s, p, o in event.facts)


def source(content: pa.Table | str) -> RowSource:
    is_text = isinstance(content, str) and content.endswith(".csv")
    return RowSource(STREAM, [content], OPTIONS, mapping=parsed(CASTING if is_text else MAPPING))


def by_pyarrow(path: str) -> Count:
    def read() -> tuple[int, int]:
        table = open_table(path, None, lambda message, row: None)
        columns = table.columns() or ()
        rows = sum(batch.num_rows for _, batch in table.batches(columns))
        table.close()
        return rows, 0

    return read


def into_events(make: Callable[[], Source], used: bool) -> Count:
    """Into events, of which the query uses a part or whose triples are all stored."""

    def read() -> tuple[int, int]:
        made = make()
        if used:
            made.relevance = compile(QUERY).start().relevance
        return sum(len(batch) for batch in made.batches()), 0

    return read


def matched(make: Callable[[], Source]) -> Count:
    def read() -> tuple[int, int]:
        run, made = compile(QUERY).start(), make()
        made.relevance = run.relevance
        found = sum(1 for _ in matches(run, made))
        return made.counters.events, found

    return read


def measures(table: pa.Table, folder: Path) -> dict[str, Count]:
    paths = write(table, folder)
    write_nquads(table, folder / "trades.nq")
    contents: dict[str, pa.Table | str] = {"table in memory": table, **paths}
    found: dict[str, Count] = {}
    for name, content in contents.items():
        if isinstance(content, str):
            found[f"{name}: pyarrow alone"] = by_pyarrow(content)
        found[f"{name}: all events"] = into_events(lambda c=content: source(c), False)
        found[f"{name}: events for a query"] = into_events(lambda c=content: source(c), True)
        found[f"{name}: matched"] = matched(lambda c=content: source(c))

    def quads() -> Source:
        return Source(STREAM, [str(folder / "trades.nq")])

    found["N-Quads: all events"] = into_events(quads, False)
    found["N-Quads: events for a query"] = into_events(quads, True)
    found["N-Quads: matched"] = matched(quads)
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--repeats", type=int, default=5)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        every = measures(trades(given.rows, given.seed), Path(folder))
        seconds: dict[str, list[float]] = {name: [] for name in every}
        counts: dict[str, tuple[int, int]] = {}
        for _ in range(given.repeats):
            for name, read in every.items():
                begun = process_time()
                counts[name] = read()
                seconds[name].append(process_time() - begun)
    print(f"{given.rows:,} rows of 5 columns, median of {given.repeats}, processor time")
    print(f"{'':36}{'rows/s':>12}{'min–max':>24}{'events':>11}{'matches':>9}")
    for name, spent in seconds.items():
        events, found = counts[name]
        rate = given.rows / statistics.median(spent)
        spread = f"{given.rows / max(spent):,.0f}–{given.rows / min(spent):,.0f}"
        print(f"{name:36}{rate:12,.0f}{spread:>24}{events:11,}{found or '–':>9}")


if __name__ == "__main__":
    main()
