"""The example of Aarhus has the results of a few lines of Python over the same files.

They take the nodes of the road map from another file than the example does: the metadata of the
roads, not the knowledge base.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest

FOLDER = Path(__file__).parent.parent / "examples" / "aarhus"
UNTIL = "2014-08-11T09:00:00"
FIVE, TEN = timedelta(minutes=5), timedelta(minutes=10)
Drop: TypeAlias = tuple[datetime, str, int]
"""When, which road, and how fast it is now."""


def drops(rows: list[dict[str, str]]) -> list[Drop]:
    """The reports of at most half the speed of five minutes before."""
    speeds: dict[tuple[datetime, str], int] = {}
    found = []
    for row in rows:
        at, road, speed = (
            datetime.fromisoformat(row["TIMESTAMP"]),
            row["REPORT_ID"],
            int(row["avgSpeed"]),
        )
        speeds[at, road] = speed
        before = speeds.get((at - FIVE, road), -1)
        if speed < 30 and 2 * speed <= before and int(row["vehicleCount"]) > 0:
            found.append((at, road, speed))
    return found


def spread(found: list[Drop], metadata: Path) -> Counter[tuple[datetime, int, datetime, int]]:
    """Pairs of drops of which the second is on a road that ends where the first one begins."""
    with metadata.open(newline="") as text:
        roads = {row["REPORT_ID"]: row for row in csv.DictReader(text)}

    def node(road: str, point: int) -> tuple[float, float]:
        row = roads[road]
        return float(row[f"POINT_{point}_LAT"]), float(row[f"POINT_{point}_LNG"])

    return Counter(
        (at, speed, later, slower)
        for at, road, speed in found
        for later, upstream, slower in found
        if at < later <= at + TEN and node(upstream, 2) == node(road, 1)
    )


def test_the_jams_that_spread_are_those_of_plain_python(
    data_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "aarhus", raising=False)
    import aarhus

    city = aarhus.City.of(data_directory)
    counts: dict[str, int] = {}
    seen = [m.bindings for m in aarhus.alerts(city, UNTIL, counts) if m.query == "spread"]
    wanted_drops = drops(list(city.rows(UNTIL)))
    wanted = spread(wanted_drops, city.sensors.with_name("trafficMetaData.csv"))
    assert counts["triples"] == 44_213
    assert counts["drops"] == len(wanted_drops) > 100
    assert counts["spread"] == wanted.total() > 5
    assert Counter(map(_told, seen)) == wanted


def _told(bindings: Any) -> tuple[datetime, int, datetime, int]:
    at, later = (
        datetime.fromisoformat(bindings[name].value).replace(tzinfo=None)
        for name in ("at", "later")
    )
    return at, int(bindings["speed"].value), later, int(bindings["upstreamSpeed"].value)
