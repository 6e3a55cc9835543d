"""Reports of the roads of Aarhus in CSV → RDF events → jams that spread from road to road.

    SPASEQ_DATA=… python examples/aarhus/aarhus.py [--until 2014-08-11T10:00:00]

An event is one report of one sensor: an observation of each of the two properties in the queries,
in the vocabulary of CityBench (`ssn:observedBy`, `ssn:observedProperty`, `sao:hasValue`). The
knowledge base defines the IRIs of the properties. The script writes no files.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyoxigraph as ox

import spaseq

HERE = Path(__file__).parent
STREAM = "http://example.org/aarhus/traffic"
KB = "http://example.org/aarhus/kb"
SENSOR = "http://www.insight-centre.org/dataset/SampleEventService#AarhusTrafficData"
CITY = "http://www.insight-centre.org/citytraffic#"
SSN = "http://purl.oclc.org/NET/ssnx/ssn#"
SAO = "http://purl.oclc.org/NET/sao/"
XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
COLUMNS = {"avgSpeed": "AvgSpeed", "vehicleCount": "VehicleCount"}
"""The columns of an event, each with the class of the property that it measures."""


@dataclass(frozen=True, slots=True)
class City:
    """The published files: the reports, and the metadata of the sensors."""

    reports: Path
    sensors: Path

    @classmethod
    def of(cls, data: Path) -> City:
        """The files in the folder of the published data."""
        (reports,) = (data / "traffic").glob("traffic_all449_*.csv.gz")
        return cls(reports, data / "traffic" / "background" / "SensorRepository.n3.gz")

    def knowledge(self) -> list[ox.Triple]:
        """The knowledge base, which is Turtle under the extension of N3."""
        text = gzip.decompress(self.sensors.read_bytes())
        return [quad.triple for quad in ox.parse(text, format=ox.RdfFormat.TURTLE)]

    def rows(self, until: str) -> Iterator[dict[str, str]]:
        """The reports before a time, sorted by time."""
        with gzip.open(self.reports, "rt", newline="") as text:
            for row in csv.DictReader(text):
                if row["TIMESTAMP"] >= until:
                    return
                yield row


def properties(knowledge: list[ox.Triple]) -> dict[str, dict[str, str]]:
    """By the number of a sensor: the property that each column measures."""
    classes = {CITY + name: column for column, name in COLUMNS.items()}
    column = {
        t.subject: classes[t.object.value]
        for t in knowledge
        if t.predicate == TYPE and isinstance(t.object, ox.NamedNode) and t.object.value in classes
    }
    found: dict[str, dict[str, str]] = {}
    for t in knowledge:
        if t.predicate.value == SSN + "observes" and isinstance(t.object, ox.NamedNode):
            if t.object not in column or not isinstance(t.subject, ox.NamedNode):
                continue
            sensor = t.subject.value.removeprefix(SENSOR)
            found.setdefault(sensor, {})[column[t.object]] = str(t.object)
    return found


def event(row: Mapping[str, str], measured: Mapping[str, str]) -> tuple[datetime, bytes]:
    """A report as an event: its time, which has no zone in the file, and N-Triples."""
    lines = [
        f"_:{column} <{SSN}observedBy> <{SENSOR}{row['REPORT_ID']}> .\n"
        f"_:{column} <{SSN}observedProperty> {measured[column]} .\n"
        f'_:{column} <{SAO}hasValue> "{row[column]}"^^<{XSD}integer> .\n'
        for column in COLUMNS
    ]
    return datetime.fromisoformat(row["TIMESTAMP"]).replace(tzinfo=UTC), "".join(lines).encode()


def alerts(city: City, until: str, counts: dict[str, int]) -> Iterator[spaseq.Match]:
    """The matches of both queries, lazily; `counts` receives the numbers of reports and matches."""
    knowledge = city.knowledge()
    measured = properties(knowledge)
    texts = [(HERE / f"{name}.rq").read_text(encoding="utf-8") for name in ("drops", "spread")]
    program = spaseq.compile(texts, names=["drops", "spread"])

    def told() -> Iterator[tuple[datetime, bytes]]:
        for row in city.rows(until):
            counts["reports"] += 1
            yield event(row, measured[row["REPORT_ID"]])

    counts |= {"reports": 0, "drops": 0, "spread": 0, "triples": len(knowledge)}
    for match in spaseq.run(program, streams={STREAM: told()}, kb={KB: knowledge}):
        counts[match.query] += 1
        yield match


def line(match: spaseq.Match) -> str:
    """An alert, for people."""
    value = {name: term.value for name, term in match.bindings.items()}
    road, upstream = (value[name].rpartition("#")[2] for name in ("road", "upstream"))
    return (
        f"{value['at']} {road} at {value['speed']} km/h, "
        f"{value['later']} {upstream} at {value['upstreamSpeed']} km/h"
    )


def main() -> None:
    """Read the arguments, and run."""
    parser = argparse.ArgumentParser(description="Jams that spread, in the traffic of Aarhus.")
    parser.add_argument("--until", default="9", help="leave out reports from this time on")
    given = parser.parse_args()
    data = os.environ.get("SPASEQ_DATA")
    if data is None:
        sys.exit("SPASEQ_DATA does not name the folder of the published data")
    counts: dict[str, int] = {}
    began = time.process_time()
    for match in alerts(City.of(Path(data)), given.until, counts):
        if match.query == "spread":
            print(line(match))
    seconds = time.process_time() - began
    print(
        f"{counts['reports']:,} reports, {counts['triples']:,} triples known: "
        f"{counts['drops']:,} drops, {counts['spread']:,} of them followed upstream; "
        f"{counts['reports'] / seconds:,.0f} reports/s"
    )


if __name__ == "__main__":
    main()
