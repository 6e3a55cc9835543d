"""Published files, read as their owners would expect, or refused with the true reason."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pyoxigraph as ox
import pytest
from jelly_writing import written
from reading import options

from spaseq.errors import InputError
from spaseq.io.source import Source
from spaseq.rdf.event import Event

DATA = os.environ.get("SPASEQ_DATA", "")
RESULT_TIME = {"time_predicate": "sosa:resultTime"}
UNKNOWN_SYNTAX = "neither the extension nor the content shows an RDF syntax"
CLOCK: dict[str, object] = {"arrival_time": True, "clock": lambda: 0}
JELLY, CSR, TRAFFIC = "rdf-streams/jelly-samples/", "rdf-streams/csrbench/", "traffic/"


@dataclass(frozen=True)
class File:
    """How a file is read: the events, their facts, the first and the last time; or the error."""

    path: str
    framing: str
    events: int = 0
    facts: int = 0
    first: str = ""
    last: str = ""
    error: str = ""
    given: dict[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.path} as {self.framing}"


WEATHER = "2022-10-24T13:26:06.448117Z"
EPOCH = "1970-01-01T00:00:00Z"
FILES = [
    File("rdf-streams/assist-iot-weather.nq.gz", "graph", 869, 99_935,
         "2023-01-02T15:36:37.065535Z", "2023-01-02T18:02:26.540964Z", given=RESULT_TIME),
    File("rdf-streams/assist-iot-weather.nq.gz", "dataset", 869, 99_935,
         "2023-01-02T15:36:37.065535Z", "2023-01-02T18:02:26.540964Z",
         given={**RESULT_TIME, "max_memory": 1 << 23}),
    File("rdf-streams/assist-iot-weather.nq.gz", "graph", error="generatedAtTime> <time> imm"),
    File(JELLY + "weather-quads.nq", "message", 1, 24, WEATHER, WEATHER),
    File(JELLY + "weather-quads.nq", "dataset", 6, 54, WEATHER, WEATHER, given=RESULT_TIME),
    File(JELLY + "weather-graphs.trig", "message", 1, 24, WEATHER, WEATHER),
    File(JELLY + "weather-graphs.trig", "graph", 6, 54, WEATHER, WEATHER, given=RESULT_TIME),
    File(JELLY + "weather.nt", "message", 1, 115, WEATHER, WEATHER),
    File(JELLY + "weather.nt", "graph", error=":115: no event in this file: it has no named"),
    File(JELLY + "weather.nt", "subject", error="has no timestamp"),
    File(JELLY + "riverbench_nanopubs.trig", "message", 1, 762, EPOCH, EPOCH, given=CLOCK),
    File(JELLY + "riverbench_nanopubs.trig", "graph", error="it has no named graphs"),
    File(JELLY + "p2_ontology.nt", "message", error="a message without a timestamp"),
    File(JELLY + "nq-syntax-tests.nq", "graph", error="the graph <http://example/g> has no time"),
    File(CSR + "data_00.ttl", "message", 1, 226, EPOCH, EPOCH, given=CLOCK),
    File(CSR + "data_13.ttl", "message", 1, 178, EPOCH, EPOCH, given=CLOCK),
    # The instants are strings that look like literals with a datatype.
    File(CSR + "data_00.ttl", "message", error="is not a timestamp",
         given={"time_predicate": "om-owl:samplingTime/time:inXSDDateTime"}),
    File(CSR + "srbench-queries.properties", "graph", error=UNKNOWN_SYNTAX),
    File(CSR + "answers/cqels-answer-1.json", "graph", error="no member of it has an IRI"),
    File(TRAFFIC + "background/SensorRepository.n3.gz", "message", 1, 44_213, EPOCH, EPOCH,
         given=CLOCK),
    File(TRAFFIC + "background/AarhusCulturalEvents.n3.gz", "message", 1, 1490, EPOCH, EPOCH,
         given=CLOCK),
    File(TRAFFIC + "background/trafficMetaData.csv", "graph", error=UNKNOWN_SYNTAX),
    File(TRAFFIC + "streams/AarhusTrafficData158505.stream.gz", "graph",
         error=UNKNOWN_SYNTAX),
    File(TRAFFIC + "ontology/ssn.owl.gz", "message", 1, 767, EPOCH, EPOCH, given=CLOCK),
    File(TRAFFIC + "ontology/city.n3", "message", 1, 52, EPOCH, EPOCH, given=CLOCK),
    File("spaseq/data.nt", "triples:3", 66, 198, "0", "65"),
    File("spaseq/tests-jar/credit-card/card10k.n3.gz", "triples:2", 20_001, 40_002, "0", "20000"),
    File("stocks/NASDAQ_MEDIUM.txt", "graph", error=UNKNOWN_SYNTAX),
    File("vocab/sosa.ttl", "graph", error="it has no named graphs"),
    File("vocab/saref.ttl", "message", 1, 908, EPOCH, EPOCH, given=CLOCK),
]  # fmt: skip

pytestmark = pytest.mark.skipif(not DATA, reason="SPASEQ_DATA does not name the data folder")


@pytest.mark.parametrize("file", FILES, ids=str)
def test_published_files(file: File) -> None:
    source = Source("urn:s", [str(Path(DATA) / file.path)], options(file.framing, **file.given))
    events: list[Event] = []
    error = ""
    try:
        events += source
    except InputError as failure:
        error = str(failure)
    if file.error:
        assert file.error in error
        assert Path(file.path).name in error
        return
    assert error == ""
    assert (len(events), sum(len(event.facts) for event in events)) == (file.events, file.facts)
    assert events[0].time.term.value == file.first
    assert events[-1].time.term.value == file.last


@pytest.mark.parametrize(
    "name", ["weather-quads.nq", "weather-graphs.trig", "weather.nt", "riverbench_nanopubs.trig"]
)
def test_samples_in_jelly_are_the_same_triples(tmp_path: Path, name: str) -> None:
    quads = list(ox.parse(path=str(Path(DATA) / JELLY / name)))
    for per_frame in (1, 7, 1000):
        (tmp_path / "s").write_bytes(
            written([quads[i : i + per_frame] for i in range(0, len(quads), per_frame)])
        )
        events = Source("urn:s", [str(tmp_path / "s")], options(**CLOCK))
        found = [_without_blanks(fact) for event in events for fact in event.facts]
        expected = {_without_blanks((q.subject, q.predicate, q.object)) for q in quads}
        assert set(found) == expected
        assert len(found) >= len(expected)


def _without_blanks(fact: tuple[object, ...]) -> tuple[str, ...]:
    """The terms of a fact as texts; the labels of blank nodes differ."""
    return tuple("_:" if isinstance(term, ox.BlankNode) else str(term) for term in fact)
