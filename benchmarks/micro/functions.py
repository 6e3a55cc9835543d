"""The cost of string functions in BIND: microseconds per event, against the pattern without them.

Events of one triple, whose names differ, are read before the measurement. Each query binds one
function of the name, over names in ASCII and over other names. All queries must have the same
number of rows.

    python benchmarks/micro/functions.py --events 10000 --repeat 5
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import spaseq
from spaseq.io.source import Source

STREAM = "http://example.org/s"
BINDS = {
    "plain": "",
    "STRLEN": "BIND(STRLEN(?n) AS ?u)",
    "UCASE": "BIND(UCASE(?n) AS ?u)",
    "LCASE": "BIND(LCASE(?n) AS ?u)",
    "REPLACE, a class": 'BIND(REPLACE(?n, "[0-9]+", "x") AS ?u)',
    "REPLACE, groups": r'BIND(REPLACE(?n, "(\\w+) of (\\d+)", "$2 $1", "i") AS ?u)',
}
NAMES = {"ASCII": "Name of {n} e", "other": "Näme of {n} é"}


def query(bind: str) -> str:
    """A sequence whose first step binds a function, and whose second is never true."""
    return f"""PREFIX : <http://example.org/>
    SELECT * WITHIN 60 SECONDS FROM STREAM s <{STREAM}> WHERE {{ SEQ(A ; B)
      DEFINE GPM A ON s {{ ?o :name ?n . {bind} }}
      DEFINE GPM B ON s {{ ?o :name ?n FILTER(1 = 2) }} }}"""


def write(path: Path, events: int, name: str) -> None:
    """Write one event a second."""
    prov, xsd = "http://www.w3.org/ns/prov#", "http://www.w3.org/2001/XMLSchema#"
    with path.open("w") as file:
        for n in range(events):
            moment = f"2026-01-01T{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}Z"
            file.write(
                f'<urn:g{n}> <{prov}generatedAtTime> "{moment}"^^<{xsd}dateTime> .\n'
                f'<urn:o{n}> <http://example.org/name> "{name.format(n=n)}" <urn:g{n}> .\n'
            )


def once(program: spaseq.Program, path: Path) -> tuple[float, int]:
    """Processor seconds of matching, and rows."""
    run = program.start()
    batches = list(Source(STREAM, [str(path)], relevance=run.relevance).batches())
    began = time.process_time()
    for batch in batches:
        for _ in run.push_batch(batch):
            raise AssertionError("the second step is never true")
    return time.process_time() - began, run.rows.matchers.row_count(0)


def main() -> None:
    parser = argparse.ArgumentParser(description="String functions in BIND.")
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    programs = {name: spaseq.compile(query(bind)) for name, bind in BINDS.items()}
    print(f"{options.events:,} events, median of {options.repeat}")
    print("{:18}{:>8}{:>10}{:>8}{:>9}".format("", "names", "µs/event", "x plain", "rows"))
    with tempfile.TemporaryDirectory() as folder:
        for names, name in NAMES.items():
            path = Path(folder) / "names.nq"
            write(path, options.events, name)
            rounds = [
                {each: once(program, path) for each, program in programs.items()}
                for _ in range(options.repeat)
            ]
            for each in programs:
                seconds = statistics.median(one[each][0] for one in rounds)
                ratio = statistics.median(one[each][0] / one["plain"][0] for one in rounds)
                micros = seconds / options.events * 1e6
                rows = rounds[-1][each][1]
                print(f"{each:18}{names:>8}{micros:>10.2f}{ratio:>8.1f}{rows:>9,}")


if __name__ == "__main__":
    main()
