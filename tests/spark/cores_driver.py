"""One batch on sessions of several numbers of cores.

    python cores_driver.py EVENTS QUERY

EVENTS is a folder, QUERY a text. Prints, as JSON, the matches (`described`) by number of cores.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame

from spaseq.spark import match, session

STREAM = "http://example.org/s"
CORES = (1, 2, 3, 4)


def described(rows: Iterable[Any]) -> list[list[Any]]:
    """Matches by `id`, and by the places of their events."""
    return sorted([row["id"], [[e["name"], e["ordinal"]] for e in row["events"]]] for row in rows)


def batch(events: DataFrame, query: str, **options: int) -> list[list[Any]]:
    return described(match(events, query, columns=["id", "events"], **options).collect())


def main(folder: str, query: str) -> None:
    found = {}
    for cores in CORES:
        spark = session(
            f"local[{cores}]",
            spark_ui_enabled="false",
            spark_driver_bindAddress="127.0.0.1",
            spark_driver_host="127.0.0.1",
            spark_log_level="ERROR",
        )
        reader = spark.read.format("rdf-events").option("stream", STREAM)
        found[cores] = batch(reader.option("times", "decimal").load(folder), query)
        spark.stop()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
