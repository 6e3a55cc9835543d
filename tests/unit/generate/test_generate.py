"""Generated data sets: the same bytes for a seed, framed as the readers want them, in time."""

from __future__ import annotations

import hashlib
import tracemalloc
from datetime import datetime
from itertools import islice, pairwise
from pathlib import Path
from random import Random

import pyoxigraph as ox
import pytest

from spaseq.errors import SpaseqError
from spaseq.generate import DATASETS, write
from spaseq.generate.chance import Fractal, arch, decimal
from spaseq.generate.framing import DAY, Calendar, event_template
from spaseq.parser import parse
from spaseq.parser.ast import Iri, Triple, walk

PROV_TIME = ox.NamedNode("http://www.w3.org/ns/prov#generatedAtTime")
DATE_TIME = ox.NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")


def digest(paths: list[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def instants(path: Path) -> list[datetime]:
    """The timestamps of a file's events; fails unless each stands right before its graph."""
    times: list[datetime] = []
    named: ox.NamedNode | ox.BlankNode | None = None
    seen: set[str] = set()
    for quad in ox.parse(path=path, format=ox.RdfFormat.N_QUADS):
        if quad.graph_name == ox.DefaultGraph():
            assert quad.predicate == PROV_TIME
            assert quad.object.datatype == DATE_TIME
            assert quad.subject.value not in seen, "a graph is announced twice"
            named = quad.subject
            seen.add(named.value)
            times.append(datetime.fromisoformat(quad.object.value))
        else:
            assert quad.graph_name == named
    return times


@pytest.mark.parametrize("name", DATASETS)
def test_a_seed_fixes_every_byte(name: str, tmp_path: Path) -> None:
    first = write(name, 500, 7, tmp_path / "a")
    again = write(name, 500, 7, tmp_path / "b")
    other = write(name, 500, 8, tmp_path / "c")
    assert digest(first) == digest(again) != digest(other)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("smart-home", "5ddb149d84df968e"),
        ("stock", "1c35f7b757d1ac1b"),
        ("cards", "2beb269d1ba05f94"),
        ("traffic", "a6abd8f7d970c889"),
    ],
)
def test_the_bytes_do_not_depend_on_the_version_of_python(
    name: str, expected: str, tmp_path: Path
) -> None:
    assert digest(write(name, 2000, 1, tmp_path)[:-2])[:16] == expected


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("events", [1, 2, 333])
def test_the_streams_have_the_number_of_events_asked_for(
    name: str, events: int, tmp_path: Path
) -> None:
    *streams, kb, query = write(name, events, 3, tmp_path)
    assert (kb.name, query.name) == ("kb.ttl", "query.rq")
    assert sum(len(instants(path)) for path in streams) == events


@pytest.mark.parametrize("name", DATASETS)
def test_each_stream_is_chronological_and_its_graphs_are_contiguous(
    name: str, tmp_path: Path
) -> None:
    for path in write(name, 3000, 5, tmp_path)[:-2]:
        times = instants(path)
        assert times == sorted(times)


@pytest.mark.parametrize("name", DATASETS)
def test_the_query_declares_the_streams_and_the_kb_that_are_written(
    name: str, tmp_path: Path
) -> None:
    *streams, kb, query = write(name, 300, 1, tmp_path)
    parsed = parse(query.read_text())
    assert [stream.name for stream in parsed.streams] == [path.stem for path in streams]
    assert [graph.iri.value.rpartition("/")[2] for graph in parsed.kbs] == [kb.stem]


@pytest.mark.parametrize("name", DATASETS)
def test_events_and_knowledge_share_their_vocabulary_with_the_query(
    name: str, tmp_path: Path
) -> None:
    """No predicate of the query is missing from the data: it could never match."""
    *streams, kb, query = write(name, 600, 1, tmp_path)
    known = {triple.predicate.value for triple in ox.parse(path=kb, format=ox.RdfFormat.TURTLE)}
    for path in streams:
        known |= {quad.predicate.value for quad in ox.parse(path=path)}
    text = query.read_text()
    for define in parse(text).defines:
        for node in _triples(define.pattern):
            assert node in known, f"{define.name} asks for {node}"


def _triples(pattern: object) -> list[str]:
    return [
        node.predicate.value
        for node in walk(pattern)
        if isinstance(node, Triple) and isinstance(node.predicate, Iri)
    ]


@pytest.mark.parametrize("name", DATASETS)
def test_memory_does_not_grow_with_the_events(name: str) -> None:
    events = DATASETS[name].populate(2000, Random(1)).events()
    for _ in islice(events, 2000):
        pass
    tracemalloc.start()
    for _ in islice(events, 4000):
        pass
    before, _ = tracemalloc.get_traced_memory()
    for _ in islice(events, 12_000):
        pass
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 20_000


def test_one_number_of_events_is_a_prefix_of_a_greater_one_of_the_same_size_of_world() -> None:
    dataset = DATASETS["stock"]
    short = list(islice(dataset.populate(200, Random(1)).events(), 50))
    long = list(islice(dataset.populate(200, Random(1)).events(), 200))
    assert long[:50] == short


def test_an_unknown_data_set_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SpaseqError, match="'homes'; choose one of smart-home, stock"):
        write("homes", 10, 1, tmp_path)


def test_no_events_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpaseqError, match="the minimum is 1"):
        write("stock", 0, 1, tmp_path)


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpaseqError, match=r"cannot write to .*; choose a folder"):
        write("stock", 10, 1, tmp_path / "file" / "below")


def test_a_template_resolves_names_once() -> None:
    template = event_template('<m/{m}> stock:price "{p}"^^xsd:decimal', "_:b{m} a sosa:Sensor")
    text = template.format(graph="<urn:g>", time="2026-01-05T00:00:00Z", m=3, p="1.50")
    quads = list(ox.parse(text.encode(), format=ox.RdfFormat.N_QUADS))
    assert [quad.subject.value for quad in quads] == ["urn:g", "http://example.org/m/3", "b3"]
    assert quads[1].object == ox.Literal(
        "1.50", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#decimal")
    )


def test_instants_are_canonical_date_times() -> None:
    calendar = Calendar()
    assert calendar.lexical(0) == "2026-01-05T00:00:00Z"
    assert calendar.lexical(1_500) == "2026-01-05T00:00:01.5Z"
    assert calendar.lexical(60_050) == "2026-01-05T00:01:00.05Z"
    assert calendar.lexical(30 * DAY) == "2026-02-04T00:00:00Z"


def test_a_fractal_curve_stays_in_bounds_and_is_continuous() -> None:
    curve = Fractal(Random(2))
    values = [curve.step() for _ in range(5000)]
    assert all(-1 <= value <= 1 for value in values)
    assert max(values) - min(values) > 0.5
    assert max(abs(b - a) for a, b in pairwise(values)) < 0.15


def test_small_numbers_are_written_in_full() -> None:
    assert [decimal(5), decimal(50), decimal(12345)] == ["0.05", "0.50", "123.45"]
    assert [arch(-1), arch(0.0), arch(0.5), arch(1.0)] == [0, 0, 1, 0]
