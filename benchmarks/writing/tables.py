"""Matches into a table: rows per second, by compiled code and by way of match objects.

The events are those of `matches.py`. Each way reads and matches them and returns one Arrow table
with typed columns: `to_arrow` builds its columns in compiled code, `objects` does so from `Match`
objects, and `by hand` collects `match.values` and converts the lists. `seconds` is processor time.

    python benchmarks/writing/tables.py --matches 100000
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pyarrow as pa
from matches import QUERY, write_stream

import spaseq
from spaseq.io.typed_rows import TypedRows


def compiled(path: str) -> pa.Table:
    return spaseq.run(QUERY, {"readings": path}, workers=1).to_arrow()


def objects(path: str) -> pa.Table:
    attach = TypedRows.attach
    TypedRows.attach = lambda self: None  # type: ignore[method-assign]
    try:
        return compiled(path)
    finally:
        TypedRows.attach = attach  # type: ignore[method-assign]


def by_hand(path: str) -> pa.Table:
    rows = [
        {"start": match.start.datetime, "end": match.end.datetime, **match.values}
        for match in spaseq.run(QUERY, {"readings": path}, workers=1)
    ]
    return pa.Table.from_pylist(rows)


WAYS: dict[str, Callable[[str], pa.Table]] = {
    "to_arrow": compiled,
    "objects": objects,
    "by hand": by_hand,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--matches", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "readings.nq"
        write_stream(path, options.matches, 1)
        times: dict[str, list[float]] = {name: [] for name in WAYS}
        for _ in range(options.repeat):
            for name, way in WAYS.items():
                started = process_time()
                table = way(str(path))
                times[name].append(process_time() - started)
                assert table.num_rows == options.matches
    print(f"{'':12}{'rows':>10}{'seconds':>10}{'min–max':>16}{'rows/s':>12}{'ratio':>8}")
    first = statistics.median(times["to_arrow"])
    for name, seconds in times.items():
        middle = statistics.median(seconds)
        spread = f"{min(seconds):.2f}–{max(seconds):.2f}"
        print(
            f"{name:12}{options.matches:>10,}{middle:>10.2f}{spread:>16}"
            f"{options.matches / middle:>12,.0f}{middle / first:>8.1f}"
        )


if __name__ == "__main__":
    main()
